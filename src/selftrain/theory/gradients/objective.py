r"""The derivatives of a number L of a run in its states, and in problem and recipe where L names
them itself.

For the generalisation error and what is made of a single state these are formulas. For everything
else (selected fraction, training loss, a user's function) they are central differences, taken only
where L changes at all: a block of entries that can be shaken without effect has derivative zero,
which a search by halves finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ...errors import InvalidInput
from ..trajectory import STATE, Trajectory

DIFFERENCE = 1e-5
"""Relative size of a step of the central differences."""

AT_ZERO = 10.0
"""The scale of a threshold, annealing, ... of 0: a one-sided difference over 1e-4 rises above the
rounding of its ends.
"""

QUIET = 1e-12
"""A relative change this small is the error of the averages, which use another rule at 0 than
beside it.
"""


@dataclass(frozen=True)
class Partials:
    """L and its derivatives.

    Attributes:
        value: L.
        rows: in the states: a row a step, the columns of `trajectory.STATE`.
        direct: in fields of problem and recipe that L depends on beside the states.
    """

    value: float
    rows: Array
    direct: dict[str, float | Array] = field(default_factory=dict)


def partials(
    trajectory: Trajectory, of: str | Callable[[Trajectory], float], at: int | None
) -> Partials:
    """The derivatives of a recorded quantity at step `at`, or of a function of the run."""
    if isinstance(of, str):
        assert at is not None
        rows = np.zeros((trajectory.problem.steps + 1, len(STATE)))
        value = float(getattr(trajectory, of)[at])
        if of == "error":
            rows[at, :3], direct = _of_error(trajectory, at)
            return Partials(value, rows, direct)
        if of in STATE:
            rows[at, STATE.index(of)] = 1.0
            return Partials(value, rows)
        if of in _SHAPES:
            m, v, bias = (float(trajectory.scaled(name)[at]) for name in STATE[:3])
            rows[at, :3] = _SHAPES[of](m, v, bias)
            return Partials(value, rows)
        return _by_differences(trajectory, lambda run: float(getattr(run, of)[at]))
    return _by_differences(trajectory, of)


def _of_cosine(m: float, v: float) -> tuple[float, float]:
    """Derivatives of the cosine in m and v; q^(3/2) would underflow where q does not."""
    q = m * m + v
    root = math.sqrt(q)
    return v / q / root, -0.5 * m / root / q


_SHAPES: dict[str, Callable[[float, float, float], tuple[float, float, float]]] = {
    "q": lambda m, v, bias: (2 * m, 1.0, 0.0),
    "cosine": lambda m, v, bias: (*_of_cosine(m, v), 0.0),
    "one_minus_cosine": lambda m, v, bias: (-_of_cosine(m, v)[0], -_of_cosine(m, v)[1], 0.0),
    "bias_to_norm": lambda m, v, bias: (
        -bias * m / (m * m + v) ** 1.5,
        -0.5 * bias / (m * m + v) ** 1.5,
        1.0 / math.sqrt(m * m + v),
    ),
}
"""Derivatives in (m, v, B) of what is made of one state."""


def _of_error(trajectory: Trajectory, at: int) -> tuple[Array, dict[str, float | Array]]:
    r"""Of $\rho H(k_+) + (1-\rho) H(k_-)$, $k_\pm = (m \pm B)/\sqrt{\Delta q}$: in (m, v, B), and
    in the test mixture.
    """
    problem = trajectory.problem
    m, v, bias = (float(trajectory.scaled(name)[at]) for name in STATE[:3])
    rho, delta = problem.test_mixture
    q = m * m + v
    scale = math.sqrt(delta * q)
    row, by_delta, tails = np.zeros(3), 0.0, []
    for sign, share in ((1.0, rho), (-1.0, 1.0 - rho)):
        k = (m + sign * bias) / scale
        density = -share * math.exp(-0.5 * k * k) / math.sqrt(2 * math.pi)
        row += density * np.array([(v - sign * bias * m) / q / scale, -0.5 * k / q, sign / scale])
        by_delta -= density * 0.5 * k / delta
        tails.append(float(ndtr(-k)))
    by_rho = tails[0] - tails[1]
    if isinstance(problem.test, tuple):
        return row, {}
    if problem.test == "labeled" or problem.steps == 0:
        return row, {"rho": by_rho, "delta": by_delta}
    last = np.zeros(problem.steps)
    last[-1] = 1.0
    return row, {"rho_u": by_rho * last, "delta_u": by_delta * last}


def _by_differences(trajectory: Trajectory, function: Callable[[Trajectory], float]) -> Partials:
    run = _spelled_out(trajectory)
    value = _number(function(run))
    rows = np.zeros((trajectory.problem.steps + 1, len(STATE)))
    norm = np.hypot(run.m, np.sqrt(run.v))
    scales = {"m": norm, "bias": np.abs(run.bias) + norm, "overlap": norm * norm}
    for i, name in enumerate(STATE):
        column = getattr(run, name)
        scale = scales.get(name, np.abs(column))

        def at(values: Array, name: str = name) -> float:
            changes: dict[str, Any] = {name: values}
            return _number(function(replace(run, **changes)))

        rows[:, i] = _differences(at, column, scale, value)
    direct: dict[str, float | Array] = {}
    for word in ("problem", "recipe"):
        given = getattr(run, word)
        for name in _FIELDS[word]:
            entries = np.atleast_1d(np.asarray(getattr(given, name), dtype=float))

            def when(
                values: Array, word: str = word, given: Any = given, name: str = name
            ) -> float:
                scalar = name in _SCALARS or not isinstance(getattr(given, name), tuple)
                entry = float(values[0]) if scalar else tuple(values.tolist())
                return _number(function(replace(run, **{word: given.replace(**{name: entry})})))

            scale = np.where(entries == 0.0, AT_ZERO, np.abs(entries))
            if name.startswith("rho"):
                scale = np.minimum(scale, 1.0 - entries)
            slope = _differences(when, entries, scale, value)
            direct[name] = float(slope[0]) if name in _SCALARS else slope
    if not isinstance(trajectory.recipe.annealing, tuple):
        direct["annealing"] = float(np.sum(direct["annealing"]))
    return Partials(value, rows, direct)


_FIELDS = {
    "problem": ("alpha_l", "alpha_u", "rho", "rho_u", "delta", "delta_u"),
    "recipe": ("lambda_l", "lambda_u", "threshold", "sharpness", "annealing"),
}
_SCALARS = ("alpha_l", "rho", "delta", "lambda_l")


def _spelled_out(trajectory: Trajectory) -> Trajectory:
    """The same run with every per-step entry of problem and recipe written out."""
    problem, recipe = trajectory.problem, trajectory.recipe
    steps, batches = problem.steps, problem.unlabeled
    if steps == 0:
        return trajectory
    values = {
        "alpha_u": tuple(batches.alpha.tolist()),
        "rho_u": tuple(batches.rho.tolist()),
        "delta_u": tuple(batches.delta.tolist()),
    }
    choices = {
        name: tuple(np.broadcast_to(getattr(recipe, name), steps).tolist())
        for name in ("lambda_u", "threshold", "sharpness", "annealing")
    }
    return replace(trajectory, problem=problem.replace(**values), recipe=recipe.replace(**choices))


def _differences(
    function: Callable[[Array], float], at: Array, scale: Array, value: float
) -> Array:
    """The gradient of a function of an array, by central differences where it changes at all.

    A zero with a one-sided domain (a threshold, an annealing of 0) takes a difference from above.
    """
    slope = np.zeros(at.size)
    shake = np.random.default_rng(0).uniform(0.5, 1.0, at.size)
    movable = np.isfinite(at) & (scale > 0)

    def search(low: int, high: int) -> None:
        block = np.zeros(at.size, dtype=bool)
        block[low:high] = movable[low:high]
        if not block.any():
            return
        if function(np.where(block, at + DIFFERENCE * shake * scale, at)) == value:
            return
        if high - low > 1:
            middle = (low + high) // 2
            search(low, middle)
            search(middle, high)
            return
        step = DIFFERENCE * scale[low]
        if at[low] == 0.0:
            one, two = (function(_moved(at, low, k * step)) for k in (1, 2))
            if max(abs(one - value), abs(two - value)) > QUIET * abs(value):
                slope[low] = (4 * one - two - 3 * value) / (2 * step)
        else:
            up, down = (function(_moved(at, low, k * step)) for k in (1, -1))
            slope[low] = (up - down) / (2 * step)

    search(0, at.size)
    return slope


def _moved(at: Array, index: int, by: float) -> Array:
    moved = at.copy()
    moved[index] += by
    return moved


def _number(value: Any) -> float:
    accepted = "a function that returns one finite number is accepted"
    try:
        result = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput("of", value, accepted) from None
    if result.size != 1 or not np.isfinite(result).all():
        raise InvalidInput("of", value, accepted)
    return float(result.reshape(()))
