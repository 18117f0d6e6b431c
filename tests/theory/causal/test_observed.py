"""What is stated of the mean over replicates is true as often as it says."""

from __future__ import annotations

import numpy as np
import pytest

from selftrain.theory.causal.observed import CONFIDENCE, REPLICATES, accuracy_of_mean, size_needed


@pytest.mark.parametrize("replicates", [4, REPLICATES])
def test_the_stated_accuracy_holds_as_often_as_it_says(replicates: int) -> None:
    runs = 40_000
    found = 3.0 + 0.2 * np.random.default_rng(1).normal(size=(replicates, runs))
    stated = accuracy_of_mean(found, np.full(runs, 3.0))
    held = np.mean(np.abs(found.mean(axis=0) / 3.0 - 1.0) <= stated)
    assert held == pytest.approx(CONFIDENCE, abs=4 * np.sqrt(0.01 / runs))


def test_sizes_follow_the_error() -> None:
    assert size_needed(1024, 1e-4, 1e-4, jumps=False) == 1024
    assert size_needed(1024, 2e-4, 1e-4, jumps=False) == pytest.approx(2048)
    assert size_needed(1024, 2e-4, 1e-4, jumps=True) > 2 * 2048 / 2**0.5
