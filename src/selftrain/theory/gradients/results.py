r"""The derivatives of a number L of a run in its results, and in problem and recipe where L names
them itself.

For the generalisation error, for what is made of the columns of a step and for the selection these
are formulas. For everything else (training loss, a user's function) they are central differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ..shapes.trajectory import ShapedTrajectory
from ..trajectory import STATE
from .columns import COLUMNS, OFF_BEST, STRENGTHS, VARIANCES, B, M, V
from .differences import AT_ZERO, SCALARS, as_number, differences
from .pulls import FIRST_FIELD, LIMIT, OLD_BIAS, OLD_M
from .sweep import Wanted, nothing_wanted


@dataclass(frozen=True)
class Results:
    """L and its derivatives.

    Attributes:
        value: L.
        wanted: in the results of the run.
        direct: in fields of problem and recipe that L depends on besides.
    """

    value: float
    wanted: Wanted
    direct: dict[str, float | Array] = field(default_factory=dict)


def results(
    run: ShapedTrajectory, of: str | Callable[[ShapedTrajectory], float], at: int | None
) -> Results:
    """The derivatives of a recorded quantity at step `at`, or of a function of the run."""
    if callable(of):
        return _by_differences(run, of)
    assert at is not None
    value = float(getattr(run, of)[at])
    wanted = nothing_wanted(run)
    column = wanted.columns[at]
    if of in STATE:
        column[COLUMNS.index(of)] = 1.0
        return Results(value, wanted)
    if of == "error":
        return Results(value, wanted, _error(run, at, column))
    if of in _OF_COLUMNS:
        _OF_COLUMNS[of](run, at, column)
        return Results(value, wanted)
    if of in _SELECTIONS and at > 0:
        return Results(value, wanted, _selection(run, of, at, wanted.pulls[at]))
    return _by_differences(run, lambda other: float(getattr(other, of)[at]))


def _error(run: ShapedTrajectory, at: int, column: Array) -> dict[str, float | Array]:
    r"""Of $\rho H((m+B)/\sqrt{q_+}) + (1-\rho) H((m-B)/\sqrt{q_-})$, and in the test mixture."""
    m, bias = float(run.scaled("m")[at]), float(run.scaled("bias")[at])
    rho, variances, tails = run.problem.test_mixture.rho, run.scaled("logit_variances")[at], []
    for k, (sign, share) in enumerate(((-1.0, 1.0 - rho), (1.0, rho))):
        scale = math.sqrt(variances[k])
        z = (m + sign * bias) / scale
        density = -share * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        column[M] += density / scale
        column[B] += sign * density / scale
        column[VARIANCES + k] = -0.5 * density * z / variances[k]
        tails.append(float(ndtr(-z)))
    return _in_test_rho(run, tails[1] - tails[0])


def _in_test_rho(run: ShapedTrajectory, by_rho: float) -> dict[str, float | Array]:
    """A derivative in the proportion of positives of the test mixture, by the name of what sets
    it.
    """
    problem = run.problem
    if isinstance(problem.test, tuple):
        return {}
    if problem.test == "labeled" or problem.steps == 0:
        return {"rho": by_rho}
    last = np.zeros(problem.steps)
    last[-1] = by_rho
    return {"rho_u": last}


def _q(run: ShapedTrajectory, at: int, column: Array) -> None:
    m, length = float(run.scaled("m")[at]), run.problem.test_clusters.length
    column[M], column[V] = 2 * m / length**2, 1.0


def _cosine(run: ShapedTrajectory, at: int, column: Array, sign: float = 1.0) -> None:
    """Of the cosine; q^(3/2) would underflow where q does not."""
    best = run.problem.test_clusters.separation
    m, off = float(run.scaled("m")[at]) / best, float(run.scaled("off_best")[at])
    q = m * m + off
    root = math.sqrt(q)
    column[M], column[OFF_BEST] = sign * off / q / root / best, -sign * 0.5 * m / root / q


def _one_minus_cosine(run: ShapedTrajectory, at: int, column: Array) -> None:
    _cosine(run, at, column, -1.0)


def _bias_to_norm(run: ShapedTrajectory, at: int, column: Array) -> None:
    m, v, bias = (float(run.scaled(name)[at]) for name in STATE[:3])
    length = run.problem.test_clusters.length
    q = (m / length) ** 2 + v
    column[M], column[V] = -bias * m / length**2 / q**1.5, -0.5 * bias / q**1.5
    column[B] = 1.0 / math.sqrt(q)


_OF_COLUMNS: dict[str, Callable[[ShapedTrajectory, int, Array], None]] = {
    "q": _q,
    "cosine": _cosine,
    "one_minus_cosine": _one_minus_cosine,
    "bias_to_norm": _bias_to_norm,
}
"""Derivatives of what is made of the columns of one step."""

_SELECTIONS = ("fraction_selected", "pseudo_label_accuracy", "selected_label_accuracy")


def _selection(run: ShapedTrajectory, of: str, at: int, pulls: Array) -> dict[str, float | Array]:
    r"""Of the share of the batch that is selected, on the right and on the wrong side of the
    plane: $\sum_s p_s H((\pm\text{limit} \mp (m' + sB'))/\sqrt{q'_s})$.
    """
    (m, *squares), groups = run.on_batch(at - 1), run.space.groups
    bias, rho = float(run.scaled("bias")[at - 1]), float(run.problem.unlabeled.rho[at - 1])
    limit = 0.0 if of == "pseudo_label_accuracy" else float(run._limits[at - 1])
    sums, table = np.zeros(2), np.zeros((2, pulls.size))
    by_rho = np.zeros(2)
    for k, (sign, share) in enumerate(((-1.0, 1.0 - rho), (1.0, rho))):
        root = math.sqrt(squares[k])
        for wrong, side in enumerate((1.0, -1.0)):
            z = (side * (m + sign * bias) - limit) / root
            density = share * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) / root
            sums[wrong] += share * ndtr(z)
            by_rho[wrong] += sign * ndtr(z)
            table[wrong, OLD_M] += side * density
            table[wrong, OLD_BIAS] += side * sign * density
            table[wrong, LIMIT] -= density
            place = FIRST_FIELD + 1 + 3 * groups + min(k, groups - 1)
            table[wrong, place] -= density * z
    if of == "pseudo_label_accuracy":
        weights = np.array([1.0, 0.0])
        table[:, LIMIT] = 0.0
    elif of == "fraction_selected":
        weights = np.ones(2)
    else:
        weights = np.array([sums[1], -sums[0]]) / sums.sum() ** 2
    pulls += weights @ table
    each = np.zeros(run.problem.steps)
    each[at - 1] = float(weights @ by_rho)
    return {"rho_u": each}


_FIELDS = {
    "problem": ("alpha_l", "alpha_u", "rho", "rho_u"),
    "recipe": ("lambda_l", "lambda_u", "threshold", "sharpness", "annealing"),
}


def _by_differences(
    run: ShapedTrajectory, function: Callable[[ShapedTrajectory], float]
) -> Results:
    run = _spelled_out(run)
    value = as_number(function(run))
    wanted = nothing_wanted(run)
    for name, place in _places():
        now = np.asarray(getattr(run, name), dtype=float)
        scale = _scales(run, name, now)

        def at(values: Array, name: str = name, shape: Any = now.shape) -> float:
            return as_number(function(replace(run, **{name: values.reshape(shape)})))  # type: ignore[arg-type]

        slope = differences(at, now.ravel(), scale.ravel(), value).reshape(now.shape)
        if name == "unknowns":
            wanted.unknowns[:] = slope
        else:
            wanted.columns[:, place : place + (now.size // len(now))] = slope.reshape(len(now), -1)
    wanted = wanted._replace(**_in_laws(run, function, value))
    return Results(value, wanted, _direct(run, function, value))


def _places() -> list[tuple[str, int]]:
    """The arrays of a run that L may look at, and where their derivatives go."""
    columns = [(name, i) for i, name in enumerate(COLUMNS[:-2])]
    return [*columns, ("logit_variances", VARIANCES), ("strengths", STRENGTHS), ("unknowns", 0)]


def _scales(run: ShapedTrajectory, name: str, now: Array) -> Array:
    """What a change of a column is measured by."""
    norm = np.sqrt(run.q)
    if name == "m":
        return np.asarray(norm * run.problem.test_clusters.length)
    if name == "bias":
        return np.asarray(np.abs(run.bias) + np.sqrt(run.logit_variances).max(axis=1))
    if name == "overlap":
        return np.asarray(norm * norm)
    if name == "unknowns":
        size = np.abs(now)
        size[:, 2 + run.space.groups :] = 1.0
        size[:, 1] = np.abs(run.bias) + norm
        return np.asarray(size)
    return np.abs(now)


def _in_laws(
    run: ShapedTrajectory, function: Callable[[ShapedTrajectory], float], value: float
) -> dict[str, Array]:
    """Derivatives in the laws of the weights, if L looks at them."""
    laws = run.history
    arrays = {name: np.array([getattr(law, name) for law in laws]) for name in ("mean", "variance")}

    def at(name: str, values: Array) -> float:
        moved = arrays | {name: values.reshape(arrays[name].shape)}
        pairs = zip(moved["mean"], moved["variance"], strict=True)
        history = tuple(type(laws[0])(*pair) for pair in pairs)
        return as_number(function(replace(run, history=history)))

    slopes = {}
    for name, target in (("mean", "means"), ("variance", "spreads")):
        now = arrays[name]
        flat = now.reshape(len(now), -1)
        size = np.abs(flat).max(axis=1, keepdims=True) + 0.0 * flat
        found = differences(partial(at, name), now.ravel(), size.ravel(), value)
        slopes[target] = found.reshape(now.shape)
    if not any(slope.any() for slope in slopes.values()):
        return {}
    steps = run.problem.steps + 1 - len(laws)
    return {
        name: np.concatenate([x, np.zeros((steps, *x.shape[1:]))]) for name, x in slopes.items()
    }


def _direct(
    run: ShapedTrajectory, function: Callable[[ShapedTrajectory], float], value: float
) -> dict[str, float | Array]:
    """Derivatives in problem and recipe where L names them itself."""
    direct: dict[str, float | Array] = {}
    for word, names in _FIELDS.items():
        given = getattr(run, word)
        for name in names:
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
    if run.problem.steps > 0 and not isinstance(run.recipe.annealing, tuple):
        direct["annealing"] = float(np.sum(direct["annealing"]))
    return direct


def _spelled_out(run: ShapedTrajectory) -> ShapedTrajectory:
    """The same run with every per-step entry of problem and recipe written out."""
    problem, recipe = run.problem, run.recipe
    steps, batches = problem.steps, problem.unlabeled
    if steps == 0:
        return run
    values = {"alpha_u": tuple(batches.alpha.tolist()), "rho_u": tuple(batches.rho.tolist())}
    choices = {
        name: tuple(np.broadcast_to(getattr(recipe, name), steps).tolist())
        for name in ("lambda_u", "threshold", "sharpness", "annealing")
    }
    return replace(run, problem=problem.replace(**values), recipe=recipe.replace(**choices))
