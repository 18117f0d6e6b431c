r"""Derivatives of a run on clusters with a shape: differences of whole runs, taken where they are
asked for.

Every run differs from the given one in one number and starts from its solution. Four of them, at
distances h and 2h on both sides, leave an error of order $h^4$ besides that of the runs divided by
h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import NoGradient, StageError
from ...runtime.progress import Progress, ProgressOption
from ..gradients.gradient import Gradient
from .trajectory import ShapedTrajectory

STEP = 2e-3
"""Distance of the runs a difference is taken from, relative to the number that moves (or to 1 if it
is smaller).
"""

TIGHT = 1e-12
"""Tolerance of these runs: it is divided by the step."""

NUMBERS = ("lambda_l", "annealing", "alpha_l", "rho")
SEARCHED = ("lambda_u", "threshold", "sharpness")
SERIES = (*SEARCHED, "alpha_u", "rho_u")


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Gradient):
    """A gradient whose entries are computed when they are asked for, once.

    Attributes:
        together: the derivative when all steps move by the same amount, by name.
    """

    together: Mapping[str, Callable[[], float]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float | Array:
        known = self._entries.get(name)
        if callable(known):
            self._entries[name] = known()
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self._entries:
            return default
        return self[name]

    def total(self, name: str) -> float:
        """From four runs in which all steps moved; `self[name]` needs four for every step."""
        unknown = callable(self._entries.get(name)) and name in self.together
        return self.together[name]() if unknown else super().total(name)


def shaped_gradient(
    run: ShapedTrajectory,
    of: str | Callable[[Any], float],
    title: str,
    step: int | None,
    progress: ProgressOption = None,
) -> Differences:
    """The gradient of a quantity of a run; see `selftrain.gradient`. An entry reports its progress
    when it is asked for.
    """

    def value(of_run: Any) -> float:
        return float(of(of_run)) if callable(of) else float(getattr(of_run, of)[step])

    entries: dict[str, Any] = {
        name: partial(_number, run, value, name, progress) for name in NUMBERS
    }
    entries |= {name: partial(_series, run, value, name, progress) for name in SERIES}
    together = {name: partial(_together, run, value, name) for name in SEARCHED}
    missing = {
        "delta": "clusters have a shape in its place",
        "delta_u": "clusters have a shape in its place",
    }
    sharpness = run.recipe.at_steps(run.problem.steps).sharpness
    if np.isinf(sharpness).any():
        for name in ("sharpness", "annealing"):
            del entries[name]
            missing[name] = "hard labels have no sharpness to change"
    condition = np.full(run.problem.steps + 1, np.nan)
    return Differences(title, step, value(run), condition, entries, missing, together)


def _number(
    run: ShapedTrajectory, value: Callable[[Any], float], field: str, progress: ProgressOption
) -> float | Array:
    owner = run.recipe if hasattr(run.recipe, field) else run.problem
    now = getattr(owner, field)
    if isinstance(now, tuple):
        return _each(run, value, field, np.array(now), progress)
    return _slope(run, value, lambda new: {field: new}, float(now), field)


def _series(
    run: ShapedTrajectory, value: Callable[[Any], float], field: str, progress: ProgressOption
) -> Array:
    return _each(run, value, field, _steps(run, field), progress)


def _together(run: ShapedTrajectory, value: Callable[[Any], float], field: str) -> float:
    """The derivative along a common shift of all steps, measured at the smallest of them."""
    now = _steps(run, field)
    least = float(now.min())
    return _slope(
        run, value, lambda new: {field: tuple((now + (new - least)).tolist())}, least, field
    )


def _steps(run: ShapedTrajectory, field: str) -> Array:
    """The values of a field at the steps."""
    batches, values = run.problem.unlabeled, run.recipe.at_steps(run.problem.steps)
    factor: Array = np.ones(run.problem.steps)
    if field == "sharpness":
        annealing = np.broadcast_to(run.recipe.annealing, run.problem.steps)
        factor = np.asarray(1.0 + annealing * np.arange(1, run.problem.steps + 1), dtype=float)
    now = {
        "lambda_u": values.lambda_u,
        "threshold": values.threshold,
        "sharpness": values.sharpness / factor,
        "alpha_u": batches.alpha,
        "rho_u": batches.rho,
    }[field]
    return np.array(now)


def _each(
    run: ShapedTrajectory,
    value: Callable[[Any], float],
    field: str,
    now: Array,
    progress: ProgressOption,
) -> Array:
    def changed(i: int, new: float) -> dict[str, Any]:
        series = now.copy()
        series[i] = new
        return {field: tuple(series.tolist())}

    slopes = np.empty(now.size)
    with Progress(now.size, "slopes", progress, often=True) as bar:
        for i, entry in enumerate(now):
            slopes[i] = _slope(run, value, partial(changed, i), float(entry), field)
            bar.advance()
    return slopes


def _slope(
    run: ShapedTrajectory,
    value: Callable[[Any], float],
    changes: Callable[[float], dict[str, Any]],
    now: float,
    field: str,
) -> float:
    """The derivative in one number, from runs on both sides of it, or on the one side where it is
    allowed.
    """
    from ..solve import solve

    def at(new: float) -> float:
        moved = changes(new)
        recipe, problem = run.recipe, run.problem
        name = next(iter(moved))
        if hasattr(recipe, name):
            recipe = recipe.replace(**moved)
        else:
            problem = problem.replace(**moved)
        try:
            return value(solve(problem, recipe, TIGHT, warm_start=run))
        except StageError as error:
            raise NoGradient(
                f"no derivative in {field}: a run beside this one failed, {error}"
            ) from None

    h = STEP * (max(now, 0.05) if field in ("threshold", "annealing") else now)
    if field in ("rho", "rho_u"):
        h = STEP * min(now, 1 - now)
    if now < 2 * h:
        here, one, two, three = (at(now + k * h) for k in range(4))
        return (-11 * here + 18 * one - 9 * two + 2 * three) / (6 * h)
    near, far = at(now + h) - at(now - h), at(now + 2 * h) - at(now - 2 * h)
    return (8 * near - far) / (12 * h)
