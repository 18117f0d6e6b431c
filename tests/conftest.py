"""Shared by all tests: patience with slow machines, and built-in losses as a user would write them.

The losses written out again take the engine for any loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from scipy.special import expit

SLOW = (
    "benchmarks/speed/test_simulation",
    "benchmarks/speed/test_theory",
    "benchmarks/test_comparison",
    "benchmarks/test_confirmation",
    "cli",
    "docs",
    "estimator",
    "evidence",
    "explorer",
    "paper",
    "plots",
    "report",
    "runtime/test_kernels",
    "simulation",
    "sweeps",
    "theory/continuum",
    "theory/test_steep",
    "theory/gradients",
    "theory/laws",
    "theory/causal",
    "theory/test_covariances",
    "theory/test_stored",
    "tuning",
)
"""Folders and files of tests that `make check` leaves out. The reference trajectories stay in."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    tests = Path(__file__).parent
    for item in items:
        path = item.path
        if not path.is_relative_to(tests) or path.name == "test_reference.py":
            continue
        place = path.relative_to(tests).with_suffix("")
        if any(place.is_relative_to(slow) for slow in SLOW):
            item.add_marker(pytest.mark.slow)


settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


class PlainLogistic:
    """The logistic loss as a user would write it."""

    name = "plain logistic"
    classes = (0.0, 1.0)
    kinks: tuple[float, ...] = ()

    def link(self, logit: Any) -> Any:
        return expit(logit)

    def value(self, target: Any, logit: Any) -> Any:
        return np.logaddexp(0.0, logit) - target * logit

    def slope(self, target: Any, logit: Any) -> Any:
        return expit(logit) - target

    def curvature(self, target: Any, logit: Any) -> Any:
        return expit(logit) * expit(-logit) + 0 * target

    def third(self, target: Any, logit: Any) -> Any:
        return expit(logit) * expit(-logit) * (expit(-logit) - expit(logit)) + 0 * target


class PlainSquared:
    """Half the squared distance as a user would write it."""

    name = "plain squared"
    classes = (-1.0, 1.0)
    kinks: tuple[float, ...] = ()

    def link(self, logit: Any) -> Any:
        return logit

    def value(self, target: Any, logit: Any) -> Any:
        return 0.5 * (logit - target) ** 2

    def slope(self, target: Any, logit: Any) -> Any:
        return logit - target

    def curvature(self, target: Any, logit: Any) -> Any:
        return 1.0 + 0 * (logit - target)

    def third(self, target: Any, logit: Any) -> Any:
        return 0 * (logit - target)


@pytest.fixture
def plain_logistic() -> PlainLogistic:
    return PlainLogistic()


@pytest.fixture
def plain_squared() -> PlainSquared:
    return PlainSquared()
