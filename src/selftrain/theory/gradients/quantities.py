r"""The direct derivatives of a number L in the results of a run, and in those fields of problem and
recipe on which L depends explicitly.

For the generalisation error, for functions of the order parameters of a step and for the selection
there are formulas. For everything else (training loss, a user's function) central differences are
used, only in the entries that L depends on: if a random change of a block of entries does not
change L, its derivatives are zero, and blocks are bisected to find the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ...errors import InvalidInput
from ..stats import STATE
from .pulls import BY_GROUP, LIMIT, OLD_BIAS, OLD_M
from .seeds import COLUMNS, OFF_BEST, VARIANCES, B, M, V, Wanted, nothing_wanted

if TYPE_CHECKING:
    from ..trajectory import Trajectory

FIELDS = {
    "problem": ("alpha_l", "alpha_u", "rho", "rho_u", "delta", "delta_u", "label_noise"),
    "recipe": ("lambda_l", "lambda_u", "threshold", "sharpness", "annealing"),
}
"""Fields of problem and recipe in which derivatives are computed."""

DIFFERENCE = 1e-5
"""Relative size of a step of the central differences."""

AT_ZERO = 10.0
"""Scale of a parameter (threshold, annealing, ...) that is 0: its one-sided difference has a step
of 1e-4, large enough against rounding errors.
"""

QUIET = 1e-12
"""A relative change of L up to this is an error of the averages, whose rule for a parameter of 0
differs from that beside it.
"""

SELECTIONS = ("fraction_selected", "pseudo_label_accuracy", "selected_label_accuracy")

Direct = dict[str, Any]
"""Derivatives in fields of problem and recipe, by name."""


class Results(NamedTuple):
    """The value of L, its derivatives in the results of the run, and its direct ones in fields of
    problem and recipe.
    """

    value: float
    wanted: Wanted
    direct: Direct


def results(run: Trajectory, of: str | Callable[[Trajectory], float], at: int | None) -> Results:
    """Return the derivatives of a recorded quantity at step `at`, or of a function of the run."""
    if callable(of):
        return _by_differences(run, of)
    assert at is not None
    wanted, direct = nothing_wanted(run), Direct()
    column = wanted.columns[at]
    if of in STATE:
        column[COLUMNS.index(of)] = 1.0
    elif of == "error":
        direct = _error(run, at, column) | _in_test(run, "delta", _by_noise(run, wanted))
    elif of in _OF_COLUMNS:
        _OF_COLUMNS[of](run, at, column)
    elif of in SELECTIONS and at > 0:
        direct = _selection(run, of, at, wanted.pulls[at])
    else:
        return _by_differences(run, lambda other: float(getattr(other, of)[at]))
    return Results(float(getattr(run, of)[at]), wanted, direct)


def _error(run: Trajectory, at: int, column: Array) -> Direct:
    r"""Fill `column` with the derivatives of $\rho H((m+B)/\sqrt{q_+}) + (1-\rho)
    H((m-B)/\sqrt{q_-})$ in the state; return those in the test mixture.
    """
    m, bias = float(run.scaled("m")[at]), float(run.scaled("bias")[at])
    rho, variances, by_rho = run.problem.test_mixture.rho, run.scaled("logit_variances")[at], 0.0
    for k, (sign, share) in enumerate(((-1.0, 1.0 - rho), (1.0, rho))):
        scale = math.sqrt(variances[k])
        z = (m + sign * bias) / scale
        density = -share * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        column[M] += density / scale
        column[B] += sign * density / scale
        column[VARIANCES + k] = -0.5 * density * z / variances[k]
        by_rho += sign * float(ndtr(-z))
    return _in_test(run, "rho", by_rho)


def _in_test(run: Trajectory, name: str, slope: float) -> Direct:
    """Return a derivative in rho or delta of the test mixture, by the name of the field that sets
    it: `name` or `name`_u; empty if `test` does.
    """
    problem = run.problem
    if isinstance(problem.test, tuple):
        return {}
    if problem.test == "labeled" or problem.steps == 0:
        return {name: slope}
    return {f"{name}_u": np.append(np.zeros(problem.steps - 1), slope)}


def _by_noise(run: Trajectory, wanted: Wanted) -> float:
    r"""Return the direct derivative in the $\Delta$ of the test samples, at fixed weights.

    The variances of the logits and `off_best` are proportional to $\Delta$.
    """
    if run.problem.clusters is not None:
        return 0.0
    variances, off = run.scaled("logit_variances"), run.scaled("off_best")
    total = np.nansum(wanted.columns[:, VARIANCES:] * variances)
    total += np.nansum(wanted.columns[:, OFF_BEST] * off)
    return float(total) / run.problem.test_mixture.delta


def _q(run: Trajectory, at: int, column: Array) -> None:
    m, length = float(run.scaled("m")[at]), run.problem.test_clusters.length
    column[M], column[V] = 2 * m / length**2, 1.0


def _cosine(run: Trajectory, at: int, column: Array, sign: float = 1.0) -> None:
    """Fill `column` with the derivatives of the cosine times `sign`, without q^(3/2), which may
    underflow.
    """
    best = run.problem.test_clusters.separation
    m, off = float(run.scaled("m")[at]) / best, float(run.scaled("off_best")[at])
    q = m * m + off
    root = math.sqrt(q)
    column[M], column[OFF_BEST] = sign * off / q / root / best, -sign * 0.5 * m / root / q


def _bias_to_norm(run: Trajectory, at: int, column: Array) -> None:
    m, v, bias = (float(run.scaled(name)[at]) for name in STATE[:3])
    length = run.problem.test_clusters.length
    q = (m / length) ** 2 + v
    column[M], column[V] = -bias * m / length**2 / q**1.5, -0.5 * bias / q**1.5
    column[B] = 1.0 / math.sqrt(q)


_OF_COLUMNS: dict[str, Callable[[Trajectory, int, Array], None]] = {
    "q": _q,
    "cosine": _cosine,
    "one_minus_cosine": lambda run, at, column: _cosine(run, at, column, -1.0),
    "bias_to_norm": _bias_to_norm,
}
"""Functions that fill in the derivatives of quantities that depend on the state of one step."""


def _selection(run: Trajectory, of: str, at: int, pulls: Array) -> Direct:
    r"""Return the derivatives of quantities of the selection, which follow from the proportions of
    the batch that are selected and classified correctly, or incorrectly: $\sum_s p_s
    H((\pm\text{limit} \mp (m' + sB'))/\sqrt{q'_s})$.
    """
    (m, *squares), groups = run.on_batch[at - 1], run.space.groups
    bias, rho = float(run.scaled("bias")[at - 1]), float(run.problem.unlabeled.rho[at - 1])
    limit = 0.0 if of == "pseudo_label_accuracy" else float(run.scaled_thresholds[at - 1])
    sums, by_rho, table = np.zeros(2), np.zeros(2), np.zeros((2, pulls.size))
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
            table[wrong, BY_GROUP + 3 * groups + min(k, groups - 1)] -= density * z
    weights = np.ones(2)
    if of == "pseudo_label_accuracy":
        weights, table[:, LIMIT] = np.array([1.0, 0.0]), 0.0
    elif of == "selected_label_accuracy":
        weights = np.array([sums[1], -sums[0]]) / sums.sum() ** 2
    pulls += weights @ table
    each = np.zeros(run.problem.steps)
    each[at - 1] = float(weights @ by_rho)
    return {"rho_u": each}


def _by_differences(run: Trajectory, function: Callable[[Trajectory], float]) -> Results:
    """Return the derivatives of any function of a run by finite differences in every array of the
    run and every number of its problem and recipe.
    """
    run = _spelled_out(run)
    value = _as_number(function(run))
    wanted, direct = nothing_wanted(run), Direct()

    def slope_in(now: Array, scale: Array, changed: Callable[[Array], dict[str, Any]]) -> Array:
        def moved(values: Array) -> float:
            return _as_number(function(replace(run, **changed(values.reshape(now.shape)))))

        return _differences(moved, now.ravel(), scale.ravel(), value).reshape(now.shape)

    def replaced(name: str) -> Callable[[Array], dict[str, Any]]:
        return lambda values: {name: values}

    slopes = {}
    for name in (*COLUMNS, "unknowns", "weight_means", "weight_spreads"):
        now = np.asarray(getattr(run, name), dtype=float)
        slopes[name] = slope_in(now, _scales(run, name, now), replaced(name))
    wanted.unknowns[:] = slopes["unknowns"]
    wanted.columns[:] = np.column_stack([slopes[name] for name in COLUMNS])
    wanted.means[:], wanted.spreads[:] = slopes["weight_means"], slopes["weight_spreads"]
    for word, names in FIELDS.items():
        given = getattr(run, word)
        for name in names:
            entry = getattr(given, name)
            if entry is None or np.ndim(entry) == 2:  # clusters for delta; a matrix of label noise
                continue

            def changed(x: Array, word: str = word, given: Any = given, name: str = name) -> Any:
                one = not isinstance(getattr(given, name), tuple)
                return {word: given.replace(**{name: float(x[0]) if one else tuple(x.tolist())})}

            now = np.atleast_1d(np.asarray(entry, dtype=float))
            scale = np.where(now == 0.0, AT_ZERO, np.abs(now))
            if name.startswith("rho"):
                scale = np.minimum(scale, 1.0 - now)
            slope = slope_in(now, scale, changed)
            direct[name] = slope if isinstance(entry, tuple) else float(slope[0])
    for name, own in _in_test(run, "delta", _by_noise(run, wanted)).items():
        direct[name] = np.asarray(direct.get(name, 0.0)) + own
    return Results(value, wanted, direct)


def _scales(run: Trajectory, name: str, now: Array) -> Array:
    """Return the scale of each entry of an array of the run, for finite differences."""
    norm, size = np.sqrt(run.q), np.abs(now)
    if name == "m":
        return np.asarray(norm * run.problem.test_clusters.length)
    if name == "bias":
        return np.asarray(np.abs(run.bias) + np.sqrt(run.logit_variances).max(axis=1))
    if name == "overlap":
        return np.asarray(norm * norm)
    if name == "unknowns":
        size[:, 2 + (size.shape[1] - 2) // 3 :] = 1.0
        size[:, 1] = np.abs(run.bias) + norm
    if name.startswith("weight_"):
        flat = size.reshape(len(size), -1)
        flat[:] = flat.max(axis=1, keepdims=True)
    return size


def _spelled_out(run: Trajectory) -> Trajectory:
    """Return the run with every schedule of problem and recipe as a tuple over the steps."""
    problem, recipe = run.problem, run.recipe
    steps, batches = problem.steps, problem.unlabeled
    if steps == 0:
        return run
    values = {"alpha_u": tuple(batches.alpha.tolist()), "rho_u": tuple(batches.rho.tolist())}
    if problem.clusters is None:
        values["delta_u"] = tuple(batches.delta.tolist())
    choices = {
        name: tuple(np.broadcast_to(getattr(recipe, name), steps).tolist())
        for name in FIELDS["recipe"][1:]
    }
    return replace(run, problem=problem.replace(**values), recipe=recipe.replace(**choices))


def _differences(
    function: Callable[[Array], float], at: Array, scale: Array, value: float
) -> Array:
    """Return the gradient of a function at the array `at`, where it has the value `value`.

    Entries that are zero get a difference from above, because the domain may end there (threshold,
    annealing).
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


def _as_number(value: Any) -> float:
    """Return the result of a user's function as a float; raise if it is not one finite number."""
    accepted = "must be a function that returns one finite number"
    try:
        result = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput("of", value, accepted) from None
    if result.size != 1 or not np.isfinite(result).all():
        raise InvalidInput("of", value, accepted)
    return float(result.reshape(()))
