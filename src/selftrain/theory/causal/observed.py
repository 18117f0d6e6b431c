"""What samples see of the fits of a replicate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .replicate import Replicate, Setting


class Observed(NamedTuple):
    """What samples see of the fits of a replicate, arrays over t, in components of the logit: means
    of the classes (d, K), bias (d), products of the weights (d, d), covariances of the logits of
    each class (K, d, d), products of the weights of all pairs of fits, responses.
    """

    m: Array
    bias: Array
    square: Array
    covariance: Array
    pairs: Array
    chi: Array


def observe(run: Replicate, setting: Setting) -> Observed:
    """Return what test samples see of a replicate; NaN where it was not solved."""
    space, history, fits = setting.space, run.history, len(setting.protocol.fits)
    w = np.array(history.fits)
    solved, test = len(w), space.sets[setting.test]
    flat = w.reshape(*w.shape[:2], -1)
    square = flat @ flat.transpose(0, 2, 1)
    pairs = np.full((fits, fits), np.nan)
    pairs[:solved, :solved] = np.einsum("tjx,sjx->ts", flat, flat)
    seen = {}
    for a in dict.fromkeys(test.sources):
        image = space.sigma(a, w).reshape(flat.shape)
        seen[a] = flat @ image.transpose(0, 2, 1)
    covariance = np.stack([seen[a] for a in test.sources], axis=1)
    return Observed(
        padded(history.means(setting.test, w), fits), run.bias, padded(square, fits),
        padded(covariance, fits), pairs, run.gains,
    )  # fmt: skip


def padded(values: Array, fits: int) -> Array:
    """Values of the solved fits, with NaN for the others."""
    missing = np.full((fits - len(values), *values.shape[1:]), np.nan)
    return np.concatenate([values, missing])
