"""The residuals are the slopes of the convex objective, and its Hessian is their derivative."""

import math

import numpy as np
import pytest

from selftrain.theory.engines.logistic.engine import LogisticStage, SupervisedStage
from selftrain.theory.step.convex import _reduced, eliminate_chi, objective
from selftrain.theory.step.given import Given
from selftrain.theory.step.stage import Counter

EXPONENT, WIDTH = 30.0, 1e-4
STEP = Given(1.2, 0.6, 0.64, -0.3, 2.0, 0.35, 0.7, 0.1, 0.3, 1.5, False)
STAGES = {
    "later step": lambda: LogisticStage(1, STEP),
    "step 0": lambda: SupervisedStage(np.array([[0.5], [0.35], [0.7]]), 0.1),
}


@pytest.mark.parametrize("j", range(4))
@pytest.mark.parametrize("name", STAGES)
def test_slopes_and_curvatures(name, j):
    count = Counter(STAGES[name]())
    first = count.stage.frame.first
    if first and j == 0:
        return  # step 0 has no a
    start = np.array([0.0 if first else 0.2, 0.5, 0.1, math.log(0.4), 0.5])
    z = eliminate_chi(count, start, EXPONENT)

    def slopes(at):
        return _reduced(count.stage, at, count(at, count.stage.frame.ridge, EXPONENT))

    gradient, hessian = slopes(z)
    change = WIDTH * np.eye(5)[j]
    after, before = (objective(count, z + side * change, EXPONENT) for side in (1.0, -1.0))
    assert gradient[j] == pytest.approx((after - before) / (2.0 * WIDTH), abs=1e-6)
    moved = [eliminate_chi(count, z + side * change, EXPONENT) for side in (1.0, -1.0)]
    expected = (slopes(moved[0])[0] - slopes(moved[1])[0]) / (2.0 * WIDTH)
    np.testing.assert_allclose(hessian[:4, j], expected[:4], atol=1e-6)
