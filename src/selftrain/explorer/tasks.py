"""Long work of the page, each a generator of messages: progress first, then results as they come.

They run in a process of their own (`jobs`), so that they can be cancelled at any moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InvalidInput, StageError
from ..recipe import Recipe
from ..runtime.progress import ProgressReport
from .answers import SIMULATED
from .directions import repeated
from .own_data import own_data, own_shape
from .page_state import NUMBERS, PageState

__all__ = ["LIMITS", "TASKS"]

Message = dict[str, Any]

LIMITS = {
    "features": 2**20,
    "seeds": 32,
    "points": 2**27,
    "schedule_steps": 64,
    "shaped_features": 1024,
}
"""What one job may be asked for. `points` is features times seeds times steps; systems with a shape
take much longer, so they stay smaller.
"""

SEARCHES: dict[str, dict[str, Any]] = {
    "constants": {"over": ("lambda_l", "lambda_u")},
    "heuristics": {"over": ("lambda_l", "lambda_u", "annealing"), "starts": 3},
    "schedule": {"over": ("lambda_l",), "schedule": ("lambda_u",)},
}
"""What the buttons vary. The heuristics, which the page may not show yet, are one of several
starts.
"""


def optimize(data: dict[str, Any]) -> Iterator[Message]:
    """The best recipe of a kind, "constants", "heuristics" or "schedule", from the recipe that is
    shown; controls change only if it is better.
    """
    from .. import optimize as search
    from ..tuning.search import NOISE

    state, kind = PageState.from_store(data["state"]), str(data["search"])
    if kind not in SEARCHES:
        raise InvalidInput("search", kind, f"one of {', '.join(SEARCHES)} is accepted")
    options, problem = SEARCHES[kind], state.problem
    if kind == "schedule" and problem.steps > LIMITS["schedule_steps"]:
        accepted = f"at most {LIMITS['schedule_steps']} steps are accepted for a schedule"
        raise InvalidInput("steps", problem.steps, accepted)
    names = (*options["over"], *options.get("schedule", ()))
    bounds = {name: _within_control(name) for name in names}
    start = _start(state.recipe, kind, bounds)
    messages: list[Message] = []

    def report(state: ProgressReport) -> None:
        best = "" if state.best is None else f", best error {state.best:.5f}"
        messages.append({"progress": f"{state.done} runs solved{best}"})

    yield {"progress": "searching"}
    shown = _last_error(state)
    for message in _listening(
        messages, lambda: search(problem, start=start, bounds=bounds, progress=report, **options)
    ):
        if "found" not in message:
            yield message
            continue
        best = message["found"]
        changed = {name: getattr(best.recipe, name) for name in (*names, "fix_bias")}
        if kind == "heuristics":
            changed["sharpness"] = best.recipe.sharpness
        found = state.with_values(changed)
        error = _last_error(found)  # of the values as they are written into the controls
        if not error < shown - NOISE:
            yield {
                "progress": f"the recipe shown stays: best error {shown:.5f}; nothing better was"
                f" found in {best.solves} runs."
            }
            continue
        yield {
            "texts": found.texts,
            "progress": f"best error {error:.5f} after {best.solves} runs. {best.advice}",
        }


def _start(shown: Recipe, kind: str, bounds: dict[str, tuple[float, float]]) -> Recipe:
    """The recipe that is shown, with what is searched as the search needs it: within its bounds,
    and one number where one is searched.
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
    """The error of what a page shows, infinite if its run has none."""
    from .. import solve

    try:
        return float(solve(state.problem, state.recipe).error[-1])
    except StageError:
        return math.inf


def _within_control(name: str) -> tuple[float, float]:
    """The bounds of a search, so that its control accepts what it finds."""
    from ..parameters import SEARCH_BOUNDS

    control = NUMBERS[name]
    return max(control.low, SEARCH_BOUNDS[name][0]), min(control.high, SEARCH_BOUNDS[name][1])


def _listening(messages: list[Message], work: Any) -> Iterator[Message]:
    """Run `work` in a thread; pass on what it reports, and its result as `found`."""
    import threading

    result: list[Any] = []

    def target() -> None:
        try:
            result.append((True, work()))
        except BaseException as error:
            result.append((False, error))

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.25)
        if messages:
            yield messages[-1]
    good, value = result[0]
    if not good:
        raise value
    yield {"found": value}


def simulate(data: dict[str, Any]) -> Iterator[Message]:
    """Finite systems, one seed after the other; every message has the seeds that are done."""
    from .. import simulate as run

    state = PageState.from_store(data["state"])
    problem, recipe = state.problem, state.recipe
    features, seeds = _whole("features", data), _whole("seeds", data)
    if features * seeds * (problem.steps + 1) > LIMITS["points"]:
        accepted = f"features x seeds x steps up to {LIMITS['points']:.3g} is accepted here"
        raise InvalidInput("features", features, accepted)
    size: int | None = features
    if problem.clusters is not None:
        times = max(1, min(features, LIMITS["shaped_features"]) // problem.clusters.features)
        clusters = repeated(problem.clusters, times)
        problem, features, size = problem.replace(clusters=clusters), clusters.features, None
    rows: dict[str, list[Any]] = {name: [] for name in SIMULATED}
    begin = time.perf_counter()
    for seed in range(seeds):
        yield {"progress": _left(seed, seeds, begin)}
        ensemble = run(problem, recipe, size, seeds=[seed], probes=0, progress=False)
        for name, values in rows.items():
            values.append([float(value) for value in getattr(ensemble, name)[0]])
        yield {"simulated": {**rows, "features": features, "texts": state.texts}}
    took = time.perf_counter() - begin
    yield {"progress": f"{seeds} systems of {features} features in {took:.1f} s"}


def _left(done: int, total: int, begin: float) -> str:
    if not done:
        return f"simulating, 0 of {total} seeds"
    left = (time.perf_counter() - begin) / done * (total - done)
    return f"simulating, {done} of {total} seeds, about {left:.0f} s left"


def _whole(name: str, data: dict[str, Any]) -> int:
    value: Any = data.get(name)
    low = 2 if name == "features" else 1
    accepted = f"a whole number from {low} to {LIMITS[name]} is accepted"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(name, value, accepted) from None
    if not low <= number <= LIMITS[name] or number % 1:
        raise InvalidInput(name, value, accepted)
    return int(number)


TASKS = {"optimize": optimize, "simulate": simulate, "data": own_data, "shape": own_shape}
