"""The order parameters of the fits of a replicate on the test clusters, and the accuracy of their
mean over independently scrambled quasi-Monte Carlo replicates.

The replicates of a run are independent and identically distributed, and each runs through all
steps. Their spread therefore includes the errors from finitely many points as propagated by later
steps, and Student's t distribution bounds the error of their mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ...arrays import Array
from ...confusion import class_probabilities
from .replicate import Replicate
from .setting import Setting

REPLICATES = 8

CONFIDENCE = 0.99
"""Probability that a quantity lies within the stated accuracy. Measured on 160 runs of four kinds
with replicates of 1,024 points, against the mean of 320 replicates: in 793 of 800 steps all five
quantities were within the stated accuracy, in 730 within two standard errors.
"""

TWICE = 0.65
"""Factor of the error of the mean if the number of replicates is doubled: the interval is 2.9
standard errors instead of 3.5, each smaller by the root of two; a tenth is added as a margin.
"""

SMOOTH_GAIN, JUMP_GAIN = 1.0, 0.65
"""The error of a replicate is about its size to the power minus this, for smooth labels and for
labels that jump. Measured: 1.1 for smooth labels and 8 or 16 steps, 0.65 for a threshold.
"""


class Observed(NamedTuple):
    """Order parameters on the test clusters; arrays over t, NaN for fits that were not solved.

    Logits have d components.

    Attributes:
        m: mean logits of the classes without bias, (T+1, d, K).
        bias: biases, (T+1, d).
        square: products of the weights of the components, (T+1, d, d).
        covariance: covariances of the logits in each class, (T+1, K, d, d).
        pairs: products of the weights of all pairs of fits, summed over components.
        chi: mean response of a weight.
    """

    m: Array
    bias: Array
    square: Array
    covariance: Array
    pairs: Array
    chi: Array

    @property
    def q(self) -> Array:
        """The squared norm of the weights."""
        return np.asarray(np.trace(self.square, axis1=1, axis2=2))

    def states(self, length: float) -> tuple[Array, Array]:
        r"""Return all quantities on which replicates must agree, (quantities, T+1), and the scale
        of each.

        They are means, biases, products of the weights, overlaps with the fit before, covariances
        and $\ln\chi$. The scales follow from the norm of the weights; `length` is that of the
        means.
        """
        q = self.q
        norm = np.sqrt(q) * length
        before = np.append(np.nan, np.diag(self.pairs, -1))
        both = np.sqrt(q * np.append(np.nan, q[:-1]))  # scale of an overlap: both norms
        noise = np.trace(self.covariance, axis1=2, axis2=3).mean(axis=1)
        parts = [
            (self.m, norm), (self.bias, norm + np.abs(self.bias).max(axis=1)), (self.square, q),
            (before, both), (self.covariance, noise), (np.log(self.chi), np.ones(q.size)),
        ]  # fmt: skip
        flat = [(values.reshape(q.size, -1).T, scale) for values, scale in parts]
        states = np.concatenate([values for values, _ in flat])
        return states, np.concatenate([np.tile(scale, (len(v), 1)) for v, scale in flat])

    def error(self, proportions: Sequence[float], basis: Array) -> Array:
        """Return the error of every fit, for the given class proportions."""
        errors = np.full(len(self.chi), np.nan)
        for t in np.flatnonzero(np.isfinite(self.chi)):
            seen = zip(self.m[t].T + self.bias[t], self.covariance[t], strict=True)
            right = [class_probabilities(basis, *law)[k] for k, law in enumerate(seen)]
            errors[t] = 1.0 - np.array(proportions) @ right
        return errors


def observe(run: Replicate, setting: Setting) -> Observed:
    """Return the order parameters of a replicate on the test clusters."""
    space, history, fits = setting.space, run.history, setting.fits
    w = np.array(history.fits)
    solved, test = len(w), space.sets[setting.test]
    flat = w.reshape(*w.shape[:2], -1)
    pairs = np.full((fits, fits), np.nan)
    pairs[:solved, :solved] = np.einsum("tjx,sjx->ts", flat, flat)
    seen = {}
    for a in dict.fromkeys(test.sources):
        image = space.sigma(a, w).reshape(flat.shape)
        seen[a] = flat @ image.transpose(0, 2, 1)
    covariance = np.stack([seen[a] for a in test.sources], axis=1)
    return Observed(
        padded(history.means(setting.test, w), fits), run.bias,
        padded(flat @ flat.transpose(0, 2, 1), fits), padded(covariance, fits), pairs, run.gains,
    )  # fmt: skip


def mean_of(each: Sequence[Observed]) -> Observed:
    """Return the mean over replicates."""
    return Observed(*(np.mean(values, axis=0) for values in zip(*each, strict=True)))


def padded(values: Array, fits: int) -> Array:
    """Return values of the solved fits, padded with NaN to `fits` rows."""
    missing = np.full((fits - len(values), *values.shape[1:]), np.nan)
    return np.concatenate([values, missing])


def accuracy_of_mean(states: Array, scale: Array) -> Array:
    """Return the error bound of the mean over replicates, relative to `scale`.

    Arguments:
        states: results of the replicates, along the first axis.
        scale: scale of each result.

    >>> found = np.array([[1.0], [1.1], [0.9], [1.0]])
    >>> accuracy_of_mean(found, np.ones(1)).round(3)
    array([0.238])
    """
    count = len(states)
    width = float(stdtrit(count - 1, 0.5 + 0.5 * CONFIDENCE)) / math.sqrt(count)
    return np.asarray(width * states.std(axis=0, ddof=1) / scale)


def size_needed(points: int, accuracy: float, tolerance: float, jumps: bool) -> float:
    """Return the number of points that would reach the tolerance, extrapolated from the accuracy
    with `points` points.
    """
    gain = JUMP_GAIN if jumps else SMOOTH_GAIN
    return float(points * (accuracy / tolerance) ** (1 / gain))
