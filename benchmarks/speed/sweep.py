"""A sweep of 10,000 solves: one process, two processes, Dask, and the loops that a user would
write.

All of them compute the same numbers, which is checked. Times are wall-clock times after the start
of the processes (which is a line of its own), so the machine should be idle. The overhead of a
point, and the speed-up of two idle cores, are computed from processor times, which other load on
the machine hardly changes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import joblib
import numpy as np
import xarray as xr

from selftrain.sweeps.api import plan_of
from selftrain.sweeps.api import sweep as run
from selftrain.sweeps.grid import geometric, linear
from selftrain.sweeps.scheduling import complete
from selftrain.sweeps.store import Memory
from selftrain.theory.solve import solve

from .measure import Line, seconds, timed
from .reference import PROBLEM, RECIPE

KEEP = ("error", "cosine")

Axes = dict[str, tuple[float, ...]]


def axes_of(side: int) -> Axes:
    """Return a square grid around the reference problem."""
    return {"rho": linear(0.3, 0.5, side), "lambda_u": geometric(0.01, 0.1, side)}


def point(rho: float, lambda_u: float) -> tuple[float, float]:
    """Return error and cosine of a point; the loops call it."""
    found = solve(PROBLEM.replace(rho=rho), RECIPE.replace(lambda_u=lambda_u))
    return float(found.error[-1]), float(found.cosine[-1])


def measurements(side: int = 100, repeat: int = 1) -> Iterator[Line]:
    """Measure all lines; times are the shortest of `repeat` runs."""
    axes = axes_of(side)
    point(0.4, 0.05)
    yield from _overhead(min(side, 40))
    few = {name: values[:2] for name, values in axes.items()}
    expected = run(PROBLEM, RECIPE, over=few, keep=KEEP, workers=0)
    taken: dict[str, float] = {}
    starts: dict[str, float] = {}
    with _dask_client() as client:
        ways = _ways(client)
        for _ in range(repeat):
            for name, way in ways.items():
                start, found = timed(partial(way, few), wall=True)
                np.testing.assert_array_equal(found, expected["error"].values)
                spent = seconds(partial(way, axes), wall=True)
                starts[name] = min(starts.get(name, np.inf), start)
                taken[name] = min(taken.get(name, np.inf), max(spent - start, 1e-9))
        yield from _by_the_clock(side**2, taken, starts)
        yield from _by_processor(axes, few, client)


def _by_the_clock(count: int, taken: dict[str, float], starts: dict[str, float]) -> Iterator[Line]:
    note = f"{count} solves of 16 steps, after the start of the processes"
    yield Line("one process", 1e3 * taken["one"] / count, "ms per point", note=note)
    ratio = taken["one"] / taken["two"]
    yield Line("two processes against one", ratio, "x", 1.8, note=note)
    whole = (taken["one"] + starts["one"]) / (taken["two"] + starts["two"])
    yield Line("the same, their start included", whole, "x")
    yield Line("start of two processes, kernels loaded", starts["two"], "s")
    if "dask" in taken:
        ratio = taken["dask"] / taken["two"]
        yield Line("Dask, two local workers, against two processes", ratio, "x", 1.15, False, note)
    ratio = taken["joblib"] / taken["two"]
    yield Line("a loop with joblib, two processes", ratio, "x of ours", note="one task per point")
    ratio = taken["apply_ufunc"] / taken["one"]
    yield Line("xarray.apply_ufunc, vectorized", ratio, "x of one process")


def _overhead(side: int) -> Iterator[Line]:
    """Measure the processor time per point of a sweep in this process minus that of a loop."""
    axes = axes_of(side)
    loop, memory, store = np.inf, np.inf, np.inf
    with tempfile.TemporaryDirectory() as folder:
        for at in range(3):
            loop = min(loop, seconds(partial(_plain_loop, axes)))
            memory = min(memory, seconds(partial(_ours, axes, workers=0)))
            stored = partial(_ours, axes, workers=0, store=f"{folder}/{at}.db")
            store = min(store, seconds(stored))
    per_point = 1e3 / side**2
    note = f"{side**2} points, processor time, shortest of three"
    yield Line("a solve in a plain loop", per_point * loop, "ms", note=note)
    for what, spent in (("in memory", memory), ("with a store", store)):
        extra = per_point * (spent - loop)
        yield Line(f"overhead of a point, {what}", extra, "ms", 0.5, False, note)


def _by_processor(axes: Axes, few: Axes, client: Any) -> Iterator[Line]:
    """Measure a point in a worker, and in the process that sends and stores it."""
    worker, driver = _account(axes, few, workers=2)
    yield Line("a point in a worker", worker, "ms", note="processor time")
    yield Line("a point in the driver", driver, "ms", note="processor time")
    note = "2 w / (w + d), w in a worker, d in the driver"
    yield Line(
        "two processes on two free cores", 2 * worker / (worker + driver), "x", 1.8, note=note
    )
    if client is not None:
        there, here = _account(axes, few, scheduler=client)
        yield Line("a point in the driver and the scheduler of Dask", here, "ms")
        ratio = (there + here) / (worker + driver)
        yield Line(
            "Dask against processes, by processor time", ratio, "x", 1.15, False, "(w + d) of both"
        )


def _account(axes: Axes, few: Axes, **how: Any) -> tuple[float, float]:
    """Return milliseconds of processor time per point, in the workers and in this process.

    That of this process is the difference of a large and a small grid, without the start of the
    workers.
    """
    spent, count, taken = [], [], 0.0
    for over in (few, axes):
        plan, memory = plan_of(PROBLEM, RECIPE, over, keep=KEEP), Memory()
        begin = time.process_time()
        complete([plan.grid_task], memory, progress=False, **how)
        spent.append(time.process_time() - begin)
        count.append(len(plan.grid))
        taken = plan.grid_task.taken(memory)
    return 1e3 * taken / count[1], 1e3 * (spent[1] - spent[0]) / (count[1] - count[0])


Way = Callable[[Axes], Any]


def _ways(client: Any) -> dict[str, Way]:
    """Return functions that compute the same sweep in different ways, by name."""
    ways: dict[str, Way] = {
        "one": lambda over: _ours(over, workers=1),
        "two": lambda over: _ours(over, workers=2),
        "joblib": _joblib_loop,
        "apply_ufunc": _apply_ufunc,
    }
    if client is not None:
        ways["dask"] = lambda over: _ours(over, scheduler=client)
    return ways


@contextmanager
def _dask_client() -> Iterator[Any]:
    """Start a cluster of two local workers; yield its client, or None if Dask is not installed."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        yield None
        return
    cluster: Any = LocalCluster
    connect: Any = Client
    with (
        cluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        connect(local, set_as_default=False) as client,
    ):
        yield client


def _ours(over: Axes, **how: Any) -> Any:
    return run(PROBLEM, RECIPE, over=over, keep=KEEP, progress=False, **how)["error"].values


def _plain_loop(over: Axes) -> Any:
    return [[point(rho, ridge)[0] for ridge in over["lambda_u"]] for rho in over["rho"]]


def _joblib_loop(over: Axes) -> Any:
    """Loop with joblib, as a user would write it."""
    tasks = (joblib.delayed(point)(rho, ridge) for rho in over["rho"] for ridge in over["lambda_u"])
    found = joblib.Parallel(n_jobs=2)(tasks)
    return np.array([error for error, _ in found]).reshape(len(over["rho"]), -1)


def _apply_ufunc(over: Axes) -> Any:
    """Evaluate the grid with xarray's `apply_ufunc`, as a user would write it."""
    rho, ridge = (xr.DataArray(list(over[name]), dims=name) for name in ("rho", "lambda_u"))
    error, _ = xr.apply_ufunc(point, rho, ridge, vectorize=True, output_core_dims=[[], []])
    return error.values
