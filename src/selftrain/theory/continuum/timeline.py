"""What a path in continuous time is given: the model it starts from, and batches that rule
stretches of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...errors import InvalidInput
from ...fields import expand
from ...problem import Problem
from ...recipe import Recipe
from ..solve import solve
from ..state import State
from .expansion import batch_of, check_expandable
from .linear_response import GivenBatch


class Stretch(NamedTuple):
    r"""A stretch of time over which the batches do not change.

    Attributes:
        begin: where it begins.
        batch: what its steps are given.
        sharpened: sharpening $\epsilon = (\gamma - 1)/\lambda_U$ of the labels at its beginning.
        sharpens: the rate $\kappa = a/\lambda_U^2$ at which that grows.
    """

    begin: float
    batch: GivenBatch
    sharpened: float
    sharpens: float

    def sharpening(self, tau: float) -> float:
        r"""$\epsilon$ at a time of this stretch."""
        return self.sharpened + self.sharpens * (tau - self.begin)


def check_continuous(problem: Any, recipe: Any) -> None:
    """Refuse what has no limit of many steps with a small ridge, with the reason."""
    check_expandable(problem, recipe)
    if problem.steps == 0:
        raise InvalidInput("steps", 0, "one step or more is needed to say what a batch is")


def start_of(problem: Problem, recipe: Recipe) -> State:
    """The supervised model."""
    first = problem.labeled_alone()
    return State.at(solve(first, Recipe(lambda_l=recipe.lambda_l), tolerance=1e-13), 0)


def stretches(problem: Problem, recipe: Recipe) -> Iterator[Stretch]:
    """Stretches of time in which neither the batches nor the pace of the sharpening change."""
    begin, before = 0.0, None
    ridges = recipe.at_steps(problem.steps).lambda_u.tolist()
    annealing = expand("annealing", recipe.annealing, problem.steps).tolist()
    for t, (a, ridge) in enumerate(zip(annealing, ridges, strict=True), start=1):
        batch = batch_of(problem, recipe, t)
        now = (batch, a / ridge if a else 0.0, ridge if a else 0.0)
        if now != before:
            yield Stretch(begin, batch, a * (t - 1) / ridge, a / ridge / ridge)
        begin, before = begin + ridge, now
