"""Shared by all tests: which are slow, patience with slow machines, and built-in losses as a user
would write them.

The losses written out again take the engine for any loss.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from scipy.special import expit

from selftrain.runtime.parallel import one_thread


def left_out() -> list[str]:
    """What `make check` leaves out, as `slow.txt` lists it."""
    lines = (Path(__file__).parent / "slow.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    tests, slow = Path(__file__).parent, set(left_out())
    for item in items:
        if not item.path.is_relative_to(tests):
            continue
        place = item.path.relative_to(tests).with_suffix("")
        test = f"{place.as_posix()}::{getattr(item, 'originalname', item.name)}"
        if slow.intersection([place.as_posix(), test]):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def one_thread_each() -> Iterator[None]:
    """Linear algebra on one thread, here and in processes that tests start: the workers of pytest
    share the cores, and threads that wait for each other take ten times the processor time.
    """
    for library in ("OPENBLAS", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    with one_thread():
        yield


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
def slow_tests() -> list[str]:
    return left_out()


@pytest.fixture
def plain_logistic() -> PlainLogistic:
    return PlainLogistic()


@pytest.fixture
def plain_squared() -> PlainSquared:
    return PlainSquared()
