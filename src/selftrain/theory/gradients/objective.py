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
from ..trajectory import STATE, Trajectory
from .differences import AT_ZERO, SCALARS, as_number, differences


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
    value = as_number(function(run))
    rows = np.zeros((trajectory.problem.steps + 1, len(STATE)))
    norm = np.hypot(run.m, np.sqrt(run.v))
    scales = {"m": norm, "bias": np.abs(run.bias) + norm, "overlap": norm * norm}
    for i, name in enumerate(STATE):
        column = getattr(run, name)
        scale = scales.get(name, np.abs(column))

        def at(values: Array, name: str = name) -> float:
            changes: dict[str, Any] = {name: values}
            return as_number(function(replace(run, **changes)))

        rows[:, i] = differences(at, column, scale, value)
    direct: dict[str, float | Array] = {}
    for word in ("problem", "recipe"):
        given = getattr(run, word)
        for name in _FIELDS[word]:
            entries = np.atleast_1d(np.asarray(getattr(given, name), dtype=float))

            def when(
                values: Array, word: str = word, given: Any = given, name: str = name
            ) -> float:
                scalar = name in SCALARS or not isinstance(getattr(given, name), tuple)
                entry = float(values[0]) if scalar else tuple(values.tolist())
                return as_number(function(replace(run, **{word: given.replace(**{name: entry})})))

            scale = np.where(entries == 0.0, AT_ZERO, np.abs(entries))
            if name.startswith("rho"):
                scale = np.minimum(scale, 1.0 - entries)
            slope = differences(when, entries, scale, value)
            direct[name] = float(slope[0]) if name in SCALARS else slope
    if not isinstance(trajectory.recipe.annealing, tuple):
        direct["annealing"] = float(np.sum(direct["annealing"]))
    return Partials(value, rows, direct)


_FIELDS = {
    "problem": ("alpha_l", "alpha_u", "rho", "rho_u", "delta", "delta_u"),
    "recipe": ("lambda_l", "lambda_u", "threshold", "sharpness", "annealing"),
}


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
