"""The linear rule with the smallest error on two known Gaussian clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from .covariances import NEGATIVE, widened

__all__ = ["LinearRule", "best_rule"]


class LinearRule(NamedTuple):
    """A rule that predicts the positive class if weights @ (x - midpoint) + bias > 0, and its
    error.
    """

    weights: Array
    bias: float
    error: float


def best_rule(mean: Array, covariances: Sequence[Array], rho: float) -> LinearRule:
    """Find the linear rule with the smallest error; see `Clusters.best_rule`."""
    full = [widened(matrix, mean.size) for matrix in covariances]
    if any(matrix.ndim == 2 for matrix in full):
        full = [np.diag(matrix) if matrix.ndim == 1 else matrix for matrix in full]

    def at(t: float) -> LinearRule | None:
        weights = _direction((1 - t) * full[0] + t * full[-1], mean)
        if weights is None:
            return None
        squares = [weights @ (s @ weights if s.ndim == 2 else s * weights) for s in full]
        m = float(mean @ weights)
        return _best_bias(weights, m, math.sqrt(squares[0]), math.sqrt(squares[-1]), rho)

    if len(full) == 1:
        only = at(0.0)
        assert only is not None
        return only
    # The best t may lie outside [0, 1] if the best bias misclassifies most of a rare class.
    low, high = -2.0, 3.0
    best: LinearRule | None = None
    for _ in range(6):
        grid = np.linspace(low, high, 41)
        rules = [at(float(t)) for t in grid]
        errors = [math.inf if rule is None else rule.error for rule in rules]
        i = int(np.argmin(errors))
        best = rules[i]
        low, high = grid[max(i - 1, 0)], grid[min(i + 1, 40)]
    assert best is not None
    return best


def _direction(mixed: Array, mean: Array) -> Array | None:
    """Return the direction for a weighted sum of covariances; None if the sum is not positive
    semidefinite.
    """
    if mixed.ndim == 1:
        if mixed.min() < 0 or np.any((mixed == 0) & (mean != 0)):
            return None
        return np.asarray(np.divide(mean, mixed, out=np.zeros_like(mean), where=mixed > 0))
    values, vectors = np.linalg.eigh(mixed)
    if values[0] < -NEGATIVE * values[-1]:
        return None
    alive = values > NEGATIVE * 1e-3 * values[-1]
    inside = vectors[:, alive]
    return np.asarray(inside @ ((mean @ inside) / values[alive]))


def _best_bias(weights: Array, m: float, down: float, up: float, rho: float) -> LinearRule:
    r"""Return the rule with the best bias, where the weighted densities of the projected classes
    are equal: $\rho\varphi(u_+)/\sqrt{q_+} = (1-\rho)\varphi(u_-)/\sqrt{q_-}$.
    """
    from scipy.special import ndtr

    # The logarithm of the ratio of both sides is quadratic in the bias.
    odds = 2 * math.log(rho * down / ((1 - rho) * up))
    square, linear = 1 / down**2 - 1 / up**2, -2 * m * (1 / down**2 + 1 / up**2)
    constant = m * m * square + odds
    if abs(square) * abs(constant) < 1e-12 * linear**2:
        candidates = [-constant / linear]
    else:
        root = math.sqrt(max(linear**2 - 4 * square * constant, 0.0))
        large = -0.5 * (linear + math.copysign(root, linear))
        candidates = [large / square, constant / large]
    reach = 40 * (m + up + down)
    rules = [
        (float(rho * ndtr(-(m + b) / up) + (1 - rho) * ndtr(-(m - b) / down)), b)
        for b in (*candidates, -reach, reach)
    ]
    error, bias = min(rules)
    return LinearRule(weights, float(bias), error)
