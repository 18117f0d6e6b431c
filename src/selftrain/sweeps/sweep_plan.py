"""The validated arguments of `sweep`: a task, a grid, and the problem and recipe that it varies.

A `SweepPlan` is checked when it is created, before anything runs.
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
from ..fields import as_tuples
from ..problem import Problem
from ..recipe import Recipe
from .computation import Computation, Output, Task, name_of
from .executors import WrongReturn
from .function_identity import identify
from .grid import Grid, Point
from .named_tasks import NAMED_TASKS, optimized

REGISTERED = {"loss", "pseudo_loss", "labeler"}
"""Fields whose values are names of registered objects: a user may register another object under the
same name, so the name alone does not identify it."""


@dataclass(frozen=True)
class PointCall:
    """The function that is evaluated at every point: calls `source` with its problem and recipe.

    Attributes:
        source: the function of the task or of the user.
        problem, recipe: what the axes vary; None for a function of plain parameters.
        keep: the quantities asked for, passed to `source`; None for a user's function.
        options: further arguments of `source`, the same at every point.
        needed: quantities that a user's function must return.
        reserved: names that a user's function must not return, because the dataset uses them.
    """

    source: Callable[..., Any]
    problem: Problem | None
    recipe: Recipe | None
    keep: tuple[str, ...] | None
    options: Mapping[str, Any] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    reserved: frozenset[str] = frozenset()

    def __call__(self, **point: Any) -> dict[str, Any]:
        inputs, named = self.arguments(point)
        values = self.source(*inputs, **named)
        found = dict(values) if isinstance(values, Mapping) else {"value": values}
        for name in self.needed:
            if name not in found:
                reason = f"the function does not return it; it returns {', '.join(found)}"
                raise WrongReturn("keep", name, reason)
        if self.keep is None:
            self._check_names(found)
        return found

    def _check_names(self, found: Mapping[str, Any]) -> None:
        """Reject quantities whose names the dataset uses for something else."""
        for name, value in found.items():
            dims = {f"{name}_{axis}" for axis in range(np.ndim(value))}  # as `gather` names them
            for clash in {name} & self.reserved or dims & {*self.reserved, *found}:
                reason = (
                    "the function returns a quantity of this name, and the dataset has an axis, a "
                    "dimension or a variable of the same name: return it under another name"
                )
                raise WrongReturn("task", clash, reason)

    def arguments(self, point: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of the function at a point."""
        problem, recipe, others = self.at(point)
        inputs = [part for part in (problem, recipe) if part is not None]
        keep = {} if self.keep is None else {"keep": self.keep}
        return inputs, {**keep, **self.options, **others}

    def at(self, point: Mapping[str, Any]) -> tuple[Problem | None, Recipe | None, dict[str, Any]]:
        """Return the problem and recipe of a point, and the parameters that belong to neither."""
        others = dict(point)
        inputs: list[Any] = []
        for part in (self.problem, self.recipe):
            known = () if part is None else part.__dataclass_fields__
            changes = {name: others.pop(name) for name in point if name in known}
            inputs.append(part.replace(**changes) if part is not None and changes else part)
        return inputs[0], inputs[1], others

    @property
    def reached(self) -> tuple[Any, ...]:
        """The losses and the labeler, which every point uses (see `Computation`)."""
        return _losses_and_labeler(self.problem, self.recipe)

    def parameters(self, point: Point) -> dict[str, Any]:
        """Return everything besides `source` and `reached` that the values of a point depend on."""
        problem, recipe, others = self.at(point)
        about: dict[str, Any] = {"options": dict(self.options), "others": others}
        for name, part in (("problem", problem), ("recipe", recipe)):
            if part is not None:
                about[name] = part.to_dict()
        if not REGISTERED.isdisjoint(point):
            about["registered"] = identify(_losses_and_labeler(problem, recipe)).digest
        return about


def _losses_and_labeler(problem: Problem | None, recipe: Recipe | None) -> tuple[Any, ...]:
    losses = () if problem is None else (problem.loss_at(0), problem.loss_at(1))
    return losses if recipe is None else (*losses, recipe.label_function)


@dataclass(frozen=True)
class SweepPlan:
    """A task over a grid.

    Attributes:
        task: "solve", "optimize", "simulate", "continuum", or the dotted name of a function.
        function: the user's function, if the task is one.
        problem, recipe: what the axes vary; None for a function of plain parameters.
        axes: as in `Grid`.
        keep: names of the quantities to store; empty for the default of the task.
        options: further arguments of the task, the same at every point.
    """

    task: str
    function: Callable[..., Any] | None
    problem: Problem | None
    recipe: Recipe | None
    axes: Mapping[str, Any]
    keep: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.function is None and self.task not in NAMED_TASKS:
            accepted = f"must be a function or a known task; {nearest(self.task, NAMED_TASKS)}"
            raise InvalidInput("task", self.task, accepted)
        if self.task in NAMED_TASKS:
            self._check_task()
        for axis in self.grid.axes:  # every value of each axis, with the first of the others
            columns = self.grid.columns(axis)
            for row in zip(*columns.values(), strict=True):
                self._check_point({**self.grid.points[0], **dict(zip(columns, row, strict=True))})

    @property
    def outputs(self) -> dict[str, Output] | None:
        """The quantities to store; None for a user's function, which may return any."""
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
        reserved = frozenset({*self.grid.axes, *self.grid.points[0], "status", "reason"})
        source = NAMED_TASKS[self.task].function if self.function is None else self.function
        return PointCall(source, self.problem, self.recipe, names, self.options, needed, reserved)

    @cached_property
    def grid_task(self) -> Task:
        """The task for `complete`."""
        names = tuple(self.keep) if self.outputs is None else tuple(self.outputs)
        return Task(Computation(self.call, self.outputs), self.grid, names)

    def _check_task(self) -> None:
        kind = NAMED_TASKS[self.task]
        if self.problem is None:
            raise InvalidInput("problem", None, f"must be given for the task {self.task!r}")
        for name, value in self.options.items():
            if name not in kind.options:
                raise InvalidInput(name, value, f"unknown option; {nearest(name, kind.options)}")
        known = [*Problem.__dataclass_fields__, *Recipe.__dataclass_fields__, *kind.axes]
        free = optimized(self.options) if self.task == "optimize" else ()
        for name in self.grid.points[0]:
            if name not in known:
                raise InvalidInput(name, "axis", f"unknown parameter; {nearest(name, known)}")
            if name in self.options:
                accepted = "must not be an option: it is an axis"
                raise InvalidInput(name, self.options[name], accepted)
            if name in free:
                raise InvalidInput(name, "axis", "must not be an axis: it is optimised")
        if self.outputs is not None and "t" in self.outputs and "steps" in self.grid.points[0]:
            reason = "runs of different lengths have no common path: keep end values only"
            raise InvalidInput("steps", "axis", reason)

    def _check_point(self, point: Mapping[str, Any]) -> None:
        problem, recipe, others = self.call.at(point)
        if recipe is not None and problem is not None:
            recipe.at_steps(problem.steps)
        if self.task in NAMED_TASKS:
            NAMED_TASKS[self.task].check(problem, recipe, **self.options, **others)
            return
        inputs, named = self.call.arguments(point)
        try:
            inspect.signature(self.call.source).bind(*inputs, **named)
        except TypeError as error:
            name = getattr(self.call.source, "__name__", "the function")
            reason = f"it cannot be called with this grid: {error}"
            raise InvalidInput("task", name, reason) from None
        except ValueError:
            return  # a C function without a signature

    @property
    def about(self) -> dict[str, str]:
        """The attributes of the dataset."""
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
    """Validate the arguments of `sweep`, and return them as a plan."""
    for name, value, good, accepted in (
        ("problem", problem, isinstance(problem, Problem | None), "must be a selftrain.Problem"),
        ("recipe", recipe, isinstance(recipe, Recipe | None), "must be a selftrain.Recipe"),
        ("over", over, isinstance(over, Mapping) and over, "must map axes to their values"),
        ("task", task, callable(task) or isinstance(task, str),
         f"must be a function or one of {', '.join(NAMED_TASKS)}"),
        ("keep", keep, isinstance(keep, Sequence) and not isinstance(keep, str),
         "must be a sequence of names"),
        ("options", options, isinstance(options, Mapping | None), "must map names to values"),
    ):  # fmt: skip
        if not good:
            raise InvalidInput(name, value, accepted)
    assert over is not None
    if not keep and task in NAMED_TASKS and problem is not None and problem.classes > 2:
        keep = tuple(NAMED_TASKS[str(task)].selected((), problem.classes))
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
        raise InvalidInput(str(axis), values, "must be a sequence of one value or more")
    return as_tuples([one.item() if isinstance(one, np.generic) else one for one in values])


def outputs_of(task: str, keep: Sequence[str], classes: int = 2) -> dict[str, Output] | None:
    """Return the quantities that a task stores; None for a user's function."""
    return NAMED_TASKS[task].selected(keep, classes) if task in NAMED_TASKS else None
