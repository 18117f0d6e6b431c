"""The class proportions among the labels of a run of two classes in which every sample is used
once: averages of the label over the Gaussian logits of the previous model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import roots_legendre

from ..arrays import Array
from ..labelers import SoftLabels
from ..losses import Squared

if TYPE_CHECKING:
    from .trajectory import Trajectory

REACH = 9.0
"""Standard deviations at which integrals over a Gaussian are cut off."""

SCALES = 2.0 ** np.arange(-1, 6)
"""Logits, in units of one over the sharpness, at which the integral over a soft label is split."""

NODES = 20
"""Gauss-Legendre nodes between two such logits: exact to rounding for a soft label."""


def label_shares(run: Trajectory) -> Array:
    """Return the proportions of the negative and the positive class among the given labels (row
    t = 0) and among the selected pseudo-labels of each step; NaN for soft labels of the squared
    loss, which are not probabilities.
    """
    problem, positive = run.problem, np.full(run.steps + 1, np.nan)
    wrong, rho = problem.wrong_labels, problem.rho
    positive[0] = rho * (1 - wrong[1]) + (1 - rho) * wrong[0]
    last = run.good_steps if run.collapsed_at is None else run.collapsed_at + 1
    for t in range(1, last):
        positive[t] = _positive(run, t)
    return np.column_stack([1 - positive, positive])


def _positive(run: Trajectory, t: int) -> float:
    """Return the proportion of the positive class among the selected labels of step t."""
    loss, labeler = run.problem.loss_at(t), run.recipe.label_function
    values = run.recipe.at_steps(run.steps)
    sharpness, limit = float(values.sharpness[t - 1]), float(run.scaled_thresholds[t - 1])
    if type(loss) is Squared and type(labeler) is SoftLabels and np.isfinite(sharpness):
        return np.nan
    if run.fading is not None:
        sharpness = float(np.ldexp(sharpness, -int(run.fading.exponents[t - 1])))
    bends = np.append(SCALES / sharpness, limit)
    cuts = np.unique([0.0, *bends, *-bends, *labeler.jumps(sharpness)])
    m, *variances = run.on_batch[t - 1]
    rho, bias = float(run.problem.unlabeled.rho[t - 1]), float(run.scaled("bias")[t - 1])
    mass, labels = 0.0, 0.0
    for share, mean, scale in zip(
        (1 - rho, rho), (bias - m, bias + m), np.sqrt(variances), strict=True
    ):
        low, high = mean - REACH * scale, mean + REACH * scale
        even = np.linspace(low, high, 19)
        edges = np.unique([*even, *cuts[(cuts > low) & (cuts < high)]])
        x, weights = roots_legendre(NODES)
        half = 0.5 * np.diff(edges)[:, None]
        at = (0.5 * (edges[1:] + edges[:-1]))[:, None] + half * x
        density = half * weights * np.exp(-0.5 * ((at - mean) / scale) ** 2) / scale
        density = share * density * (np.abs(at) > limit) / np.sqrt(2 * np.pi)
        mass += float(density.sum())
        labels += float((density * labeler.target(at, sharpness, loss)).sum())
    low, high = loss.classes
    return (labels / mass - low) / (high - low) if mass > 0 else np.nan
