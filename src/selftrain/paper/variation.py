r"""A figure with other parameters: the same computations and drawing, without the claims, which are
about the paper's own.

A change goes to every computation of the figure that has the parameter. Where it is an axis, the
axis gets the new values; where it is fixed, it gets the new value. A part that has one value on an
axis where another has several was made for that value, and keeps it. Parts that become equal are
computed and drawn once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import InvalidInput, nearest
from ..problem import Problem
from ..recipe import Recipe
from ..sweeps import Grid, Task
from .figure import Claim, Data, Figure, Finding, Tasks

OF_PROBLEM = ("alpha_l", "alpha_u", "rho", "delta", "steps")
OF_RECIPE = ("lambda_l", "lambda_u")
LENGTH = "longest"
"""The longest of the runs that double in length."""

LONGEST = 2**14
NOT_JUDGED = "The claims of the paper are about its own parameters and not judged here."


def parameters(one: Figure) -> dict[str, tuple[Any, ...]]:
    """The parameters of a figure that can be changed, and their values in its full version."""
    found: dict[str, dict[Any, None]] = {}
    for task in one.tasks(False).values():
        for name, values in (*task.grid.axes.items(), *task.grid.fixed.items()):
            if name in (*OF_PROBLEM, *OF_RECIPE, LENGTH):
                several = name in task.grid.axes
                found.setdefault(name, {}).update(dict.fromkeys(values if several else (values,)))
    return {name: tuple(values) for name, values in found.items()}


def varied(one: Figure, changes: Mapping[str, Any]) -> Figure:
    """The figure with some parameters changed."""
    known = parameters(one)
    wanted = {}
    for name, value in changes.items():
        if name not in known:
            accepted = f"{one.id} has no such parameter; {nearest(name, known)}"
            raise InvalidInput(name, value, accepted)
        wanted[name] = tuple(_checked(name, entry) for entry in _several(value))
    made = replace(
        one,
        id="-".join([one.id, *(_words(name, values) for name, values in wanted.items())]),
        tasks=partial(_tasks, one.tasks, wanted),
        claims=_no_claims,
        findings=_no_findings,
        chosen=f"{one.chosen} Changed here: {_listed(wanted)}. {NOT_JUDGED}",
        changes=wanted,
    )
    made.tasks(True)  # a change that does not fit is refused before anything runs
    return made


def _tasks(own: Tasks, wanted: Mapping[str, tuple[Any, ...]], quick: bool) -> dict[str, Task]:
    """The tasks of a figure on changed grids, equal ones once."""
    made: dict[str, Task] = {}
    parts = own(quick)
    several = {
        name for task in parts.values() for name, axis in task.grid.axes.items() if len(axis) > 1
    }
    for part, task in parts.items():
        kept = {name for name, axis in task.grid.axes.items() if len(axis) == 1} & several
        changes = {name: values for name, values in wanted.items() if name not in kept}
        changed = replace(task, grid=_grid(task.grid, changes))
        if changed not in made.values():
            made[part] = changed
    return made


def _grid(grid: Grid, wanted: Mapping[str, tuple[Any, ...]]) -> Grid:
    axes, fixed = dict(grid.axes), dict(grid.fixed)
    for name, values in wanted.items():
        if name in axes:
            axes[name] = values
        elif name in fixed:
            if len(values) > 1:
                raise InvalidInput(name, values, "one value is accepted, the figure has one")
            fixed[name] = values[0]
    return Grid(axes, fixed)


def _checked(name: str, value: Any) -> Any:
    """A value that the problem, or the recipe, accepts."""
    if name == LENGTH:
        accepted = f"a power of two up to {LONGEST} is accepted"
        if not (isinstance(value, (int, float)) and value in [2**k for k in range(15)]):
            raise InvalidInput(name, value, accepted)
        return int(value)
    if name in OF_RECIPE:
        Recipe(**{name: value})
        return float(value)
    usual = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.5, "delta": 1.0, "steps": 1}
    Problem(**(usual | {name: value}))
    return int(value) if name == "steps" else float(value)


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _words(name: str, values: tuple[Any, ...]) -> str:
    return name + "+".join(f"{value:g}" for value in values)


def _listed(wanted: Mapping[str, tuple[Any, ...]]) -> str:
    return "; ".join(
        f"`{name}` = {', '.join(f'{value:g}' for value in values)}"
        for name, values in wanted.items()
    )


def _no_claims(data: Data, full: bool) -> list[Claim]:
    return []


def _no_findings(data: Data, full: bool) -> list[Finding]:
    return []
