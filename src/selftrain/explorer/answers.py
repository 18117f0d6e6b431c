"""What a page shows for a given state: a figure, sentences, numbers, code snippets.

`answer` runs in a worker process and returns plain values. Runs and baselines are cached, so that
choosing another step to show does not solve the run again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .. import Problem, Recipe, continuum, solve
from ..errors import EmptySelection, InvalidInput, NoExpansion, SelfTrainError, StageError
from ..tuning.limits import Limits
from . import charts, drawing
from .drawing import Theme
from .page_state import PageState
from .snippets import command_line, python_lines

FIELDS = {"clusters": "shape", "clusters_u": "shape"}
"""Fields of `Problem` whose control has another name, and that name."""

DRAWN = 1e-4
"""Tolerance of a path in continuous time: smaller than the width of a line on the screen."""


def answer(data: dict[str, Any]) -> dict[str, Any]:
    """Return what a page shows; `data` is the state that the page sent.

    Returns:
        Plain values: `figure`, `sentences`, `t`, `steps`, `python`, `command`; or, if the state is
        invalid, `fault` (a sentence) and `field` (the control it belongs to).
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
    """Return the run of a page as a CSV table."""
    state = PageState.from_store(data)
    return str(_run(state.problem, state.recipe).to_frame().to_csv())


class NoPicture(SelfTrainError):
    """The error of a view that is not defined for these settings."""


def _shown(state: PageState, run: Any, data: dict[str, Any]) -> dict[str, Any]:
    last = run.good_steps - 1
    t = last if state.t < 0 else min(state.t, last)
    theme = theme_of(data)
    pinned = _pinned(state, run)
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
    figure["layout"]["uirevision"] = state.view  # plotly keeps the zoom until the view changes
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
    """Return the colours, the font size and the width of the page that sent a request."""
    size = data.get("size")
    letters = float(size) if isinstance(size, (int, float)) and 8 <= size <= 40 else 14.0
    return Theme(data.get("dark") is True, letters, data.get("narrow") is True)


def _figure(
    state: PageState, run: Any, pinned: Any, points: charts.Points, theme: Theme, t: int
) -> drawing.Figure:
    view, several = state.view, run.classes > 2
    if view == "error":
        draw = charts.class_error if several else charts.error
        return draw(theme, run, pinned, _levels(_limits(run.problem)), points, t)
    if view == "susceptibility":
        return charts.susceptibility(theme, run, pinned, t)
    if view == "plane":
        return charts.class_plane(theme, run, t) if several else charts.plane(theme, run, pinned, t)
    if several:
        raise NoPicture("This view needs two classes: clear the three proportions to see it.")
    if view == "direction":
        return charts.direction(theme, run, pinned, points, t)
    if view == "laws":
        return (charts.shaped_laws if run.problem.shaped else charts.laws)(theme, run, t)
    if run.problem.shaped:
        reason = "Continuous time is known for spheres only: clear the covariance to see it."
        raise NoPicture(reason)
    return charts.continuum(theme, _path(run.problem, run.recipe), run)


def simulated_names(problem: Problem) -> tuple[str, ...]:
    """Return the quantities of simulated systems that the page draws."""
    return ("error",) if problem.classes > 2 else ("error", "cosine", "bias_to_norm")


def _points(simulated: Any, state: PageState) -> charts.Points:
    """Return the simulated seeds if they belong to the run that is shown, else None."""
    if not isinstance(simulated, dict) or simulated.get("texts") != state.texts:
        return None
    names = simulated_names(state.problem)
    try:
        rows = {name: np.array(simulated[name], dtype=float) for name in names}
        features = int(simulated["features"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    expected = (len(rows["error"]) if rows["error"].ndim else 0, state.problem.steps + 1)
    good = all(values.shape == expected for values in rows.values())
    return {**rows, "features": features} if good else None


def _pinned(state: PageState, run: Any) -> Any:
    """Return the pinned run if it can be compared with this one, else None."""
    if not state.pin:
        return None
    other = PageState.from_query(state.pin)
    try:
        pinned = _run(other.problem, other.recipe)
    except SelfTrainError:
        return None
    return pinned if pinned.classes == run.classes else None


def _sentences(run: Any, pinned: Any) -> list[str]:
    """Return sentences that describe a run."""
    error, last = run.error, run.good_steps - 1
    if run.classes == 2:  # after a collapse, the error is that of a constant prediction
        last = run.problem.steps
    best = int(np.nanargmin(error))
    spoken = [
        f"The error goes from {error[0]:.4f} (labelled samples only) to {error[last]:.4f} after "
        f"{last} steps; it is lowest at step {best}, {error[best]:.4f}."
    ]
    limits = _limits(run.problem)
    if run.collapsed_at is not None and run.classes == 2:
        spoken.append(f"The pseudo-labels collapse into one class at step {run.collapsed_at}.")
    elif run.collapsed_at is not None:
        lost = f"The pseudo-labels lack class {run.collapsed_class} from step {run.collapsed_at} on"
        spoken.append(f"{lost}: the run ends there.")
    if run.classes == 2:
        spoken.append(f"Fully supervised with the best ridge: {limits.supervised.error:.4f}.")
    spoken.append(limits.sentence(4))
    if pinned is not None and pinned.problem != run.problem:
        spoken.append("The pinned run has another problem: its own limits may differ.")
    return spoken


@lru_cache(maxsize=64)
def _limits(problem: Problem) -> Limits:
    return Limits(problem)


def _levels(limits: Limits) -> dict[str, float]:
    """Return the errors that are drawn for comparison, by name."""
    if limits.problem.classes > 2:
        return {"best rule": limits.lowest}
    if limits.problem.shaped:
        return {"fully supervised": limits.supervised.error, "best linear rule": limits.lowest}
    return {
        "Bayes, labelled only": limits.bayes.labeled_only,
        "fully supervised": limits.supervised.error,
        "Bayes error": limits.lowest,
    }


def _numbers(run: Any, t: int) -> list[tuple[str, str]]:
    """Return the quantities at step t, as pairs of name and text."""
    quantities: dict[str, Any] = {"error": run.error}
    if run.classes > 2:
        quantities["balanced error"] = run.balanced_error
        for k, errors in enumerate(run.class_errors.T):
            quantities[f"recall of class {k}"] = 1 - errors
    else:
        quantities |= {"cosine": run.cosine, "B/√q": run.bias_to_norm}
    quantities["q"] = run.q
    quantities |= {"χ": run.chi} if run.classes > 2 else {"m": run.m, "χ": run.chi}
    return [(name, f"{float(values[t]):.5g}") for name, values in quantities.items()]


@lru_cache(maxsize=64)
def _run(problem: Problem, recipe: Recipe) -> Any:
    return solve(problem, recipe, progress=False)


@lru_cache(maxsize=16)
def _path(problem: Problem, recipe: Recipe) -> Any:
    ridges = recipe.at_steps(problem.steps).lambda_u
    until = float(ridges.sum())
    until = until if math.isfinite(until) and until > 0 else 1.0
    return continuum(problem, recipe, until=until, tolerance=DRAWN, progress=False)
