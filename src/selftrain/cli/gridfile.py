"""A grid file: a sweep as a TOML file.

    task = "optimize"                   # or solve, simulate, continuum, "module:function"
    over = ["lambda_l", "lambda_u"]     # what optimize searches
    keep = ["error", "gain"]

    [problem]                           # fields of the problem that do not vary
    steps = 4

    [recipe]                            # fields of the recipe that do not vary
    fix_bias = true

    [options]                           # arguments of the task: features, seeds, bounds, until, ...
    bounds = { lambda_u = [1e-6, 1.0] }

    [axes]
    rho = [0.1, 0.2, 0.5]
    alpha_u = { from = 1.2, to = 8.0, points = 10, scale = "log" }
    case = { alpha_l = [0.5, 1.0], delta = [0.5, 0.6] }     # parameters that vary together

The file is checked as a whole before anything runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, nearest
from ..fields import parse_toml
from ..problem import Problem
from ..recipe import Recipe
from ..sweeps.api import SweepPlan, plan_of
from ..sweeps.grid import geometric, linear
from ..sweeps.named_tasks import NAMED_TASKS
from .options import read_text

KEYS = ("task", "over", "keep", "problem", "recipe", "options", "axes")
TABLES = ("problem", "recipe", "options", "axes")
RANGE = ("from", "to", "points", "scale")
SCALES: Mapping[str, Callable[[float, float, int], tuple[float, ...]]] = {
    "linear": linear,
    "log": geometric,
}


def read_grid(path: str | Path) -> SweepPlan:
    """Return the plan of a grid file; an error names the key that is wrong in it."""
    file = Path(path)
    return plan_of_tables(parse_toml(read_text("grid", file), file), file.resolve().parent)


def plan_of_tables(tables: Mapping[str, Any], folder: Path) -> SweepPlan:
    """Return the plan of the tables of a grid file; functions may be imported from `folder`."""
    for name, content in tables.items():
        if name not in KEYS:
            raise InvalidInput(name, content, f"unknown key; {nearest(name, KEYS)}")
        if name in TABLES and not isinstance(content, Mapping):
            raise InvalidInput(name, content, f"must be a table [{name}]")
    axes = {name: _axis(name, values) for name, values in tables.get("axes", {}).items()}
    if not axes:
        raise InvalidInput("axes", {}, "must be a table [axes] with one axis or more")
    task = tables.get("task", "solve")
    if not isinstance(task, str):
        raise InvalidInput(
            "task", task, f"must be one of {', '.join(NAMED_TASKS)}, module:function"
        )
    options = dict(tables.get("options", {}))
    if "over" in tables:
        if task != "optimize":
            raise InvalidInput("over", tables["over"], "it belongs to the task optimize")
        options["over"] = _names("over", tables["over"])
    columns: dict[str, Any] = {}
    for axis, values in axes.items():
        columns |= values if isinstance(values, Mapping) else {axis: values}
    if task in NAMED_TASKS:
        known = [
            *Problem.__dataclass_fields__,
            *Recipe.__dataclass_fields__,
            *NAMED_TASKS[task].axes,
        ]
        for name in columns:
            if name not in known:
                raise InvalidInput("axes", name, f"unknown parameter; {nearest(name, known)}")
    fixed = {name: dict(tables.get(name, {})) for name in ("problem", "recipe")}
    for table in fixed.values():
        for name, value in table.items():
            if name in columns:
                raise InvalidInput(name, value, "it is an axis, and fixed as well")
    # the first values of the axes give the fields of the problem that are not fixed
    first = {n: column[0] for n, column in columns.items() if n in Problem.__dataclass_fields__}
    plain = task not in NAMED_TASKS and "problem" not in tables
    return plan_of(
        None if plain else Problem.from_dict({**fixed["problem"], **first}),
        None if plain else Recipe.from_dict(fixed["recipe"]),
        axes,
        _function(task, folder)
        if task not in NAMED_TASKS and (":" in task or "." in task)
        else task,
        _names("keep", tables.get("keep", [])),
        options,
    )


def _axis(name: str, values: Any) -> Any:
    """Read an axis: a list, a range, or several lists of parameters that vary together."""
    if isinstance(values, list):
        if not values:
            raise InvalidInput(name, values, "must be a list of one value or more")
        return values
    if not isinstance(values, Mapping):
        raise InvalidInput(name, values, "must be a list, a range or a table of lists")
    if not set(values) & set(RANGE):
        return {key: _axis(f"{name}.{key}", column) for key, column in values.items()}
    for key, value in values.items():
        if key not in RANGE:
            raise InvalidInput(f"{name}.{key}", value, f"unknown key; {nearest(key, RANGE)}")
    missing = [key for key in RANGE[:3] if key not in values]
    if missing:
        raise InvalidInput(name, dict(values), f"a range needs {', '.join(RANGE[:3])}")
    scale = values.get("scale", "linear")
    if scale not in SCALES:
        raise InvalidInput(f"{name}.scale", scale, f"unknown scale; {nearest(str(scale), SCALES)}")
    try:
        return SCALES[scale](values["from"], values["to"], values["points"])
    except InvalidInput as error:
        raise InvalidInput(f"{name}.{error.field}", error.value, error.accepted) from None


def _names(field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InvalidInput(field, value, "must be a list of names")
    return tuple(value)


def _function(task: str, folder: Path) -> Callable[..., Any]:
    """Import the function "module:function" or "module.function"."""
    module, _, name = task.replace(":", ".").rpartition(".")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        accepted = f"must be a function that can be imported from {folder} ({error})"
        raise InvalidInput("task", task, accepted) from None
    if not callable(found):
        raise InvalidInput("task", task, "must be a function")
    function: Callable[..., Any] = found
    return function
