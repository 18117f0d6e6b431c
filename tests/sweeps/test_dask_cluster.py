"""A Dask cluster gives the numbers of this machine to the last bit, and says when it cannot."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster

from selftrain import Problem, Recipe, SelfTrainError, sweep
from selftrain.errors import Unreachable

# Another package may be called "tests" where workers look, so functions of this file travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=3)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dask

    quick = {"distributed.scheduler.allowed-failures": 1}
    with (
        dask.config.set(quick),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as connected,
    ):
        yield connected


def test_numbers_are_those_of_this_machine_to_the_last_bit(client: Any, tmp_path: Path) -> None:
    axes = {"rho": [0.3, 0.4, 0.5], "lambda_u": [0.01, 0.1]}
    here = sweep(PROBLEM, Recipe(), over=axes, keep=("error", "q"), workers=0)
    address = client.scheduler.address
    there = sweep(PROBLEM, Recipe(), over=axes, keep=("error", "q"), scheduler=address)
    assert there.identical(here)
    kept = sweep(
        PROBLEM, Recipe(), over=axes, keep=("error", "q"), scheduler=client, store=tmp_path / "s.db"
    )
    assert kept.identical(here)


def doubled(x: int) -> int:
    return 2 * x


def test_a_scheduler_is_reached_from_a_notebook(client: Any) -> None:
    """Its cells run in an event loop."""

    async def cell() -> Any:
        return sweep(over={"x": (1, 2)}, task=doubled, scheduler=client.scheduler.address)

    assert asyncio.run(cell())["value"].values.tolist() == [2, 4]


def dies_once(x: int, folder: str) -> int:
    mark = Path(folder, "mark")
    if x == 3 and not mark.exists():
        mark.write_text("")
        os.kill(os.getppid(), signal.SIGKILL)  # the worker, which has started this process
    return 2 * x


def dies_always(x: int) -> int:
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * x


def test_points_of_a_lost_worker_are_computed_again(client: Any, tmp_path: Path) -> None:
    options = {"folder": str(tmp_path)}
    axes = {"x": tuple(range(8))}
    data = sweep(over=axes, task=dies_once, options=options, scheduler=client)
    assert (tmp_path / "mark").exists()
    assert data["value"].values.tolist() == [2 * x for x in range(8)]


def test_a_point_that_ends_every_worker_is_found(client: Any) -> None:
    client.wait_for_workers(2)
    data = sweep(over={"x": (1, 2, 3, 4)}, task=dies_always, scheduler=client)
    assert data["status"].values.tolist() == [0, 0, 1, 0]
    assert "process was killed" in str(data["reason"].values[2])


REPETITIONS = 6


def dies_at(x: int, guilty: int) -> int:
    if x == guilty:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * x


def check_that_only_the_guilty_is_blamed(scheduler: Any, guilty: int) -> None:
    axes, options = {"x": tuple(range(40))}, {"guilty": guilty}
    data = sweep(over=axes, task=dies_at, options=options, scheduler=scheduler, progress=False)
    assert np.flatnonzero(data["status"].values).tolist() == [guilty]
    values = np.delete(data["value"].values, guilty)
    assert values.tolist() == [2 * x for x in range(40) if x != guilty]


def test_only_the_point_that_ends_workers_is_blamed(client: Any) -> None:
    for repetition in range(REPETITIONS):
        check_that_only_the_guilty_is_blamed(client, 7 * repetition % 40)


def test_points_that_wait_behind_one_that_ends_the_only_worker_are_not_blamed() -> None:
    """Dask gives up all that is assigned to a worker when it dies, whether it has begun or not."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as connected,
    ):
        check_that_only_the_guilty_is_blamed(connected, 0)


def pretend(name: str, shown: str) -> None:
    """Let the process where this runs say it has another version."""
    import selftrain.sweeps.dask_cluster as here

    true = importlib.metadata.version
    here.version = lambda library: shown if library == name else true(library)  # type: ignore[attr-defined]


def test_versions_that_differ_are_said_before_work_starts(client: Any, tmp_path: Path) -> None:
    client.wait_for_workers(1)
    arguments: dict[str, Any] = {"over": {"x": (1, 2)}, "task": dies_once, "scheduler": client}
    client.run(pretend, "selftrain", "0.0.1")
    with pytest.raises(SelfTrainError, match=r"has selftrain 0\.0\.1, this process"):
        sweep(**arguments, options={"folder": str(tmp_path)})
    client.run(pretend, "numpy", "1.0")
    with pytest.warns(UserWarning, match=r"has numpy 1\.0.*the last digits may differ"):
        sweep(**arguments, options={"folder": str(tmp_path)})
    client.run(pretend, "", "")


def test_a_scheduler_that_is_not_there_is_named_in_time(client: Any) -> None:
    """No host, nobody at the port, a server that says nothing, and a worker."""
    with socket.create_server(("127.0.0.1", 0)) as mute, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        worker = next(iter(client.nthreads()))
        for address in (
            "nonsense",
            f"tcp://127.0.0.1:{unused.getsockname()[1]}",
            f"127.0.0.1:{mute.getsockname()[1]}",
            worker,
        ):
            begin = time.monotonic()
            with pytest.raises(Unreachable, match=f"scheduler {address}"):
                sweep(PROBLEM, over={"rho": [0.3]}, scheduler=address)
            assert time.monotonic() - begin < 10
