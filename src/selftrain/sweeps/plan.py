"""What a sweep computes: a task at every point of a grid around a problem and a recipe.

A `SweepPlan` is checked when it is made, before anything runs.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InvalidInput, nearest
from ..problem import Problem
from ..recipe import Recipe
from .computation import Computation, Output, name_of
from .grid import Grid, Point, as_tuples
from .identity import identify
from .run import Task
from .tasks import KINDS
from .worker import WrongReturn

CHOSEN_BY_NAME = {"loss", "pseudo_loss", "labeler"}
"""Fields that an axis gives by a name, under which anything can be registered."""


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

    def __call__(self, **point: Any) -> dict[str, Any]:
        inputs, named = self.arguments(point)
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

    def arguments(self, point: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the function at a point, by place and by name."""
        problem, recipe, others = self.at(point)
        inputs = [part for part in (problem, recipe) if part is not None]
        asked = {} if self.keep is None else {"keep": self.keep}
        return inputs, {**asked, **self.options, **others}

    def at(self, point: Mapping[str, Any]) -> tuple[Problem | None, Recipe | None, dict[str, Any]]:
        """Return problem and recipe of a point, and the values that belong to neither."""
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
        """Return all else that the values of a point depend on, as plain values."""
        problem, recipe, others = self.at(point)
        about: dict[str, Any] = {"options": dict(self.options), "others": others}
        for name, part in (("problem", problem), ("recipe", recipe)):
            if part is not None:
                about[name] = part.to_dict()
        if not CHOSEN_BY_NAME.isdisjoint(point):
            about["computing"] = identify(_computing(problem, recipe)).digest
        return about


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
    """

    task: str
    function: Callable[..., Any] | None
    problem: Problem | None
    recipe: Recipe | None
    axes: Mapping[str, Any]
    keep: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.function is None and self.task not in KINDS:
            accepted = f"must be a function or a known task; {nearest(self.task, KINDS)}"
            raise InvalidInput("task", self.task, accepted)
        if self.task in KINDS:
            self._check_task()
        for axis in self.grid.axes:  # every value of every axis, with the first of the others
            columns = self.grid.columns(axis)
            for row in zip(*columns.values(), strict=True):
                self._check_point({**self.grid.points[0], **dict(zip(columns, row, strict=True))})

    @property
    def outputs(self) -> dict[str, Output] | None:
        """The quantities that are stored; None for a function of the user, which says so."""
        return outputs_of(self.task, self.keep, 2 if self.problem is None else self.problem.classes)

    @cached_property
    def grid(self) -> Grid:
        """The points."""
        return Grid(self.axes)

    @cached_property
    def call(self) -> PointCall:
        """The function of the points."""
        names = None if self.outputs is None else tuple(self.outputs)
        needed = self.keep if names is None else ()
        taken = frozenset({*self.grid.axes, *self.grid.points[0], "status", "reason"})
        source = KINDS[self.task].function if self.function is None else self.function
        return PointCall(source, self.problem, self.recipe, names, self.options, needed, taken)

    @cached_property
    def whole(self) -> Task:
        """The plan as `complete` takes it."""
        names = tuple(self.keep) if self.outputs is None else tuple(self.outputs)
        return Task(Computation(self.call, self.outputs), self.grid, names)

    def _check_task(self) -> None:
        kind = KINDS[self.task]
        if self.problem is None:
            raise InvalidInput("problem", None, f"the task {self.task!r} needs a problem")
        for name, value in self.options.items():
            if name not in kind.options:
                raise InvalidInput(name, value, f"unknown option; {nearest(name, kind.options)}")
        known = [*Problem.__dataclass_fields__, *Recipe.__dataclass_fields__, *kind.axes]
        free = {*self.options.get("over", ()), *self.options.get("schedule", ())}
        for name in self.grid.points[0]:
            if name not in known:
                raise InvalidInput(name, "axis", f"unknown parameter; {nearest(name, known)}")
            if name in self.options:
                raise InvalidInput(name, self.options[name], "it is an axis, and fixed as well")
            if name in free:
                raise InvalidInput(name, "axis", "it is optimised at every point")
        if self.outputs is not None and "t" in self.outputs and "steps" in self.grid.points[0]:
            accepted = "runs of different lengths have no common path: keep end values"
            raise InvalidInput("steps", "axis", accepted)

    def _check_point(self, point: Mapping[str, Any]) -> None:
        problem, recipe, others = self.call.at(point)
        if recipe is not None and problem is not None:
            recipe.at_steps(problem.steps)
        if self.task in KINDS:
            KINDS[self.task].check(problem, recipe, **self.options, **others)
            return
        inputs, named = self.call.arguments(point)
        try:
            inspect.signature(self.call.source).bind(*inputs, **named)
        except TypeError as error:
            name = getattr(self.call.source, "__name__", "the function")
            accepted = f"it cannot be called with this grid: {error}"
            raise InvalidInput("task", name, accepted) from None
        except ValueError:
            return  # a function of C that does not say what it takes

    @property
    def about(self) -> dict[str, str]:
        """Attributes of the dataset."""
        found = {"task": self.task, "options": json.dumps(dict(self.options))}
        for name, part in (("problem", self.problem), ("recipe", self.recipe)):
            if part is not None:
                found[name] = part.to_json()
        return found


def plan_of(
    problem: Problem | None,
    recipe: Recipe | None,
    over: Mapping[str, Any] | None,
    task: str | Callable[..., Any] = "solve",
    keep: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> SweepPlan:
    """Return the checked plan of a call of `sweep`."""
    for name, value, good, accepted in (
        ("problem", problem, isinstance(problem, Problem | None), "must be a selftrain.Problem"),
        ("recipe", recipe, isinstance(recipe, Recipe | None), "must be a selftrain.Recipe"),
        ("over", over, isinstance(over, Mapping) and over, "must map axes to their values"),
        ("task", task, callable(task) or isinstance(task, str),
         f"must be a function or one of {', '.join(KINDS)}"),
        ("keep", keep, isinstance(keep, Sequence) and not isinstance(keep, str),
         "must be a sequence of names"),
        ("options", options, isinstance(options, Mapping | None), "must map names to values"),
    ):  # fmt: skip
        if not good:
            raise InvalidInput(name, value, accepted)
    assert over is not None
    if not keep and task in KINDS and problem is not None and problem.classes > 2:
        keep = tuple(KINDS[str(task)].kept((), problem.classes))
    return SweepPlan(
        task if isinstance(task, str) else name_of(task),
        task if callable(task) else None,
        problem,
        Recipe() if problem is not None and recipe is None else recipe,
        {str(axis): _axis(axis, values) for axis, values in over.items()},
        tuple(keep),
        as_tuples(options or {}),
    )


def _axis(axis: Any, values: Any) -> Any:
    """Return the values of an axis as plain tuples."""
    if isinstance(values, Mapping):
        return {str(name): _axis(name, column) for name, column in values.items()}
    if hasattr(values, "__array__"):
        values = np.asarray(values).tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidInput(str(axis), values, "an axis is a sequence of one value or more")
    return as_tuples([one.item() if isinstance(one, np.generic) else one for one in values])


def outputs_of(task: str, keep: Sequence[str], classes: int = 2) -> dict[str, Output] | None:
    """Return what a task stores of these names, or by default; None for a function of the user."""
    return KINDS[task].kept(keep, classes) if task in KINDS else None
