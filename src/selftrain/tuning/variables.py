r"""The variables of a search: free entries of a recipe, their bounds, and their coordinates.

Ridges and sharpness have logarithmic coordinates, a threshold is its own coordinate, and that of an
annealing rate is linear below `ANNEALING_SCALE` and logarithmic above. A name in `over` is one
number for all steps; a name in `schedule` is one number per step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput, nearest
from ..fields import number
from ..labelers import HardLabels
from ..parameters import SEARCH_BOUNDS, SMALLEST_RIDGE
from ..problem import Problem
from ..recipe import Recipe

if TYPE_CHECKING:
    from ..theory.gradients.gradient import Gradient

PER_STEP = ("lambda_u", "threshold", "sharpness")
"""Quantities that may be free at every step; annealing is itself a schedule of the sharpness."""

BIAS = "fix_bias"
"""Name of the switch that may be in `over` too; both of its values are tried."""

ANNEALING_SCALE = 0.03

SHOWN_AT_BOUND = 1e-7
"""Distance of a coordinate from a bound below which the result is reported as at the bound."""

_LOGARITHMIC = ("lambda_l", "lambda_u", "sharpness")


@dataclass(frozen=True)
class Variables:
    """The free entries of a recipe as a vector of coordinates.

    Attributes:
        base: recipe with the values of everything that is not free.
        names: the free quantities: those with one value for all steps, then those in `schedule`.
        bounds: bounds of each quantity (not of its coordinate).
        schedule: the free quantities with a separate value for each step.
        steps: number of steps.
    """

    base: Recipe
    names: tuple[str, ...]
    bounds: dict[str, tuple[float, float]]
    schedule: tuple[str, ...]
    steps: int

    def size(self, name: str) -> int:
        """Return the number of coordinates of a quantity."""
        return self.steps if name in self.schedule else 1

    def slices(self) -> dict[str, slice]:
        """Return the position of each quantity in the vector of coordinates."""
        places, begin = {}, 0
        for name in self.names:
            places[name] = slice(begin, begin + self.size(name))
            begin += self.size(name)
        return places

    def recipe(self, x: Array) -> Recipe:
        """Return the recipe at the coordinates x."""
        values: dict[str, Any] = {}
        for name, place in self.slices().items():
            low, high = self.bounds[name]
            entries = np.clip(inverse(name, x[place]), low, high)
            values[name] = tuple(entries.tolist()) if name in self.schedule else float(entries[0])
        return self.base.replace(**values)

    def coordinates(self, recipe: Recipe) -> Array:
        """Return the coordinates of a recipe."""
        parts = [
            forward(name, np.broadcast_to(getattr(recipe, name), self.size(name)))
            for name in self.names
        ]
        return np.concatenate(parts).astype(float)

    def box(self) -> tuple[Array, Array]:
        """Return lower and upper bounds of the coordinates."""
        low, high = (
            np.repeat(
                [float(forward(name, self.bounds[name][side])) for name in self.names],
                [self.size(name) for name in self.names],
            )
            for side in (0, 1)
        )
        return low, high

    def active_bounds(self, x: Array) -> dict[str, str | dict[str, tuple[int, ...]]]:
        """Return the quantities at a bound and the side; for a schedule, the steps at each side."""
        low, high = self.box()
        found: dict[str, str | dict[str, tuple[int, ...]]] = {}
        for name, place in self.slices().items():
            below = np.flatnonzero(x[place] <= low[place] + SHOWN_AT_BOUND)
            above = np.flatnonzero(x[place] >= high[place] - SHOWN_AT_BOUND)
            sides = {side: at for side, at in (("lower", below), ("upper", above)) if at.size}
            if sides and name in self.schedule:
                found[name] = {side: tuple((at + 1).tolist()) for side, at in sides.items()}
            elif sides:
                found[name] = next(iter(sides))
        return found

    def slope(self, x: Array, gradient: Gradient) -> Array:
        """Return the gradient with respect to the coordinates."""
        out = np.empty(x.size)
        for name, place in self.slices().items():
            free = name in self.schedule
            slope = np.asarray(gradient[name] if free else gradient.total(name))
            out[place] = slope * derivative(name, x[place])
        return out


def forward(name: str, value: Any) -> Array:
    """Return the coordinate of a value."""
    if name == "annealing":
        return np.asarray(np.log1p(np.asarray(value) / ANNEALING_SCALE))
    return np.asarray(np.log(value) if name in _LOGARITHMIC else value, dtype=float)


def inverse(name: str, x: Array) -> Array:
    """Return the value of a coordinate."""
    if name == "annealing":
        return np.asarray(ANNEALING_SCALE * np.expm1(x))
    return np.asarray(np.exp(x) if name in _LOGARITHMIC else x, dtype=float)


def derivative(name: str, x: Array) -> Array:
    """Return d value / d coordinate."""
    if name == "annealing":
        return np.asarray(ANNEALING_SCALE * np.exp(x))
    return np.asarray(np.exp(x) if name in _LOGARITHMIC else np.ones_like(x))


def variables(problem: Problem, over: Any, schedule: Any, bounds: Any, start: Any) -> Variables:
    """Return the variables of `optimize`, from validated arguments; their `base` is the start."""
    free = _names("schedule", schedule)
    constants = tuple(name for name in _names("over", over) if name not in free)
    names = (*constants, *free)
    if not names:
        raise InvalidInput("over", over, f"must have at least one of {', '.join(SEARCH_BOUNDS)}")
    for name in free:
        if name not in PER_STEP:
            raise InvalidInput("schedule", name, f"must be one of {', '.join(PER_STEP)}")
    if "annealing" in names and "sharpness" in free:
        accepted = "must not have annealing if the sharpness is free at every step"
        raise InvalidInput("over", "annealing", accepted)
    if problem.steps == 0 and names != ("lambda_l",):
        raise InvalidInput("over", names, "must be lambda_l only if steps = 0")
    limits = _bounds(bounds, names)
    base = _start(start)
    hard = np.isinf(base.sharpness).any() or isinstance(base.label_function, HardLabels)
    if hard and {"sharpness", "annealing"} & set(names):
        accepted = "must not have sharpness or annealing with hard labels"
        raise InvalidInput("over", names, accepted)
    middle: dict[str, float] = {}
    for name in names:
        value = getattr(base, name)
        if isinstance(value, tuple) and name in constants:
            raise InvalidInput(name, value, "must be one number: it is optimised as a constant")
        low, high = limits[name]
        if low <= np.min(value) and np.max(value) <= high:
            continue
        if isinstance(start, Recipe) or (start is not None and name in start):
            accepted = f"must be a start within the bounds {low:g} to {high:g}"
            raise InvalidInput(name, value, accepted)
        centre = 0.5 * (forward(name, low) + forward(name, high))
        middle[name] = float(np.clip(inverse(name, centre), low, high))
    begin = base.replace(**middle)
    begin.at_steps(problem.steps)
    return Variables(begin, names, limits, free, problem.steps)


def without_bias(over: Any, schedule: Any) -> tuple[tuple[str, ...], bool]:
    """Return `over` without `fix_bias`, and whether `fix_bias` was in it."""
    names = (over,) if isinstance(over, str) else over
    if not isinstance(names, Sequence) or BIAS not in names:
        return over, False
    numbers = tuple(name for name in names if name != BIAS)
    if not numbers and not schedule:
        accepted = f"must have, besides {BIAS}, at least one of {', '.join(SEARCH_BOUNDS)}"
        raise InvalidInput("over", over, accepted)
    return numbers, True


def _names(field: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Sequence):
        raise InvalidInput(field, value, "must be a sequence of names")
    for name in value:
        if not isinstance(name, str) or name not in SEARCH_BOUNDS:
            raise InvalidInput(field, name, f"unknown name; {nearest(str(name), SEARCH_BOUNDS)}")
    if len(set(value)) < len(value):
        raise InvalidInput(field, value, "must have each name once")
    return tuple(value)


def _bounds(bounds: Any, names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    given = {} if bounds is None else bounds
    if not isinstance(given, Mapping):
        raise InvalidInput("bounds", bounds, "must map names to pairs (low, high)")
    for name in given:
        if name not in names:
            raise InvalidInput("bounds", name, f"not optimised here; {nearest(str(name), names)}")
    return {
        name: checked_bounds(f"bounds[{name}]", name, given.get(name, SEARCH_BOUNDS[name]))
        for name in names
    }


def checked_bounds(field: str, name: str, pair: Any) -> tuple[float, float]:
    """Return validated bounds of a quantity; a lower bound of zero for a ridge, which has no
    logarithm, becomes the smallest ridge.
    """
    accepted = "must be two finite numbers with 0 <= low < high"
    try:
        low, high = (number(field, value, math.isfinite, accepted) for value in pair)
    except (TypeError, ValueError):
        raise InvalidInput(field, pair, accepted) from None
    if low == 0 and name in ("lambda_l", "lambda_u"):
        low = SMALLEST_RIDGE
    if name in _LOGARITHMIC and low < SMALLEST_RIDGE:
        raise InvalidInput(field, pair, f"must have {SMALLEST_RIDGE:g} <= low < high")
    if not 0 <= low < high:
        raise InvalidInput(field, pair, accepted)
    return low, high


def _start(start: Any) -> Recipe:
    if start is None:
        return Recipe()
    if isinstance(start, Recipe):
        return start
    if isinstance(start, Mapping):
        return Recipe.from_dict(start)
    raise InvalidInput("start", start, "must be a selftrain.Recipe, or a mapping of its fields")
