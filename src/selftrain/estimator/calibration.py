r"""From scores at even odds to probabilities of the population.

$P(y=1) = \sigma(a s + b)$ on the held-out scores of the labelled samples, at the maximum of the
posterior: few labels do not determine two numbers, so the slope is near 1 and the intercept near
the log-odds of the estimated class proportion.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ..arrays import Array

SHARE_SPREAD = 0.6
"""Prior standard deviation of the intercept around the log-odds of the class proportion."""

STEPS = 50


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

    Newton's method on (log a, b); the slope enters by its logarithm, so it stays positive.
    """
    center = float(np.log(share / (1 - share)))
    log_slope, intercept = 0.0, center

    def value(t: float, b: float) -> float:
        logits = np.exp(t) * scores + b + offset
        loss = float(weights @ (np.logaddexp(0.0, logits) - classes * logits))
        return loss + 0.5 * (t / slope_spread) ** 2 + 0.5 * ((b - center) / SHARE_SPREAD) ** 2

    present = value(log_slope, intercept)
    for _ in range(STEPS):
        stretched = np.exp(log_slope) * scores
        probability = expit(stretched + intercept + offset)
        residual = weights * (probability - classes)
        curvature = weights * probability * (1 - probability)
        slope = np.array(
            [
                residual @ stretched + log_slope / slope_spread**2,
                residual.sum() + (intercept - center) / SHARE_SPREAD**2,
            ]
        )
        # The positive part of the Hessian: a direction of descent also where it is indefinite.
        hessian = np.array(
            [
                [curvature @ stretched**2 + 1 / slope_spread**2, curvature @ stretched],
                [curvature @ stretched, curvature.sum() + 1 / SHARE_SPREAD**2],
            ]
        )
        step = -np.linalg.solve(hessian, slope)
        length = 1.0
        while length > 1e-8:
            reached = value(log_slope + length * step[0], intercept + length * step[1])
            if reached <= present:
                break
            length *= 0.5
        log_slope, intercept = log_slope + length * step[0], intercept + length * step[1]
        done = abs(present - reached) <= 1e-12 * (1 + abs(present))
        present = min(present, reached)
        if done:
            break
    return float(np.exp(log_slope)), float(intercept)
