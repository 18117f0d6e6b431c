"""What a verdict is judged by: errors, ranking, probabilities, class share."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from selftrain.arrays import Array

from .competitors import Verdict

SMALLEST = 1e-6
"""Probabilities are kept this far from 0 and 1: one sure mistake must not be the whole log loss."""

BINS = 10


def measured(verdict: Verdict, truth: Array, hidden_share: float) -> dict[str, float]:
    """All measures of a verdict; NaN where the method says nothing.

    Arguments:
        hidden_share: true share of class 1 among the training rows.
    """
    wrong = verdict.decision != truth
    nothing = float("nan")
    found = {
        "error": float(wrong.mean()),
        "balanced_error": float(0.5 * (wrong[truth == 0].mean() + wrong[truth == 1].mean())),
        "auc": float(roc_auc_score(truth, verdict.score)),
        "log_loss": nothing,
        "calibration": nothing,
        "share_error": verdict.share - hidden_share,
    }
    if verdict.probability is not None:
        p = np.clip(verdict.probability, SMALLEST, 1 - SMALLEST)
        found["log_loss"] = float(-np.mean(np.where(truth == 1, np.log(p), np.log1p(-p))))
        found["calibration"] = calibration_error(p, truth)
    return found


def calibration_error(probability: Array, truth: Array) -> float:
    """Mean distance of probability and frequency over ten bins of equal counts.

    >>> calibration_error(np.full(40, 0.25), np.tile([0, 0, 0, 1], 10))
    0.0
    """
    order = np.argsort(probability, kind="stable")
    bins = np.array_split(order, BINS) if np.ptp(probability) > 0 else [order]
    gaps = [len(b) * abs(float(probability[b].mean() - truth[b].mean())) for b in bins if len(b)]
    return float(sum(gaps) / len(truth))
