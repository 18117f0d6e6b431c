"""The engine for any loss and labeler against the compiled one, and its own corners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr

from selftrain import Problem, Recipe, solve
from selftrain.errors import EmptySelection, StageError
from selftrain.labelers import SoftLabels
from selftrain.losses import Loss
from selftrain.observables import SYMBOLS
from selftrain.theory.engines.generic.engine import MASS, GenericStage
from selftrain.theory.engines.logistic.engine import LogisticStage
from selftrain.theory.step.given import Given

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=2)
RECIPES = {
    "soft": Recipe(),
    "small ridge": Recipe(lambda_u=1e-3),
    "selection": Recipe(threshold=0.8),
    "hard": Recipe(sharpness=math.inf),
    "hard by name, selection": Recipe(labeler="hard", threshold=0.4, lambda_u=0.3),
    "sharp, bias held": Recipe(sharpness=6.0, annealing=0.5, fix_bias=True),
}


@pytest.mark.parametrize("name", RECIPES)
def test_both_engines_agree(name: str, plain_logistic: Loss) -> None:
    compiled = solve(PROBLEM, RECIPES[name])
    generic = solve(PROBLEM.replace(loss=plain_logistic), RECIPES[name])
    for column in SYMBOLS:
        np.testing.assert_allclose(
            getattr(generic, column),
            getattr(compiled, column),
            rtol=2e-9,
            atol=1e-13,
            err_msg=column,
        )


class Tempered:
    """Soft labels written as a labeler of one's own."""

    name = "tempered"

    def target(self, logit: Any, sharpness: float, loss: Loss) -> Any:
        return expit(sharpness * np.asarray(logit))

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        return ()


class Quantised:
    """Labels 0, 1/2, 1: undecided between -1 and 1."""

    name = "quantised"

    def target(self, logit: Any, sharpness: float, loss: Loss) -> Any:
        return 0.5 * (1.0 + np.where(np.abs(logit) > 1.0, np.sign(logit), 0.0))

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        return (-1.0, 1.0)


def test_a_labeler_of_the_user() -> None:
    plain = solve(PROBLEM, Recipe(sharpness=2.0))
    own = solve(PROBLEM, Recipe(sharpness=2.0, labeler=Tempered()))
    np.testing.assert_allclose(own.m, plain.m, rtol=1e-9)
    np.testing.assert_allclose(own.bias, plain.bias, rtol=1e-9)


def test_a_labeler_with_jumps_solves_the_law_of_its_points() -> None:
    """The mean slope over training points drawn from the law of the logits vanishes."""
    run = solve(PROBLEM, Recipe(labeler=Quantised()))
    points = run.training_logits(1).sample(400_000, seed=3)
    target = Quantised().target(points.previous, 1.0, PROBLEM.loss_function)
    slope = expit(points.u) - target
    assert abs(slope.mean()) < 5 * slope.std() / math.sqrt(slope.size)
    square = 2.0 * PROBLEM.delta * (slope**2).mean()
    assert run.chi_hat[1] == pytest.approx(square, rel=0.01)


def test_collapse_of_the_generic_engine(plain_logistic: Loss) -> None:
    problem = PROBLEM.replace(steps=10)
    generic = solve(problem.replace(loss=plain_logistic), Recipe(sharpness=math.inf), 1e-8)
    compiled = solve(problem, Recipe(sharpness=math.inf))
    assert generic.collapsed_at == compiled.collapsed_at == 8
    np.testing.assert_allclose(generic.error, compiled.error, rtol=1e-7)


def test_refusals_of_the_generic_engine(plain_logistic: Loss) -> None:
    problem = PROBLEM.replace(loss=plain_logistic)
    with pytest.raises(EmptySelection, match="step 2"):
        solve(problem, Recipe(threshold=(0.0, 60.0)))
    with pytest.raises(StageError):  # weights of 1e-60 next to labels of order one
        solve(problem.replace(steps=4, rho=0.5), Recipe(lambda_u=1e60))


def test_a_subclass_with_other_targets_is_not_taken_for_soft_labels() -> None:
    """Fast paths are for the labelers they know."""

    class Flipped(SoftLabels):
        name = "flipped"

        def target(self, logit: Any, sharpness: float, loss: Loss) -> Any:
            return 1.0 - super().target(logit, sharpness, loss)

    flipped = solve(PROBLEM.replace(steps=1), Recipe(labeler=Flipped()))
    assert flipped.m[1] < 0


STEP = Given(1.2, 0.6, 0.64, -0.3, 2.0, 0.35, 0.7, 0.4, 0.3, 1.5, False)


def stage(loss: Loss, given: Given) -> GenericStage:
    old, batch = np.array(given[:4]), np.array(given[4:7])
    return GenericStage(loss, SoftLabels(), 1, old, batch, *given[7:])


def test_the_state_for_a_large_ridge(plain_logistic: Loss) -> None:
    compiled = LogisticStage(1, STEP)
    expected = compiled.explicit(0.4)
    expected[0] += compiled.frame.offset
    expected[2] += compiled.frame.old_bias
    np.testing.assert_allclose(stage(plain_logistic, STEP).explicit(0.4), expected, rtol=1e-6)


def test_a_labeled_mass_near_one_class(plain_logistic: Loss) -> None:
    """Soft labels of logits near -12: their mean is the mean of sigma, near exp(-12)."""
    given = STEP._replace(bias=-10.0, sharpness=1.2, threshold=0.0)
    spread, centres = math.sqrt(0.7) * 1.2, (0.6 * 1.2 - 10.0, -0.6 * 1.2 - 10.0)
    means = [math.exp(1.2 * c + (1.2 * spread) ** 2 / 2) for c in centres]  # sigma(y) near e^y
    expected = 0.35 * means[0] + 0.65 * means[1]
    assert stage(plain_logistic, given).label_mass() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("threshold", [0.0, 0.8, 9.0])
def test_the_selected_share(threshold: float, plain_logistic: Loss) -> None:
    """Also where only points far out in the tails are selected."""
    given = STEP._replace(threshold=threshold)
    z = np.array([0.9, 0.5, 0.1, math.log(0.4), math.log(2.0)])
    found, _ = stage(plain_logistic, given)._integrals(z, 30.0)
    spread, share = math.sqrt(0.7) * 1.2, 0.0
    for s, part in ((1.0, 0.35), (-1.0, 0.65)):
        centre = s * 0.6 * 1.2 - 0.3
        for side in (1.0, -1.0):
            share += part * ndtr((side * centre - threshold * 1.2) / spread)
    assert found[MASS] == pytest.approx(share, rel=1e-9, abs=0.0)


def test_the_labeled_mass_of_other_classes(plain_squared: Loss) -> None:
    """Hard labels -1 and 1: the share of the smaller side."""
    given = STEP._replace(sharpness=math.inf, threshold=0.0)
    spread = math.sqrt(0.7) * 1.2
    centres = (0.6 * 1.2 - 0.3, -0.6 * 1.2 - 0.3)
    above = 0.35 * ndtr(centres[0] / spread) + 0.65 * ndtr(centres[1] / spread)
    found = stage(plain_squared, given).label_mass()
    assert found == pytest.approx(min(above, 1.0 - above), rel=1e-9)


def test_the_envelope_is_that_of_the_compiled_engine(plain_logistic: Loss) -> None:
    z, compiled = np.array([0.9, 0.5, 0.1, math.log(0.4), math.log(2.0)]), LogisticStage(1, STEP)
    based = z - np.array([compiled.frame.offset, 0.0, compiled.frame.old_bias, 0.0, 0.0])
    expected = compiled.evaluate(based, 0.4, 30.0, with_loss=True)
    found = stage(plain_logistic, STEP).evaluate(z, 0.4, 30.0)
    assert found is not None
    assert expected is not None
    assert found.envelope == pytest.approx(expected.envelope, rel=1e-9)
