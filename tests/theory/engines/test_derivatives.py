"""The derivatives of the equations of a step in all it is given, against central differences of
the equations at the same unknowns.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from selftrain.arrays import Array
from selftrain.labelers import SoftLabels
from selftrain.losses import Loss
from selftrain.theory.engines.generic.engine import GenericStage
from selftrain.theory.engines.generic.supervised import GenericSupervised
from selftrain.theory.engines.logistic.engine import LogisticStage, SupervisedStage
from selftrain.theory.engines.logistic.step import evaluate, workspace
from selftrain.theory.engines.squared.stage import ClosedStage
from selftrain.theory.engines.squared.supervised import ClosedSupervised
from selftrain.theory.step.given import Given

EXPONENT, WIDTH = 30.0, 1e-4
Z = np.array([0.9, 0.5, 0.1, math.log(0.4), math.log(2.0)])
STEP = Given(1.2, 0.6, 0.64, -0.3, 2.0, 0.35, 0.7, 0.1, 0.3, 1.5, False)
GIVEN = {
    "selected": STEP,
    "hard": STEP._replace(sharpness=math.inf),
    "bias fixed": STEP._replace(fixed_bias=True),
}
FIELDS = Given._fields[:-1]


def logistic(step: Given, z: Array) -> Array:
    work = workspace()
    evaluate(z, step, 0.0, EXPONENT, None, work)
    return work.system.residual


def closed(step: Given, z: Array) -> Array:
    stage = ClosedStage(1, step)
    based = z - np.array([stage.base * step.omega, 0.0, stage.base * step.bias, 0.0, 0.0])
    return stage._system(based).residual


def difference(equations, step: Given, name: str) -> Array:
    value = getattr(step, name)
    after, before = (step._replace(**{name: value + side * WIDTH}) for side in (1.0, -1.0))
    return (equations(after, Z) - equations(before, Z)) / (2.0 * WIDTH)


MOVES = [
    (name, field)
    for name, step in GIVEN.items()
    for field in FIELDS
    if math.isfinite(getattr(step, field))
]


@cache
def derivatives(engine: type, name: str) -> tuple[Array, Array]:
    return engine(1, GIVEN[name]).derivatives(Z, EXPONENT)


@pytest.mark.parametrize(("name", "field"), MOVES)
def test_the_compiled_engine(name: str, field: str) -> None:
    found = derivatives(LogisticStage, name)[1][:, FIELDS.index(field)]
    np.testing.assert_allclose(found, difference(logistic, GIVEN[name], field), atol=1e-6)


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("j", range(5))
def test_the_jacobian(name: str, j: int) -> None:
    step, change = GIVEN[name], WIDTH * np.eye(5)[j]
    expected = (logistic(step, Z + change) - logistic(step, Z - change)) / (2.0 * WIDTH)
    np.testing.assert_allclose(derivatives(LogisticStage, name)[0][:, j], expected, atol=1e-6)


def test_a_threshold_that_opens() -> None:
    """Without threshold nothing jumps, but the derivative in it is there."""
    step = STEP._replace(threshold=0.0)
    _, move = LogisticStage(1, step).derivatives(Z, EXPONENT)
    opened = (logistic(step._replace(threshold=side * WIDTH), Z) for side in (0.0, 1.0, 2.0))
    here, near, far = opened
    expected = (4.0 * near - far - 3.0 * here) / (2.0 * WIDTH)
    np.testing.assert_allclose(move[:, FIELDS.index("threshold")], expected, atol=1e-5)


@pytest.mark.parametrize(("name", "field"), MOVES)
def test_the_closed_form(name: str, field: str) -> None:
    found = derivatives(ClosedStage, name)[1][:, FIELDS.index(field)]
    np.testing.assert_allclose(found, difference(closed, GIVEN[name], field), atol=1e-6)


def test_the_engine_for_any_loss(plain_logistic: Loss) -> None:
    old, batch = np.array(STEP[:4]), np.array(STEP[4:7])
    generic = GenericStage(plain_logistic, SoftLabels(), 1, old, batch, *STEP[7:])
    jacobian, move = generic.derivatives(Z, EXPONENT)
    expected_jacobian, expected = LogisticStage(1, STEP).derivatives(Z, EXPONENT)
    np.testing.assert_allclose(jacobian, expected_jacobian, atol=1e-8)
    np.testing.assert_allclose(move, expected, atol=1e-7)


def test_step_0(plain_logistic: Loss) -> None:
    """Only points and ridge are given there."""
    z, group, ridge = np.array([0.0, *Z[1:]]), np.array(STEP[4:7]), STEP.ridge
    stages = {
        "logistic": SupervisedStage,
        "any loss": lambda groups, ridge: GenericSupervised(plain_logistic, groups, ridge),
        "squared": ClosedSupervised,
    }
    for name, stage in stages.items():

        def equations(group: Array, ridge: float, stage=stage) -> Array:
            made = stage(group[:, None], ridge)
            if isinstance(made, ClosedSupervised):
                return made._system(z).residual
            return made.evaluate(z, ridge, EXPONENT).residual

        _, move = stage(group[:, None], ridge).derivatives(z, EXPONENT)
        for j, field in enumerate(("alpha", "rho", "delta", "ridge")):
            change = WIDTH * np.eye(4)[j]
            after = equations(group + change[:3], ridge + change[3])
            before = equations(group - change[:3], ridge - change[3])
            found = move[:, FIELDS.index(field)]
            np.testing.assert_allclose(
                found, (after - before) / (2.0 * WIDTH), atol=1e-6, err_msg=f"{name}, {field}"
            )


def test_small_steps_are_made_more_exact_first() -> None:
    """Where the ridge is tiny the unknowns of a run have lost digits that the derivatives need."""
    step = STEP._replace(alpha=3.0, ridge=1e-6, threshold=0.0)
    stage = LogisticStage(1, step)
    z = stage.solution(EXPONENT, 1e-10).z
    z += np.array([stage.frame.offset, 0.0, stage.frame.old_bias, 0.0, 0.0])
    exact, _ = stage.derivatives(z, EXPONENT)
    blurred, _ = stage.derivatives(z + np.array([0.0, 0.0, 0.0, 1e-6, 1e-6]), EXPONENT)
    np.testing.assert_allclose(blurred, exact, rtol=1e-9, atol=1e-9)
