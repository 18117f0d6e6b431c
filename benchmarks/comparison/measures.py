"""Measures of a verdict: errors, ranking, probabilities, class proportions."""

from __future__ import annotations

import math

import numpy as np
from sklearn.metrics import roc_auc_score

from selftrain.arrays import Array

from .competitors import Verdict

SMALLEST = 1e-6
"""Probabilities are clipped to this distance from 0 and 1, so that one confident mistake does not
dominate the log loss.
"""

DEGRADATION = 0.02
"""A run is degraded if its balanced error exceeds that of the supervised baseline by this much."""

BINS = 10


def measured(verdict: Verdict, truth: Array, hidden_share: float) -> dict[str, float]:
    """Return all measures of a verdict; NaN if the method does not give the required output.

    Arguments:
        hidden_share: true proportion of class 1 among the training rows.
    """
    wrong = verdict.decision != truth
    found = {
        "error": float(wrong.mean()),
        "balanced_error": balanced_error(verdict.decision, truth),
        "auc": float(roc_auc_score(truth, verdict.score)),
        "log_loss": math.nan,
        "calibration": math.nan,
        "share_error": verdict.share - hidden_share,
    }
    if verdict.probability is not None:
        p = np.clip(verdict.probability, SMALLEST, 1 - SMALLEST)
        found["log_loss"] = float(-np.mean(np.where(truth == 1, np.log(p), np.log1p(-p))))
        found["calibration"] = calibration_error(p, truth)
    return found


def balanced_error(decision: Array, truth: Array) -> float:
    """Return the mean over the classes of the fraction of wrong decisions.

    >>> balanced_error(np.array([1, 1, 0, 0]), np.array([1, 1, 1, 0]))
    0.16666666666666666
    """
    return float(0.5 * sum(np.mean(decision[truth == c] != c) for c in (0, 1)))


def calibration_error(probability: Array, truth: Array) -> float:
    """Return the mean distance between probability and frequency over ten bins of equal counts.

    >>> calibration_error(np.full(40, 0.25), np.tile([0, 0, 0, 1], 10))
    0.0
    """
    order = np.argsort(probability, kind="stable")
    bins = np.array_split(order, BINS) if np.ptp(probability) > 0 else [order]
    gaps = [len(b) * abs(float(probability[b].mean() - truth[b].mean())) for b in bins if len(b)]
    return float(sum(gaps) / len(truth))
