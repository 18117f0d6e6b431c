"""Dask workers that are killed while points are on them: every innocent point has its value."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster

from selftrain import sweep

# Another package may be called "tests" where workers look, so functions of this file travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

POINTS = 40
KILLS = 3
REPETITIONS = int(os.environ.get("WORKER_KILLS", "2"))
"""How often each test repeats its sweep; set WORKER_KILLS to repeat it more often by hand."""


class Workers:
    """Two workers of one thread each, which are started again whenever they end, as a batch system
    does. (Dask's own nanny gives up on a worker that dies while it starts.)
    """

    def __init__(self, address: str) -> None:
        self._command = [
            *(sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"),
            *("--nthreads", "1", "--no-dashboard", "--death-timeout", "60"),
        ]
        self._over = threading.Event()
        self.processes = [self._started() for _ in range(2)]
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _started(self) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(self._command, stdout=quiet, stderr=quiet)

    def _keep(self) -> None:
        while not self._over.wait(0.05):
            for place, process in enumerate(self.processes):
                if process.poll() is not None:
                    self.processes[place] = self._started()

    def end(self) -> None:
        self._over.set()
        self._keeper.join()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Any, Workers]]:
    """A client, and its workers; Dask gives a task up when a second worker has died under it."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=0, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as scheduler,
        Client(scheduler, set_as_default=False) as connected,
    ):
        workers = Workers(scheduler.scheduler_address)
        try:
            yield connected, workers
        finally:
            workers.end()


def doubled(x: int, folder: str) -> int:
    """Note the process, and take a moment in which its worker can be killed."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(0.05)
    return 2 * x


def ends_its_worker(x: int, guilty: int) -> int:
    """One point ends the worker every time, and with it what waits there."""
    if x == guilty:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(30)
    time.sleep(0.01)
    return 2 * x


@contextmanager
def killed(client: Any, workers: Workers, seed: int) -> Iterator[list[int]]:
    """While this is open workers are killed, one at a time and `KILLS` in all, each at a random
    moment after both are there; the list has them.
    """
    draw, over, dead = random.Random(seed), threading.Event(), list[int]()

    def kill() -> None:
        while len(dead) < KILLS and not over.wait(0.05):
            if len(client.nthreads()) < 2 or over.wait(draw.uniform(0.0, 0.5)):
                continue
            victim = draw.choice(workers.processes)
            victim.kill()
            dead.append(victim.pid)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield dead
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_points_of_killed_workers_are_not_blamed(
    cluster: tuple[Any, Workers], tmp_path: Path, repetition: int
) -> None:
    client, workers = cluster
    client.wait_for_workers(2, timeout=60)
    axes, options = {"x": tuple(range(POINTS))}, {"folder": str(tmp_path)}
    with killed(client, workers, repetition) as dead:
        data = sweep(over=axes, task=doubled, options=options, scheduler=client, progress=False)
    assert dead
    assert data["status"].values.tolist() == [0] * POINTS, data["reason"].values.tolist()
    assert data["value"].values.tolist() == [2 * x for x in range(POINTS)]
    assert_no_orphans([int(path.name) for path in tmp_path.iterdir()])


def test_a_worker_that_ends_before_work_starts_is_not_the_end_of_the_sweep(
    cluster: tuple[Any, Workers], tmp_path: Path
) -> None:
    """It is stopped, so that it leaves the first question of the sweep open, and then killed."""
    client, workers = cluster
    client.wait_for_workers(2, timeout=60)
    victim = workers.processes[0]
    victim.send_signal(signal.SIGSTOP)
    killer = threading.Timer(3.0, victim.kill)
    killer.start()
    axes, options = {"x": (1, 2, 3)}, {"folder": str(tmp_path)}
    data = sweep(over=axes, task=doubled, options=options, scheduler=client, progress=False)
    killer.join()
    assert data["value"].values.tolist() == [2, 4, 6]


def assert_no_orphans(pids: list[int]) -> None:
    """What a killed worker had started ends too, within seconds."""
    until = time.monotonic() + 20
    while orphans := [pid for pid in pids if is_orphan(pid)]:
        assert time.monotonic() < until, orphans
        time.sleep(0.1)


def is_orphan(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        return process.ppid() == 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("repetition", range((REPETITIONS + 1) // 2))
def test_only_the_point_that_ends_its_worker_is_blamed(
    cluster: tuple[Any, Workers], repetition: int
) -> None:
    client, _ = cluster
    client.wait_for_workers(2, timeout=60)
    guilty = 11 * repetition % POINTS
    axes, options = {"x": tuple(range(POINTS))}, {"guilty": guilty}
    data = sweep(over=axes, task=ends_its_worker, options=options, scheduler=client, progress=False)
    assert np.flatnonzero(data["status"].values).tolist() == [guilty], data["reason"].values
    values = np.delete(data["value"].values, guilty)
    assert values.tolist() == [2 * x for x in range(POINTS) if x != guilty]
