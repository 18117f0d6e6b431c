"""`sweep` computes a grid of points in one call; `load` reads the points in a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput, StoreError
from ..fields import as_tuples, number, whole
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.parallel import whole_workers
from ..runtime.progress import ProgressOption, checked_progress
from .computation import Failure
from .executors import Limits
from .grid import Grid
from .scheduling import complete
from .store import Memory, Store
from .sweep_plan import SweepPlan, outputs_of, plan_of

if TYPE_CHECKING:
    from .dataset import Sweep


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
            written = {"axes": dict(plan.axes), "keep": plan.keep, "about": plan.about}
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
    return as_dataset(plan.grid, plan.outputs, plan.keep, found, plan.about), failures


def checked_limits(seconds: Any, memory: Any) -> Limits:
    """Validate `time_limit` (seconds) and `memory_limit` (bytes)."""
    if seconds is not None:
        accepted = "must be a number of seconds > 0"
        seconds = number("time_limit", seconds, lambda value: 0 < value < 1e9, accepted)
    if memory is not None:
        accepted = "must be a whole number of bytes > 0"
        memory = whole("memory_limit", memory, lambda n: 0 < n < 2**62, accepted)
    return Limits(seconds, memory)
