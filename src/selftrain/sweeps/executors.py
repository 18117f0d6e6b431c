"""Executors of batches on this machine; `dask_cluster` has the one of a cluster."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from ..runtime.parallel import cores
from .worker import Batch, Result, WorkerPool
from .worker import results as compute_here


class SequentialExecutor:
    """An executor of batches in this process, one after the other; base class of the others.

    Attributes:
        slots: number of batches that are computed at once.
        lost: exceptions that mean that a batch was lost together with its worker; it is sent again.
    """

    slots = 1
    lost: tuple[type[BaseException], ...] = ()

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Start a batch; in this class, compute it before returning."""
        future: Future[list[Result]] = Future()
        future.set_result(list(compute_here(batch)))
        return future

    def check(self) -> None:
        """Raise if the executor is gone and no result will come."""

    def close(self, now: bool = False) -> None:
        """Shut down: at once, or when all batches are done."""


class ProcessExecutor(SequentialExecutor):
    """An executor of batches in child processes; a thread of this process waits for each.

    Arguments:
        workers: number of processes; -1 for one per core.
    """

    def __init__(self, workers: int) -> None:
        self.slots = cores(workers)
        self._pool, self._threads = WorkerPool(), ThreadPoolExecutor(self.slots)

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Start a batch."""
        return self._threads.submit(self._pool.compute, batch)

    def close(self, now: bool = False) -> None:
        """End the processes."""
        if now:
            self._pool.close()
        self._threads.shutdown(cancel_futures=now)
        self._pool.close()
