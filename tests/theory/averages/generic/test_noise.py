r"""Averages over the new noise for a loss with kinks that move with the target, in closed form.

Huber's loss of $e = x - p$ is $e^2/2$ up to 1 and $|e| - 1/2$ beyond: so $k = 1/(1 + c)$ where
$|h - p| < 1 + c$, else 0, and k' lives in the two kinks alone.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from selftrain.theory.averages.generic.noise import Effort, Fields, noise_averages


class Huber:
    name, classes = "huber", (-1.0, 1.0)

    def kinks(self, target):
        return (target - 1.0, target + 1.0)

    def value(self, target, logit):
        e = np.abs(logit - target)
        return np.where(e < 1.0, e**2 / 2, e - 0.5)

    def slope(self, target, logit):
        return np.clip(logit - target, -1.0, 1.0)

    def curvature(self, target, logit):
        return np.where(np.abs(logit - target) < 1.0, 1.0, 0.0)

    def third(self, target, logit):
        return np.zeros(np.broadcast(target, logit).shape)


@pytest.mark.parametrize("noise", [0.4, 2.0])
def test_moving_kinks(noise):
    target, centre, c = np.array([0.3, -0.6, 0.9]), np.array([1.5, 0.2, -2.0]), 0.8
    fields = Fields(target, centre, np.ones(3) / 3, noise, c)
    found, _ = noise_averages(Huber(), fields, 30.0, with_labels=True, effort=Effort(0))
    high, low = ((side * (1 + c) - (centre - target)) / noise for side in (1.0, -1.0))
    k = (norm.cdf(high) - norm.cdf(low)) / (1 + c)
    by_centre = (norm.pdf(low) - norm.pdf(high)) / (noise * (1 + c))
    np.testing.assert_allclose(found[2], k, rtol=1e-10)
    np.testing.assert_allclose(found[7], by_centre, rtol=1e-7)
    np.testing.assert_allclose(found[12], -k, rtol=1e-7)
    np.testing.assert_allclose(found[14], -by_centre, rtol=1e-7)
    tails = norm.sf(high) - norm.cdf(low)
    middle = (centre - target) * k + noise * (norm.pdf(low) - norm.pdf(high)) / (1 + c)
    np.testing.assert_allclose(found[0], middle + tails, rtol=1e-9)
    assert math.isclose(found[10][0], k[0] / (1 + c), rel_tol=1e-9)
