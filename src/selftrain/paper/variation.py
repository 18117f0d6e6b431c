"""A figure with other parameters: the same computations and drawing; claims are not judged.

A change applies to every task that is drawn and has the parameter, as an axis or as a fixed value.
Exception: if a task has one value on an axis on which another task has several, it was made for
that value and keeps it. Tasks that become equal are computed and drawn once. The picture and the
record name the panels that a change leaves as they are (`unchanged`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput, nearest
from ..problem import Problem
from ..recipe import Recipe
from ..sweeps import Grid, Task

if TYPE_CHECKING:
    from .entry import Figure

OF_PROBLEM = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.5, "delta": 1.0, "steps": 1}
"""Parameters of a problem that can be changed, with values that are valid in any combination (to
check one changed parameter at a time)."""

OF_RECIPE = ("lambda_l", "lambda_u")
LENGTH = "longest"
"""The parameter with the largest number of steps, for figures over T = 1, 2, 4, ..."""

LONGEST = 2**14
NOT_JUDGED = "Claims of the paper are judged at its own parameters only."

Changes = Mapping[str, tuple[Any, ...]]


def parameters(one: Figure) -> dict[str, tuple[Any, ...]]:
    """Return the parameters of a figure that can be changed, with their values in the full
    version.
    """
    found: dict[str, dict[Any, None]] = {}
    for task in one.drawn_tasks(False).values():
        single = {name: (value,) for name, value in task.grid.fixed.items()}
        for name, values in {**task.grid.axes, **single}.items():
            if name in (*OF_PROBLEM, *OF_RECIPE, LENGTH):
                found.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: tuple(values) for name, values in found.items()}


def varied(one: Figure, changes: Mapping[str, Any]) -> Figure:
    """Return the figure with some parameters changed."""
    known = parameters(one)
    wanted = {}
    for name, value in changes.items():
        if name not in known:
            accepted = f"{one.id} has no such parameter; {nearest(name, known)}"
            raise InvalidInput(name, value, accepted)
        several = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        wanted[name] = tuple(_checked(name, entry) for entry in several)
    words = (name + "+".join(f"{v:g}" for v in values) for name, values in wanted.items())
    made = replace(one, id="-".join([one.id, *words]), changes=wanted)
    made.tasks(True)  # rejects a change that does not fit before anything runs
    return made


def changed_tasks(parts: Mapping[str, Task], wanted: Changes) -> dict[str, Task]:
    """Return the tasks of a figure with changed grids; of equal tasks, only the first."""
    made: dict[str, Task] = {}
    for part, task in parts.items():
        changes = {name: wanted[name] for name in wanted if _follows(parts, part, name)}
        changed = replace(task, grid=_grid(task.grid, changes))
        if changed not in made.values():
            made[part] = changed
    return made


def unchanged(
    parts: Mapping[str, Task], wanted: Changes, panels: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the panels that each changed parameter leaves as they are, if there are any.

    Arguments:
        panels: the names of panels by the task that they show.
    """
    found = {
        name: tuple(dict.fromkeys(panels[p] for p in parts if not _follows(parts, p, name)))
        for name in wanted
    }
    return {name: places for name, places in found.items() if places}


def _follows(parts: Mapping[str, Task], part: str, name: str) -> bool:
    """Return whether a task has a parameter and was not made for one value of it."""
    grid = parts[part].grid
    several = any(len(task.grid.axes.get(name, ())) > 1 for task in parts.values())
    return name in grid.fixed or len(grid.axes.get(name, ())) > (1 if several else 0)


def not_changed(unchanged: Mapping[str, Sequence[str]]) -> str:
    """Say which parameters leave which panels as they are.

    >>> not_changed({"rho": ("(a)", "(c), a limit"), "steps": ("(b)",)})
    'Not changed by `rho`: (a); (c), a limit. Not changed by `steps`: (b).'
    >>> not_changed({"rho": ("(c)",), "delta": ("(c)",)})
    'Not changed by `rho`, `delta`: (c).'
    """
    names: dict[tuple[str, ...], list[str]] = {}
    for name, panels in unchanged.items():
        names.setdefault(tuple(panels), []).append(f"`{name}`")
    return " ".join(
        f"Not changed by {', '.join(of)}: {'; '.join(panels)}." for panels, of in names.items()
    )


def described(wanted: Changes) -> str:
    """Describe changes in words."""
    return "; ".join(
        f"`{name}` = {', '.join(f'{value:g}' for value in values)}"
        for name, values in wanted.items()
    )


def _grid(grid: Grid, wanted: Changes) -> Grid:
    axes, fixed = dict(grid.axes), dict(grid.fixed)
    for name, values in wanted.items():
        if name in axes:
            axes[name] = values
        elif name in fixed:
            if len(values) > 1:
                raise InvalidInput(name, values, "must be one value, the figure has one")
            fixed[name] = values[0]
    return Grid(axes, fixed)


def _checked(name: str, value: Any) -> Any:
    """Return the value; raise if the problem or the recipe does not accept it."""
    if name == LENGTH:
        if not (isinstance(value, (int, float)) and value in [2**k for k in range(15)]):
            raise InvalidInput(name, value, f"must be a power of two up to {LONGEST}")
        return int(value)
    if name in OF_RECIPE:
        Recipe(**{name: value})
    else:
        Problem(**(OF_PROBLEM | {name: value}))
    return int(value) if name == "steps" else float(value)
