"""From the state of a page to what it shows: a picture, sentences, numbers, snippets. No page in
here.

`answer` runs in a worker process and returns plain values. Runs and baselines are remembered, so
that moving the step that is shown solves nothing again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from .. import (
    InvalidInput,
    NoExpansion,
    Problem,
    Recipe,
    SelfTrainError,
    StageError,
    Trajectory,
    bayes_error,
    continuum,
    solve,
    supervised_optimum,
)
from . import charts
from .page_state import PageState
from .snippets import command_line, python_lines

__all__ = ["answer", "table"]

DRAWN = 1e-4
"""Tolerance of a path in continuous time: finer than a line on the screen, and fast."""


def answer(data: dict[str, Any]) -> dict[str, Any]:
    """What a page with this state shows; `data` is what the page sent.

    Returns plain values: `figure`, `sentences`, `t`, `steps`, `python`, `command`; or `fault`, a
    sentence, and `field`, the control it belongs to.
    """
    try:
        state = PageState.from_store(data)
        run = _run(state.problem, state.recipe)
        return _shown(state, run, data)
    except InvalidInput as error:
        return {"fault": str(error), "field": error.field}
    except StageError as error:
        return {"fault": f"This run has no solution: {error}", "field": _blamed(error)}
    except SelfTrainError as error:
        return {"fault": str(error), "field": None}


def table(data: dict[str, Any]) -> str:
    """The run of a page as a CSV table."""
    state = PageState.from_store(data)
    return _run(state.problem, state.recipe).to_frame().to_csv()


def _shown(state: PageState, run: Trajectory, data: dict[str, Any]) -> dict[str, Any]:
    last = run.good_steps - 1
    t = last if state.t < 0 else min(state.t, last)
    theme = charts.Theme(dark=data.get("dark") is True)
    pinned = _pinned(state)
    remark = ""
    try:
        figure = _figure(state, run, pinned, data.get("simulated"), theme, t)
    except NoExpansion as error:
        remark = f"There is no continuous-time limit here: {error}"
        figure = charts.figure(theme, [], ("time τ", "error", {}))
    except InvalidInput as error:
        remark = f"This view is not available for these settings: {error}"
        figure = charts.figure(theme, [], ("", "", {}))
    sentences = [sentence for sentence in (remark, *_sentences(run, pinned)) if sentence]
    return {
        "figure": figure,
        "sentences": sentences,
        "t": t,
        "steps": last,
        "numbers": _numbers(run, t),
        "python": python_lines(state),
        "command": command_line(state),
    }


def _figure(
    state: PageState,
    run: Trajectory,
    pinned: Trajectory | None,
    simulated: Any,
    theme: charts.Theme,
    t: int,
) -> charts.Figure:
    points = simulated if _matches(simulated, state) else None
    if state.view == "error":
        limits, supervised = _baselines(run.problem)
        return charts.error(theme, run, pinned, limits, supervised, points, t)
    if state.view == "direction":
        return charts.direction(theme, run, pinned, points, t)
    if state.view == "laws":
        return charts.laws(theme, run, t)
    if state.view == "plane":
        return charts.plane(theme, run, t)
    if state.view == "susceptibility":
        return charts.susceptibility(theme, run, pinned, t)
    return charts.continuum(theme, _path(run.problem, run.recipe), run)


def _matches(simulated: Any, state: PageState) -> bool:
    """Whether simulated points belong to the run that is shown."""
    return isinstance(simulated, dict) and simulated.get("query") == state.query(pinned=False)


def _pinned(state: PageState) -> Trajectory | None:
    if not state.pin:
        return None
    other = PageState.from_query(state.pin)
    try:
        return _run(other.problem, other.recipe)
    except SelfTrainError:
        return None


def _sentences(run: Trajectory, pinned: Trajectory | None) -> list[str]:
    """What this run does, in words."""
    error = run.error
    best = int(min(range(len(error)), key=lambda i: error[i]))
    told = [
        f"The error goes from {error[0]:.4f} (labelled points only) to {error[-1]:.4f} after "
        f"{run.problem.steps} steps; it is lowest at step {best}, {error[best]:.4f}."
    ]
    if run.collapsed_at is not None:
        told.append(f"The pseudo-labels collapse into one class at step {run.collapsed_at}.")
    limits, supervised = _baselines(run.problem)
    told.append(
        f"With every label and its best ridge: {supervised.error:.4f}. No method errs less than "
        f"{limits.semi_supervised:.4f} on these data."
    )
    if pinned is not None and pinned.problem != run.problem:
        told.append("The pinned run has another problem: its own limits may differ.")
    return told


def _numbers(run: Trajectory, t: int) -> list[tuple[str, str]]:
    """The state at the step shown."""
    quantities = {
        "error": run.error,
        "cosine": run.cosine,
        "B/√q": run.bias_to_norm,
        "q": run.q,
        "m": run.m,
        "χ": run.chi,
    }
    return [(name, f"{float(values[t]):.5g}") for name, values in quantities.items()]


def _blamed(error: StageError) -> str:
    return "threshold" if type(error).__name__ == "EmptySelection" else "lambda_u"


@lru_cache(maxsize=64)
def _run(problem: Problem, recipe: Recipe) -> Trajectory:
    return solve(problem, recipe)


@lru_cache(maxsize=64)
def _baselines(problem: Problem) -> tuple[Any, Any]:
    return bayes_error(problem), supervised_optimum(problem)


@lru_cache(maxsize=16)
def _path(problem: Problem, recipe: Recipe) -> Any:
    ridges = recipe.at_steps(problem.steps).lambda_u
    until = float(ridges.sum())
    until = until if math.isfinite(until) and until > 0 else 1.0
    return continuum(problem, recipe, until=until, tolerance=DRAWN)
