"""From the state of a page to what it shows: a picture, sentences, numbers, snippets.

`answer` runs in a worker process and returns plain values. Runs and baselines are remembered, so
that moving the step that is shown solves nothing again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .. import Problem, Recipe, Trajectory, continuum, solve
from ..errors import EmptySelection, InvalidInput, NoExpansion, SelfTrainError, StageError
from ..tuning.limits import Limits
from . import charts, drawing
from .drawing import Level, Theme
from .page_state import PageState
from .snippets import command_line, python_lines

__all__ = ["SIMULATED", "answer", "table", "theme_of"]

FIELDS = {"clusters": "shape", "clusters_u": "shape"}
"""Controls that have another name than the field of `Problem` they set."""

SIMULATED = ("error", "cosine", "bias_to_norm")
"""Quantities of simulated systems that the page draws."""

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
        return {"fault": str(error), "field": FIELDS.get(error.field, error.field)}
    except StageError as error:
        blamed = "threshold" if isinstance(error, EmptySelection) else "lambda_u"
        return {"fault": f"This run has no solution: {error}", "field": blamed}
    except SelfTrainError as error:
        return {"fault": str(error), "field": None}


def table(data: dict[str, Any]) -> str:
    """The run of a page as a CSV table."""
    state = PageState.from_store(data)
    return _run(state.problem, state.recipe).to_frame().to_csv()


class NoPicture(SelfTrainError):
    """A view has no meaning for these settings."""


def _shown(state: PageState, run: Trajectory, data: dict[str, Any]) -> dict[str, Any]:
    last = run.good_steps - 1
    t = last if state.t < 0 else min(state.t, last)
    theme = theme_of(data)
    pinned = _pinned(state)
    remark = ""
    try:
        points = _points(data.get("simulated"), state)
        figure = _figure(state, run, pinned, points, theme, t)
    except NoPicture as error:
        remark = str(error)
    except NoExpansion as error:
        remark = f"There is no continuous-time limit here: {error}"
    except InvalidInput as error:
        remark = f"This view is not available for these settings: {error.accepted}."
    except SelfTrainError as error:
        remark = f"This view is not available at step {t}: {error}."
    if remark:
        figure = drawing.figure(theme, [], drawing.Panel("", ""))
    figure["layout"]["uirevision"] = state.view  # a zoom stays while its view does
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


def theme_of(data: dict[str, Any]) -> Theme:
    """Colours, letters and width of the page that asks."""
    size = data.get("size")
    letters = float(size) if isinstance(size, (int, float)) and 8 <= size <= 40 else 14.0
    return Theme(data.get("dark") is True, letters, data.get("narrow") is True)


def _figure(
    state: PageState,
    run: Trajectory,
    pinned: Trajectory | None,
    points: charts.Points,
    theme: Theme,
    t: int,
) -> drawing.Figure:
    if state.view == "error":
        return charts.error(theme, run, pinned, _levels(_limits(run.problem)), points, t)
    if state.view == "direction":
        return charts.direction(theme, run, pinned, points, t)
    if state.view == "laws":
        return (charts.shaped_laws if run.problem.shaped else charts.laws)(theme, run, t)
    if state.view == "plane":
        return charts.plane(theme, run, pinned, t)
    if state.view == "susceptibility":
        return charts.susceptibility(theme, run, pinned, t)
    if run.problem.shaped:
        reason = "Continuous time is known for spheres only: clear the covariance to see it."
        raise NoPicture(reason)
    return charts.continuum(theme, _path(run.problem, run.recipe), run)


def _points(simulated: Any, state: PageState) -> charts.Points:
    """Simulated seeds, if they belong to the run that is shown."""
    if not isinstance(simulated, dict) or simulated.get("texts") != state.texts:
        return None
    try:
        rows = {name: np.array(simulated[name], dtype=float) for name in SIMULATED}
        features = int(simulated["features"])
    except (KeyError, TypeError, ValueError):
        return None
    expected = (len(rows["error"]) if rows["error"].ndim else 0, state.problem.steps + 1)
    good = all(values.shape == expected for values in rows.values())
    return {**rows, "features": features} if good else None


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
    spoken = [
        f"The error goes from {error[0]:.4f} (labelled samples only) to {error[-1]:.4f} after "
        f"{run.problem.steps} steps; it is lowest at step {best}, {error[best]:.4f}."
    ]
    if run.collapsed_at is not None:
        spoken.append(f"The pseudo-labels collapse into one class at step {run.collapsed_at}.")
    limits = _limits(run.problem)
    spoken.append(f"Fully supervised with the best ridge: {limits.supervised.error:.4f}.")
    spoken.append(limits.sentence(4))
    if pinned is not None and pinned.problem != run.problem:
        spoken.append("The pinned run has another problem: its own limits may differ.")
    return spoken


@lru_cache(maxsize=64)
def _limits(problem: Problem) -> Limits:
    return Limits(problem)


def _levels(limits: Limits) -> tuple[Level, ...]:
    """Return the lines that a run is compared with."""
    supervised = Level(limits.supervised.error, "fully supervised", "supervised")
    if limits.problem.shaped:
        return supervised, Level(limits.lowest, "best linear rule", "ink")
    alone = Level(limits.bayes.labeled_only, "Bayes, labelled only", "faint")
    return alone, supervised, Level(limits.lowest, "Bayes error", "ink")


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


@lru_cache(maxsize=64)
def _run(problem: Problem, recipe: Recipe) -> Trajectory:
    return solve(problem, recipe, progress=False)


@lru_cache(maxsize=16)
def _path(problem: Problem, recipe: Recipe) -> Any:
    ridges = recipe.at_steps(problem.steps).lambda_u
    until = float(ridges.sum())
    until = until if math.isfinite(until) and until > 0 else 1.0
    return continuum(problem, recipe, until=until, tolerance=DRAWN, progress=False)
