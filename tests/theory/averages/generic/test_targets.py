"""Labels as functions of logit and sharpness, beside the places where they jump."""

import numpy as np
import pytest

from selftrain.losses import Logistic
from selftrain.theory.averages.generic.panels import Targets


class Sawtooth:
    """Rises as sharpness * logit / 10 and falls by a half at 1 / sharpness, which moves."""

    name = "sawtooth"

    def target(self, logit, sharpness, loss):
        return 0.5 + sharpness * logit / 10.0 - 0.5 * (logit > 1.0 / sharpness)

    def jumps(self, sharpness):
        return (1.0 / sharpness,)


@pytest.mark.parametrize("off", [-1e-6, 1e-6, -0.3, 0.3])
def test_no_jump_passes_over_a_point(off):
    logit = np.array([0.5 + off])
    by_logit, by_sharpness = Targets(Sawtooth(), Logistic(), 2.0).slopes(logit)
    np.testing.assert_allclose(by_logit, 0.2, rtol=1e-6)
    np.testing.assert_allclose(by_sharpness, logit / 10.0, rtol=1e-6)


def test_the_place_of_a_jump_moves():
    targets = Targets(Sawtooth(), Logistic(), 2.0)
    np.testing.assert_allclose(targets.jump_slopes(), [-0.25], rtol=1e-8)
