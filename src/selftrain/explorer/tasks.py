"""The tasks of jobs: long computations that send progress and results as messages.

They run in processes of their own (`jobs`), so that they can be cancelled at any time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InvalidInput, StageError
from ..recipe import Recipe
from ..runtime.progress import ProgressReport
from .answers import simulated_names
from .cluster_texts import repeated
from .controls import NUMBERS
from .own_data import own_data, own_shape
from .page_state import PageState

Send = Callable[[dict[str, Any]], object]

LIMITS = {
    "features": 2**20,
    "seeds": 32,
    "points": 2**27,
    "schedule_steps": 64,
    "shaped_features": 1024,
}
"""Largest sizes of a job. `points` is features times seeds times steps. Systems with a general
covariance or three classes take much longer: `shaped_features` is their limit of features.
"""

SEARCHES: dict[str, dict[str, Any]] = {
    "constants": {"over": ("lambda_l", "lambda_u")},
    "heuristics": {"over": ("lambda_l", "lambda_u", "annealing"), "starts": 3},
    "schedule": {"over": ("lambda_l",), "schedule": ("lambda_u",)},
}
"""Arguments of `optimize` for each search button. The search over the heuristics has several
starts, because the recipe on the page may be far from them.
"""


def optimize(data: dict[str, Any], send: Send) -> None:
    """Search for the best recipe, starting from the one on the page; the controls change only if
    the result is better. `data["search"]` is one of `SEARCHES`.
    """
    from .. import optimize as search
    from ..tuning.search import NOISE

    state, kind = PageState.from_store(data["state"]), str(data["search"])
    if kind not in SEARCHES:
        raise InvalidInput("search", kind, f"must be one of {', '.join(SEARCHES)}")
    options, problem = SEARCHES[kind], state.problem
    if kind == "schedule" and problem.steps > LIMITS["schedule_steps"]:
        accepted = f"must be at most {LIMITS['schedule_steps']} for a schedule"
        raise InvalidInput("steps", problem.steps, accepted)
    names = (*options["over"], *options.get("schedule", ()))
    bounds = {name: _within_control(name) for name in names}
    start = _start(state.recipe, kind, bounds)

    def report(now: ProgressReport) -> None:
        best = "" if now.best is None else f", best error {now.best:.5f}"
        send({"progress": f"{now.done} runs solved{best}"})

    send({"progress": "searching"})
    shown = _last_error(state)
    best = search(problem, start=start, bounds=bounds, progress=report, **options)
    changed = {name: getattr(best.recipe, name) for name in (*names, "fix_bias")}
    if kind == "heuristics":
        changed["sharpness"] = best.recipe.sharpness
    found = state.with_values(changed)
    error = _last_error(found)  # of the values as they are written into the controls
    if error < shown - NOISE:
        said = f"best error {error:.5f} after {best.solves} runs. {best.advice}"
        send({"texts": found.texts, "progress": said})
    else:
        said = f"best error {shown:.5f}; nothing better was found in {best.solves} runs."
        send({"progress": f"the recipe shown stays: {said}"})


def _start(shown: Recipe, kind: str, bounds: dict[str, tuple[float, float]]) -> Recipe:
    """Return the recipe on the page as the start of a search: clipped to the bounds, and with one
    number in place of a schedule where one number is searched.
    """
    if kind == "heuristics":
        shown = shown.replace(fix_bias=True)
        if np.isinf(shown.sharpness).any():  # hard labels cannot be annealed
            shown = shown.replace(sharpness=1.0)
    free = SEARCHES[kind].get("schedule", ())
    values: dict[str, Any] = {}
    for name, (low, high) in bounds.items():
        inside = np.clip(getattr(shown, name), low, high)
        values[name] = tuple(inside.tolist()) if inside.ndim and name in free else inside.mean()
    return shown.replace(**{n: v if isinstance(v, tuple) else float(v) for n, v in values.items()})


def _last_error(state: PageState) -> float:
    """Return the last error of the run on a page; infinity if the run cannot be solved."""
    from .. import solve

    try:
        return float(solve(state.problem, state.recipe).error[-1])
    except StageError:
        return math.inf


def _within_control(name: str) -> tuple[float, float]:
    """Return bounds for a search within the limits of the control, which must show the result."""
    from ..parameters import SEARCH_BOUNDS

    control = NUMBERS[name]
    return max(control.low, SEARCH_BOUNDS[name][0]), min(control.high, SEARCH_BOUNDS[name][1])


def simulate(data: dict[str, Any], send: Send) -> None:
    """Simulate finite systems, seed by seed; every message contains all seeds finished so far."""
    from .. import simulate as run

    state = PageState.from_store(data["state"])
    problem, recipe = state.problem, state.recipe
    features, seeds = _whole("features", data), _whole("seeds", data)
    if features * seeds * (problem.steps + 1) > LIMITS["points"]:
        accepted = f"features x seeds x steps must be at most {LIMITS['points']:.3g} here"
        raise InvalidInput("features", features, accepted)
    size: int | None = features
    if problem.classes > 2:
        size = features = min(features, LIMITS["shaped_features"])
    elif problem.clusters is not None:
        times = max(1, min(features, LIMITS["shaped_features"]) // problem.clusters.features)
        clusters = repeated(problem.clusters, times)
        problem, features, size = problem.replace(clusters=clusters), clusters.features, None
    rows: dict[str, list[Any]] = {name: [] for name in simulated_names(problem)}
    begin = time.perf_counter()
    for seed in range(seeds):
        send({"progress": _left(seed, seeds, begin)})
        ensemble = run(problem, recipe, size, seeds=[seed], probes=0, progress=False)
        for name, values in rows.items():
            values.append([float(value) for value in getattr(ensemble, name)[0]])
        send({"simulated": {**rows, "features": features, "texts": state.texts}})
    took = time.perf_counter() - begin
    send({"progress": f"{seeds} systems of {features} features in {took:.1f} s"})


def _left(done: int, total: int, begin: float) -> str:
    if not done:
        return f"simulating, 0 of {total} seeds"
    left = (time.perf_counter() - begin) / done * (total - done)
    return f"simulating, {done} of {total} seeds, about {left:.0f} s left"


def _whole(name: str, data: dict[str, Any]) -> int:
    value: Any = data.get(name)
    low = 2 if name == "features" else 1
    accepted = f"must be a whole number from {low} to {LIMITS[name]}"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(name, value, accepted) from None
    if not low <= number <= LIMITS[name] or number % 1:
        raise InvalidInput(name, value, accepted)
    return int(number)


TASKS = {"optimize": optimize, "simulate": simulate, "data": own_data, "shape": own_shape}
