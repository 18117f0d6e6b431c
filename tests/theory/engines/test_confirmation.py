"""When a step of the logistic engine counts as confirmed: on the refined rule, or by its neighbours
if the very first step from their prediction is small.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from selftrain.theory.engines.logistic.step import Effort, newton, workspace
from selftrain.theory.step.given import Given

STEP = Given(1.2, 0.6, 0.64, -0.3, 2.0, 0.35, 0.7, 0.1, 0.0, 1.5, False)
START = np.array([0.9, 0.5, 0.1, math.log(0.4), math.log(2.0)])
EXPONENT, TOLERANCE = 28.0, 1e-8


def from_here(z: np.ndarray, agrees: bool, near: bool = True) -> tuple[float, int]:
    """Accuracy and evaluations of Newton's method that begins near z, which it moves."""
    effort = Effort(EXPONENT, TOLERANCE, TOLERANCE, 40, near, agrees)
    accuracy, evaluations, _ = newton(z, STEP, 0.0, effort, workspace())
    return accuracy, evaluations


@pytest.fixture
def root() -> np.ndarray:
    z = START.copy()
    accuracy, _ = from_here(z, agrees=False, near=False)
    assert accuracy < 1e-10
    return z


def test_neighbours_that_agree_at_once_are_enough(root: np.ndarray) -> None:
    assert from_here(root.copy(), agrees=True)[1] == 1


def test_without_them_the_refined_rule_is_asked(root: np.ndarray) -> None:
    assert from_here(root.copy(), agrees=False)[1] == 2


def test_a_prediction_that_was_off_is_no_agreement(root: np.ndarray) -> None:
    """The second step may be tiny: the point is no longer the one that neighbours predicted."""
    alone, both = root * (1 + 1e-6), root * (1 + 1e-6)
    assert from_here(both, agrees=True)[1] == from_here(alone, agrees=False)[1] == 3
