"""`sweep` computes a grid of points in one call; `load` reads the points in a store.

A `SweepPlan` has the validated arguments of `sweep`: it is checked before anything runs.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, StoreError, nearest
from ..fields import as_tuples, number, whole
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.parallel import whole_workers
from ..runtime.progress import ProgressOption, checked_progress
from .computation import Computation, Failure, Output, Task, name_of
from .executors import Limits, WrongReturn
from .function_identity import identify
from .grid import Grid, Point
from .named_tasks import NAMED_TASKS, optimized
from .scheduling import complete
from .store import Memory, Store

if TYPE_CHECKING:
    from .dataset import Sweep

REGISTERED = {"loss", "pseudo_loss", "labeler"}
"""Fields whose values are names of registered objects: a user may register another object under the
same name, so the name alone does not identify it."""


def sweep(
    problem: Problem | None = None,
    recipe: Recipe | None = None,
    over: Mapping[str, Any] | None = None,
    task: str | Callable[..., Any] = "solve",
    keep: Sequence[str] = (),
    store: str | Path | None = None,
    workers: int | None = None,
    scheduler: Any = None,
    *,
    options: Mapping[str, Any] | None = None,
    retry: bool = False,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    progress: ProgressOption = None,
    notice: Callable[[str], None] | None = None,
) -> Sweep:
    r"""Compute a task at every point of a grid.

    Arguments:
        problem, recipe: the problem and the recipe (default: `Recipe()`) whose fields the axes
            vary.
        over: the axes: names of fields of the problem or the recipe, and their values. Fields that
            vary together form one axis: `{"case": {"rho": [...], "alpha_u": [...]}}`.
        task: "solve", "optimize", "simulate", "continuum", or a function. A function is called with
            the problem and the recipe of a point, and with all other axes by name; it returns a
            number, or a dictionary of numbers and arrays.
        keep: names of the quantities to store. A name stands for the value at the last step; with
            `_path` appended, as in `error_path`, for the values at all steps. The default depends
            on the task.
        store: an SQLite file for finished points, so that the same call resumes; default: none.
        workers: number of processes; 0: this process, -1: one per core. Default: one per core if
            there is enough work.
        scheduler: the address of a Dask scheduler, or a `distributed.Client`.
        options: further arguments of the task: `{"over": ("lambda_l", "lambda_u")}` for "optimize",
            `{"features": 4096, "seeds": 8}` for "simulate".
        retry: compute again the points of the store that failed before.
        time_limit, memory_limit: seconds and bytes that a point may take; a point that takes more
            fails. Memory is limited on Linux only.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        notice: called with a sentence about each damage of the store; default: `print`.

    Returns:
        An `xarray.Dataset` over the axes, NaN where a point failed. Its variables `status` and
        `reason` say which points failed and why; `.plot()` draws it.

    >>> from selftrain import Problem, Recipe, geometric, sweep
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=4)
    >>> axes = {"rho": [0.3, 0.5], "lambda_u": geometric(0.01, 0.1, 3)}
    >>> data = sweep(problem, Recipe(), over=axes, keep=("error", "cosine"), workers=0)
    >>> data["error"].dims, data["error"].attrs["symbol"]
    (('rho', 'lambda_u'), '\\epsilon_g')
    """
    plan = plan_of(problem, recipe, over, task, keep, options)
    data, _ = run_plan(
        plan,
        store,
        workers=None if workers is None else whole_workers(workers),
        scheduler=scheduler,
        retry=retry,
        limits=checked_limits(time_limit, memory_limit),
        progress=checked_progress(progress),
        notice=notice or print,
    )
    return data


def load(store: str | Path) -> Sweep:
    """Return the last sweep that was computed into a store.

    It may be called while the sweep is running: points that are not yet stored are NaN.
    """
    from .dataset import as_dataset

    found = Store(store)
    if "plan" not in found.about:
        if found.damage:
            raise StoreError(f"{found.damage[0]} is damaged; run the same sweep to restore it")
        raise InvalidInput("store", str(store), "no sweep was computed into this file")
    plan = json.loads(found.about["plan"])
    grid, outputs = Grid(as_tuples(plan["axes"])), outputs_of(plan["about"]["task"], plan["keep"])
    names = plan["keep"] if outputs is None else outputs
    points = [found.get(key, names) for key in plan["keys"]]
    return as_dataset(grid, outputs, plan["keep"], points, plan["about"])


@contextmanager
def opened(plan: SweepPlan, file: str | Path | None) -> Iterator[Memory]:
    """Open the store of a plan for writing, and record the plan in it."""
    store = Memory() if file is None else Store(file)
    with store.writing():
        if isinstance(store, Store):
            written = {"axes": dict(plan.grid.axes), "keep": plan.call.keep, "about": plan.about}
            store.describe(plan=json.dumps({**written, "keys": plan.grid_task.keys(store)}))
        yield store


def run_plan(plan: SweepPlan, file: str | Path | None, **how: Any) -> tuple[Sweep, list[Failure]]:
    """Compute the missing points of a plan; return the dataset, and the points that failed.

    `how` takes the options of `complete`.
    """
    from .dataset import as_dataset

    with opened(plan, file) as store:
        failures = complete([plan.grid_task], store, **how)
    found = plan.grid_task.find(store)
    return as_dataset(plan.grid, plan.outputs, plan.call.keep, found, plan.about), failures


def checked_limits(seconds: Any, memory: Any) -> Limits:
    """Validate `time_limit` (seconds) and `memory_limit` (bytes)."""
    if seconds is not None:
        accepted = "must be a number of seconds > 0"
        seconds = number("time_limit", seconds, lambda value: 0 < value < 1e9, accepted)
    if memory is not None:
        accepted = "must be a whole number of bytes > 0"
        memory = whole("memory_limit", memory, lambda n: 0 < n < 2**62, accepted)
    return Limits(seconds, memory)


@dataclass(frozen=True)
class PointCall:
    """The function that is evaluated at every point: calls `source` with its problem and recipe.

    Attributes:
        source: the function of the task or of the user.
        problem, recipe: what the axes vary; None for a function of plain parameters.
        keep: the quantities asked for. The function of a task is called with them, that of a user
            must return them.
        options: further arguments of `source`, the same at every point.
        reserved: names that a user's function must not return, because the dataset uses them; None
            for the function of a task.
    """

    source: Callable[..., Any]
    problem: Problem | None
    recipe: Recipe | None
    keep: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    reserved: frozenset[str] | None = None

    def __call__(self, **point: Any) -> dict[str, Any]:
        inputs, named = self.arguments(point)
        values = self.source(*inputs, **named)
        found = dict(values) if isinstance(values, Mapping) else {"value": values}
        if self.reserved is not None:
            self._check_names(found, self.reserved)
        return found

    def _check_names(self, found: Mapping[str, Any], reserved: frozenset[str]) -> None:
        """Reject quantities that are missing, or named like something else in the dataset."""
        for name in self.keep:
            if name not in found:
                reason = f"the function does not return it; it returns {', '.join(found)}"
                raise WrongReturn("keep", name, reason)
        for name, value in found.items():
            dims = {f"{name}_{axis}" for axis in range(np.ndim(value))}  # as `gather` names them
            for clash in {name} & reserved or dims & {*reserved, *found}:
                reason = (
                    "the function returns a quantity of this name, and the dataset has an axis, a "
                    "dimension or a variable of the same name: return it under another name"
                )
                raise WrongReturn("task", clash, reason)

    def arguments(self, point: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of the function at a point."""
        problem, recipe, others = self.at(point)
        inputs = [part for part in (problem, recipe) if part is not None]
        keep = {"keep": self.keep} if self.reserved is None else {}
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
        call: the function of the points.
        grid: the points.
    """

    task: str
    call: PointCall
    grid: Grid

    @property
    def outputs(self) -> dict[str, Output] | None:
        """The quantities to store; None for a user's function, which may return any."""
        return outputs_of(self.task, self.call.keep)

    @cached_property
    def grid_task(self) -> Task:
        """The task for `complete`."""
        return Task(Computation(self.call, self.outputs), self.grid, self.call.keep)

    @property
    def about(self) -> dict[str, str]:
        """The attributes of the dataset."""
        found = {"task": self.task, "options": json.dumps(dict(self.call.options))}
        for name, part in (("problem", self.call.problem), ("recipe", self.call.recipe)):
            if part is not None:
                found[name] = part.to_json()
        return found

    def check(self) -> None:
        """Raise for what the task would reject: every value of each axis is tried, with the first
        of the others.
        """
        first = self.grid.points[0]
        if self.task in NAMED_TASKS:
            self._check_task(first)
        for axis in self.grid.axes:
            columns = self.grid.columns(axis)
            for row in zip(*columns.values(), strict=True):
                self._check_point({**first, **dict(zip(columns, row, strict=True))})

    def _check_task(self, point: Point) -> None:
        kind, options = NAMED_TASKS[self.task], self.call.options
        for name, value in options.items():
            if name not in kind.options:
                raise InvalidInput(name, value, f"unknown option; {nearest(name, kind.options)}")
        known = [*Problem.__dataclass_fields__, *Recipe.__dataclass_fields__, *kind.axes]
        free = optimized(options) if self.task == "optimize" else ()
        for name in point:
            if name not in known:
                raise InvalidInput(name, "axis", f"unknown parameter; {nearest(name, known)}")
            if name in options:
                raise InvalidInput(name, options[name], "must not be an option: it is an axis")
            if name in free:
                raise InvalidInput(name, "axis", "must not be an axis: it is optimised")
        if "t" in self.call.keep and "steps" in point:
            reason = "runs of different lengths have no common path: keep end values only"
            raise InvalidInput("steps", "axis", reason)

    def _check_point(self, point: Mapping[str, Any]) -> None:
        problem, recipe, others = self.call.at(point)
        if recipe is not None and problem is not None:
            recipe.at_steps(problem.steps)
        if self.task in NAMED_TASKS:
            NAMED_TASKS[self.task].check(problem, recipe, **self.call.options, **others)
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
    grid = Grid({str(axis): _axis(axis, values) for axis, values in over.items()})
    recipe = Recipe() if problem is not None and recipe is None else recipe
    names, fixed = tuple(keep), as_tuples(options or {})
    if callable(task):
        reserved = frozenset({*grid.axes, *grid.points[0], "status", "reason"})
        plan = SweepPlan(
            name_of(task), PointCall(task, problem, recipe, names, fixed, reserved), grid
        )
    elif task not in NAMED_TASKS:
        accepted = f"must be a function or a known task; {nearest(task, NAMED_TASKS)}"
        raise InvalidInput("task", task, accepted)
    elif problem is None:
        raise InvalidInput("problem", None, f"must be given for the task {task!r}")
    else:
        kind = NAMED_TASKS[task]
        outputs = tuple(kind.selected(names, problem.classes))
        plan = SweepPlan(task, PointCall(kind.function, problem, recipe, outputs, fixed), grid)
    plan.check()
    return plan


def _axis(axis: Any, values: Any) -> Any:
    """Return the values of an axis as plain tuples."""
    if isinstance(values, Mapping):
        return {str(name): _axis(name, column) for name, column in values.items()}
    if hasattr(values, "__array__"):
        values = np.asarray(values).tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidInput(str(axis), values, "must be a sequence of one value or more")
    return as_tuples([one.item() if isinstance(one, np.generic) else one for one in values])


def outputs_of(task: str, keep: Sequence[str]) -> dict[str, Output] | None:
    """Return the quantities that a task stores; None for a user's function."""
    return NAMED_TASKS[task].selected(keep) if task in NAMED_TASKS else None
