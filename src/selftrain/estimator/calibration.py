r"""From scores at even odds to probabilities of the population.

$P(y=1) = \sigma(a s + b)$ on the held-out scores of the labelled samples, at the maximum of the
posterior: few labels do not determine two numbers, so the slope is near 1 and the intercept near
the log-odds of the estimated class proportion.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from ..arrays import Array

SHARE_SPREAD = 0.6
"""Prior standard deviation of the intercept around the log-odds of the class proportion."""

SETTLED = 1e-11
"""Gradient per weight of the labelled samples at which the search ends."""


def calibrate(
    scores: Array,
    classes: Array,
    weights: Array,
    share: float,
    slope_spread: float,
    offset: float = 0.0,
) -> tuple[float, float]:
    """Return slope and intercept of the log-odds.

    Arguments:
        share: estimated proportion of the positive class in the population.
        slope_spread: prior standard deviation of the log of the slope.
        offset: log-odds of the labelled proportion minus that of the population.

    The slope enters by its logarithm, so it stays positive.
    """
    center = np.array([0.0, float(logit(share))])
    precision = 1 / np.array([slope_spread, SHARE_SPREAD]) ** 2

    def value(point: Array) -> float:
        logits = np.exp(point[0]) * scores + point[1] + offset
        loss = weights @ (np.logaddexp(0.0, logits) - classes * logits)
        return float(loss + 0.5 * precision @ (point - center) ** 2)

    def gradient(point: Array) -> Array:
        stretched = np.exp(point[0]) * scores
        residual = weights * (expit(stretched + point[1] + offset) - classes)
        slope = np.array([residual @ stretched, residual.sum()])
        return np.asarray(slope + precision * (point - center))

    def hessian(point: Array) -> Array:
        stretched = np.exp(point[0]) * scores
        probability = expit(stretched + point[1] + offset)
        curvature = weights * probability * (1 - probability)
        bend = weights * (probability - classes) @ stretched
        mixed = curvature @ stretched
        second = [[curvature @ stretched**2 + bend, mixed], [mixed, curvature.sum()]]
        return np.asarray(second + np.diag(precision))

    least = SETTLED * max(1.0, float(weights.sum()))
    found = minimize(
        value, center, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": least}
    ).x
    return float(np.exp(found[0])), float(found[1])
