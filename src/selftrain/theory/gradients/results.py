r"""The derivatives of a number L of a run in its results, and in problem and recipe where L names
them itself.

For the generalisation error, for what is made of the columns of a step and for the selection these
are formulas. For everything else (training loss, a user's function) they are central differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ..stats import STATE
from .columns import COLUMNS, OFF_BEST, VARIANCES, B, M, V, Wanted, nothing_wanted
from .differences import AT_ZERO, SCALARS, as_number, differences
from .pulls import FIRST_FIELD, LIMIT, OLD_BIAS, OLD_M

if TYPE_CHECKING:
    from ..trajectory import Trajectory


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


def results(run: Trajectory, of: str | Callable[[Trajectory], float], at: int | None) -> Results:
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
        direct = _error(run, at, column)
        return Results(value, wanted, direct | _in_test(run, "delta", _by_noise(run, wanted)))
    if of in _OF_COLUMNS:
        _OF_COLUMNS[of](run, at, column)
        return Results(value, wanted)
    if of in _SELECTIONS and at > 0:
        return Results(value, wanted, _selection(run, of, at, wanted.pulls[at]))
    return _by_differences(run, lambda other: float(getattr(other, of)[at]))


def _error(run: Trajectory, at: int, column: Array) -> dict[str, float | Array]:
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
    return _in_test(run, "rho", tails[1] - tails[0])


def _in_test(run: Trajectory, name: str, slope: float) -> dict[str, float | Array]:
    """A derivative in rho or delta of the test mixture, by the name of what sets it."""
    problem = run.problem
    if isinstance(problem.test, tuple):
        return {}
    if problem.test == "labeled" or problem.steps == 0:
        return {name: slope}
    last = np.zeros(problem.steps)
    last[-1] = slope
    return {f"{name}_u": last}


def _by_noise(run: Trajectory, wanted: Wanted) -> float:
    r"""The derivative in $\Delta$ of the test samples, at fixed weights: the variances of the
    logits and the weights off the best direction, in the metric of the noise, grow with it.
    """
    if run.problem.clusters is not None:
        return 0.0
    variances, off = run.scaled("logit_variances"), run.scaled("off_best")
    slopes = wanted.columns[:, VARIANCES:] * variances
    total = np.nansum(slopes) + np.nansum(wanted.columns[:, OFF_BEST] * off)
    return float(total) / run.problem.test_mixture.delta


def _q(run: Trajectory, at: int, column: Array) -> None:
    m, length = float(run.scaled("m")[at]), run.problem.test_clusters.length
    column[M], column[V] = 2 * m / length**2, 1.0


def _cosine(run: Trajectory, at: int, column: Array, sign: float = 1.0) -> None:
    """Of the cosine; q^(3/2) would underflow where q does not."""
    best = run.problem.test_clusters.separation
    m, off = float(run.scaled("m")[at]) / best, float(run.scaled("off_best")[at])
    q = m * m + off
    root = math.sqrt(q)
    column[M], column[OFF_BEST] = sign * off / q / root / best, -sign * 0.5 * m / root / q


def _one_minus_cosine(run: Trajectory, at: int, column: Array) -> None:
    _cosine(run, at, column, -1.0)


def _bias_to_norm(run: Trajectory, at: int, column: Array) -> None:
    m, v, bias = (float(run.scaled(name)[at]) for name in STATE[:3])
    length = run.problem.test_clusters.length
    q = (m / length) ** 2 + v
    column[M], column[V] = -bias * m / length**2 / q**1.5, -0.5 * bias / q**1.5
    column[B] = 1.0 / math.sqrt(q)


_OF_COLUMNS: dict[str, Callable[[Trajectory, int, Array], None]] = {
    "q": _q,
    "cosine": _cosine,
    "one_minus_cosine": _one_minus_cosine,
    "bias_to_norm": _bias_to_norm,
}
"""Derivatives of what is made of the columns of one step."""

_SELECTIONS = ("fraction_selected", "pseudo_label_accuracy", "selected_label_accuracy")


def _selection(run: Trajectory, of: str, at: int, pulls: Array) -> dict[str, float | Array]:
    r"""Of the share of the batch that is selected, on the right and on the wrong side of the
    plane: $\sum_s p_s H((\pm\text{limit} \mp (m' + sB'))/\sqrt{q'_s})$.
    """
    assert run.space is not None
    (m, *squares), groups = run.on_batch[at - 1], run.space.groups
    bias, rho = float(run.scaled("bias")[at - 1]), float(run.problem.unlabeled.rho[at - 1])
    limit = 0.0 if of == "pseudo_label_accuracy" else float(run.scaled_thresholds[at - 1])
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
    "problem": ("alpha_l", "alpha_u", "rho", "rho_u", "delta", "delta_u"),
    "recipe": ("lambda_l", "lambda_u", "threshold", "sharpness", "annealing"),
}


def _by_differences(run: Trajectory, function: Callable[[Trajectory], float]) -> Results:
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
    direct = _direct(run, function, value)
    for name, own in _in_test(run, "delta", _by_noise(run, wanted)).items():
        direct[name] = np.asarray(direct.get(name, 0.0)) + own
    return Results(value, wanted, direct)


def _places() -> list[tuple[str, int]]:
    """The arrays of a run that L may look at, and where their derivatives go."""
    columns = [(name, i) for i, name in enumerate(COLUMNS[:-1])]
    return [*columns, ("logit_variances", VARIANCES), ("unknowns", 0)]


def _scales(run: Trajectory, name: str, now: Array) -> Array:
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
        size[:, 2 + (size.shape[1] - 2) // 3 :] = 1.0
        size[:, 1] = np.abs(run.bias) + norm
        return np.asarray(size)
    return np.abs(now)


def _in_laws(
    run: Trajectory, function: Callable[[Trajectory], float], value: float
) -> dict[str, Array]:
    """Derivatives in the laws of the weights, if L looks at them."""
    count = run.good_steps
    names = {"means": "weight_means", "spreads": "weight_spreads"}
    slopes = {}
    for target, name in names.items():
        now = getattr(run, name)[:count]
        flat = now.reshape(count, -1)
        size = np.abs(flat).max(axis=1, keepdims=True) + 0.0 * flat

        def at(values: Array, name: str = name, shape: Any = now.shape) -> float:
            moved = getattr(run, name).copy()
            moved[:count] = values.reshape(shape)
            changed: Any = {name: moved}
            return as_number(function(replace(run, **changed)))

        slopes[target] = differences(at, now.ravel(), size.ravel(), value).reshape(now.shape)
    if not any(slope.any() for slope in slopes.values()):
        return {}
    steps = run.problem.steps + 1 - count
    return {
        name: np.concatenate([x, np.zeros((steps, *x.shape[1:]))]) for name, x in slopes.items()
    }


def _direct(
    run: Trajectory, function: Callable[[Trajectory], float], value: float
) -> dict[str, float | Array]:
    """Derivatives in problem and recipe where L names them itself."""
    direct: dict[str, float | Array] = {}
    for word, names in _FIELDS.items():
        given = getattr(run, word)
        for name in names:
            if getattr(given, name) is None:  # clusters in place of delta
                continue
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
    return direct


def _spelled_out(run: Trajectory) -> Trajectory:
    """The same run with every per-step entry of problem and recipe written out."""
    problem, recipe = run.problem, run.recipe
    steps, batches = problem.steps, problem.unlabeled
    if steps == 0:
        return run
    values = {"alpha_u": tuple(batches.alpha.tolist()), "rho_u": tuple(batches.rho.tolist())}
    if problem.clusters is None:
        values["delta_u"] = tuple(batches.delta.tolist())
    choices = {
        name: tuple(np.broadcast_to(getattr(recipe, name), steps).tolist())
        for name in ("lambda_u", "threshold", "sharpness", "annealing")
    }
    return replace(run, problem=problem.replace(**values), recipe=recipe.replace(**choices))
