"""What a path in continuous time is given: the model it starts from, and batches that rule
stretches of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...errors import InvalidInput
from ...problem import Problem
from ...recipe import Recipe
from ..solve import solve
from ..state import State
from .expansion import batch_of, check_expandable
from .linear_response import GivenBatch


class Stretch(NamedTuple):
    """A stretch of time over which the batches do not change, and the step whose batch it is."""

    begin: float
    batch: GivenBatch
    t: int


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
    """Stretches of time in which nothing about the batches changes."""
    begin, before = 0.0, None
    ridges = recipe.at_steps(problem.steps).lambda_u
    for t in range(1, problem.steps + 1):
        batch = batch_of(problem, recipe, t)
        if batch != before:
            yield Stretch(begin, batch, t)
        begin, before = begin + float(ridges[t - 1]), batch
