"""What is entered into the table of a run."""

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_balanced_points_do_not_erase_a_bias(loss):
    """Exactly balanced points are no other than nearly balanced ones, if the labelled were not."""
    runs = [
        solve(Problem(0.5, 2.0, 0.3, 0.5625, steps=2, loss=loss, rho_u=rho_u), Recipe())
        for rho_u in (0.5, 0.5 + 1e-9)
    ]
    assert (np.abs(runs[0].bias) > 0.1).all()
    np.testing.assert_allclose(runs[0].bias, runs[1].bias, atol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_nothing_distinguishes_balanced_classes(loss):
    run = solve(Problem(0.5, 2.0, 0.5, 0.5625, steps=3, loss=loss), Recipe())
    assert not run.bias.any()
