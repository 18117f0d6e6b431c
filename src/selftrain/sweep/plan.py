"""What a sweep computes: a task at every point of a grid around a problem and a recipe.

A `SweepPlan` is checked when it is made, before anything runs. It can be written down and read
again, and then knows under which keys its points were stored, even if the code has changed since.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput, nearest
from ..fields import Portable
from ..problem import Problem
from ..recipe import Recipe
from .computation import Computation, Output
from .grid import Grid, Point
from .identity import identify
from .kinds import KINDS
from .run import Task
from .work import WrongReturn

CHAIN = 8
"""Points in a row that start from each other. Longer chains gain little, and leave fewer of them
for many workers.
"""


STATUS_VARIABLES = ("status", "reason")
"""What the dataset says of every point."""


@dataclass(frozen=True)
class PointCall:
    """The function of a point: problem and recipe with the values of the axes in their places.

    Attributes:
        source: the function that computes; called with problem and recipe, unless there is none.
        keep: names it is asked for; None: it does not take names.
        options: what it takes besides, at every point.
        needed: names that it must return, of a function that does not take names.
        taken: names that it must not return, for the dataset has them already.
    """

    source: Callable[..., Any]
    problem: Problem | None
    recipe: Recipe | None
    keep: tuple[str, ...] | None
    options: Mapping[str, Any] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()

    def __call__(self, *near: Array, **point: Any) -> dict[str, Any]:
        inputs, named = self._arguments(point)
        if near:
            named["near"] = near
        values = self.source(*inputs, **named)
        found = dict(values) if isinstance(values, Mapping) else {"value": values}
        for name in self.needed:
            if name not in found:
                accepted = f"the function does not return it; it returns {', '.join(found)}"
                raise WrongReturn("keep", name, accepted)
        if self.keep is None:
            self._check_names(found)
        return found

    def _check_names(self, found: Mapping[str, Any]) -> None:
        """Reject quantities that the dataset could not tell from its axes or from each other."""
        for name, value in found.items():
            own = [f"{name}_{axis}" for axis in range(np.ndim(value))]  # as `gather` calls them
            for clash in [name] if name in self.taken else {*self.taken, *found}.intersection(own):
                accepted = "the function returns a quantity of this name, and the dataset has an "
                accepted += "axis, a dimension or a variable of the same name: return it by another"
                raise WrongReturn("task", clash, accepted)

    def check_arguments(self, point: Mapping[str, Any]) -> None:
        """Refuse a point that the function cannot be called with."""
        inputs, named = self._arguments(point)
        try:
            inspect.signature(self.source).bind(*inputs, **named)
        except TypeError as error:
            name = getattr(self.source, "__name__", "the function")
            raise InvalidInput(
                "task", name, f"it cannot be called with this grid: {error}"
            ) from None
        except ValueError:
            return  # a function of C that does not say what it takes

    def _arguments(self, point: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        problem, recipe, others = self.at(point)
        inputs = [part for part in (problem, recipe) if part is not None]
        asked = {} if self.keep is None else {"keep": self.keep}
        return inputs, {**asked, **self.options, **others}

    def at(self, point: Mapping[str, Any]) -> tuple[Problem | None, Recipe | None, dict[str, Any]]:
        """Problem and recipe of a point, and the values that belong to neither."""
        others = dict(point)
        inputs: list[Any] = []
        for part in (self.problem, self.recipe):
            known = () if part is None else part.__dataclass_fields__
            changes = {name: others.pop(name) for name in point if name in known}
            inputs.append(part.replace(**changes) if part is not None and changes else part)
        return inputs[0], inputs[1], others

    @property
    def reached(self) -> tuple[Any, ...]:
        """Losses and labeler that compute at every point."""
        return _computing(self.problem, self.recipe)

    def parameters(self, point: Point) -> dict[str, Any]:
        """All else that the values of a point depend on, as plain values."""
        problem, recipe, others = self.at(point)
        about: dict[str, Any] = {"options": dict(self.options), "others": others}
        if problem is not None:
            about["problem"] = problem.to_dict()
        if recipe is not None:
            about["recipe"] = recipe.to_dict()
        if not CHOSEN_BY_NAME.isdisjoint(point):
            about["computing"] = identify(_computing(problem, recipe)).digest
        return about


CHOSEN_BY_NAME = {"loss", "pseudo_loss", "labeler"}
"""Fields that an axis gives by a name, under which anything can be registered."""


def _computing(problem: Problem | None, recipe: Recipe | None) -> tuple[Any, ...]:
    losses = () if problem is None else (problem.loss_at(0), problem.loss_at(1))
    return losses if recipe is None else (*losses, recipe.label_function)


@dataclass(frozen=True)
class SweepPlan:
    """A task over a grid.

    Attributes:
        task: "solve", "optimize", "simulate", "continuum", or the dotted name of a function.
        function: the user's function, if the task is one.
        problem, recipe: what the points vary; None for a function of plain parameters.
        axes: as of `Grid`.
        keep: names of quantities; none: those that the task has by default.
        options: arguments of the task, the same at every point.
        stored_as: name and digest of the code that computed, of a plan that was read from a store.
    """

    task: str
    function: Callable[..., Any] | None
    problem: Problem | None
    recipe: Recipe | None
    axes: Mapping[str, Any]
    keep: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    stored_as: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.function is None and self.task not in KINDS and self.stored_as is None:
            accepted = f"a function, or a known task; {nearest(self.task, KINDS)}"
            raise InvalidInput("task", self.task, accepted)
        if not self.axes:
            raise InvalidInput("axes", dict(self.axes), "one axis or more is needed")
        _ = self.outputs
        if self.task in KINDS:
            self._check_task()
        if self.stored_as is None:
            self._check_values()

    @property
    def outputs(self) -> dict[str, Output] | None:
        """What is kept; None for a function that says so when it is called."""
        return KINDS[self.task].kept(self.keep) if self.task in KINDS else None

    @cached_property
    def grid(self) -> Grid:
        """The points."""
        return Grid(self.axes)

    @cached_property
    def computation(self) -> Computation:
        """What is computed at each of them."""
        kind = KINDS.get(self.task)
        source = self.function if kind is None else kind.function
        names = None if self.outputs is None else tuple(self.outputs)
        needed = self.keep if names is None else ()
        taken = frozenset({*self.grid.axes, *self.grid.points[0], *STATUS_VARIABLES})
        inputs = (source or _unknown, self.problem, self.recipe, names, self.options)
        call = PointCall(*inputs, needed, taken)
        link = "" if kind is None else kind.link
        return Computation(call, self.outputs, stored_as=self.stored_as, link=link)

    @cached_property
    def whole(self) -> Task:
        """The plan as `complete` takes it."""
        names = tuple(self.keep) if self.outputs is None else tuple(self.outputs)
        return Task(self.computation, self.grid, names, chain=CHAIN if self._chained else 1)

    @property
    def _chained(self) -> bool:
        """Whether points start from those before them in a row of numbers."""
        kind = KINDS.get(self.task)
        if kind is None or kind.chained is None or self.problem is None or self.recipe is None:
            return False
        row = [value for column in list(self.grid.axes.values())[-1:] for value in column]
        numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in row)
        return numbers and kind.chained(self.problem, self.recipe, self.options)

    def _check_task(self) -> None:
        kind = KINDS[self.task]
        if self.problem is None:
            raise InvalidInput("problem", None, f"the task {self.task!r} needs a problem")
        kind.checked(self.options)
        known = [*Problem.__dataclass_fields__, *Recipe.__dataclass_fields__, *kind.axes]
        free = {*self.options.get("over", ()), *self.options.get("schedule", ())}
        for name in self.grid.points[0]:
            if name not in known:
                raise InvalidInput(name, "axis", f"unknown parameter; {nearest(name, known)}")
            if name in self.options:
                raise InvalidInput(name, self.options[name], "it is an axis, and fixed as well")
            if name in free:
                raise InvalidInput(name, "axis", "it is optimised at every point")
        whole = self.outputs is not None and "t" in self.outputs
        if whole and "steps" in self.grid.points[0]:
            raise InvalidInput(
                "steps", "axis", "runs of different lengths have no common path: keep end values"
            )

    def _check_values(self) -> None:
        """Every value of every axis, with the first values of the others, makes a point."""
        call = self.computation.function
        assert isinstance(call, PointCall)
        first = self.grid.points[0]
        for axis in self.grid.axes:
            columns = self.grid.columns(axis)
            for row in zip(*columns.values(), strict=True):
                self._check_point(call, {**first, **dict(zip(columns, row, strict=True))})

    def _check_point(self, call: PointCall, point: Mapping[str, Any]) -> None:
        problem, recipe, others = call.at(point)
        if recipe is not None and problem is not None:
            recipe.at_steps(problem.steps)
        if self.task in KINDS:
            KINDS[self.task].check(problem, recipe, **self.options, **others)
        else:
            call.check_arguments(point)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the code is written down as its digest."""
        return {
            "task": self.task,
            "problem": _written(self.problem),
            "recipe": _written(self.recipe),
            "axes": self.grid.to_dict()["axes"],
            "keep": list(self.keep),
            "options": dict(self.options),
            "code": self.computation.digest,
            "name": self.computation.name,
        }

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> SweepPlan:
        """A plan that was written down: its points can be found, not computed."""
        problem, recipe = written["problem"], written["recipe"]
        return cls(
            task=written["task"],
            function=None,
            problem=None if problem is None else Problem.from_dict(problem),
            recipe=None if recipe is None else Recipe.from_dict(recipe),
            axes=as_tuples(written["axes"]),
            keep=tuple(written["keep"]),
            options=as_tuples(written["options"]),
            stored_as=(written["name"], written["code"]),
        )


def _written(word: Portable | None) -> dict[str, Any] | None:
    return None if word is None else word.to_dict()


def _unknown(*_: Any, **__: Any) -> Any:
    raise InvalidInput("task", "a function", "it is not loaded: this plan can only be read")


def as_tuples(value: Any) -> Any:
    """Lists as tuples, all the way down: values of axes are never changed."""
    if isinstance(value, Mapping):
        return {name: as_tuples(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(as_tuples(entry) for entry in value)
    return value
