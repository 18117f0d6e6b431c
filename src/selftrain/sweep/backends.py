"""Where batches are computed: in this process, in processes of this machine, or on a Dask cluster.

A backend takes batches as bytes and gives futures. It says how many batches it can use at once, and
begins anew when processes were lost.
"""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, CancelledError, Future
from enum import Enum
from typing import Any, Protocol

from ..runtime.parallel import cores, local_processes, stop_now
from .isolated import end_idle
from .work import Refusal, Result, compute

Answer = list[Result] | Refusal


class LostProcess(Enum):
    """How a batch lost its process."""

    ALL = "all batches under way are lost with it"
    ALONE = "the others go on"
    OFTEN = "the others go on, and it was lost several times already"


class Backend(Protocol):
    """A place that computes batches."""

    slots: int
    """Batches that can be computed at once."""

    isolates: bool
    """Whether points never run in its own processes, but in others that these start."""

    def submit(self, work: bytes) -> Future[Answer]:
        """Begin a batch."""
        ...

    def loss(self, error: BaseException) -> LostProcess | None:
        """What an error of a batch says about its process; None: it is another kind of error."""
        ...

    def check(self) -> None:
        """Raise if there is nothing to wait for any more."""
        ...

    def restart(self) -> None:
        """Replace what was lost; futures of before are void."""
        ...

    def close(self, now: bool = False) -> None:
        """End it; at once, or when all batches are done."""
        ...


class Here:
    """This process, one batch after the other."""

    slots = 1
    isolates = False

    def submit(self, work: bytes) -> Future[Answer]:
        """The finished batch."""
        future: Future[Answer] = Future()
        future.set_result(compute(work))
        return future

    def loss(self, error: BaseException) -> LostProcess | None:
        """This process is not lost as long as it asks."""
        return None

    def check(self) -> None:
        """Everything is done when it is sent."""

    def restart(self) -> None:
        """Nothing to replace."""

    def close(self, now: bool = False) -> None:
        """End the processes of points with a limit."""
        end_idle()


class Processes:
    """Processes of this machine, each with one thread of linear algebra; -1: as many as cores."""

    isolates = False

    def __init__(self, workers: int) -> None:
        self.slots = cores(workers)
        self._executor = local_processes(self.slots)

    def submit(self, work: bytes) -> Future[Answer]:
        """Begin a batch. A pool that was lost meanwhile says so here: the batch is lost with it."""
        try:
            return self._executor.submit(compute, work)
        except BrokenExecutor as error:
            lost: Future[Answer] = Future()
            lost.set_exception(error)
            return lost

    def loss(self, error: BaseException) -> LostProcess | None:
        """One lost process ends the pool."""
        return LostProcess.ALL if isinstance(error, (BrokenExecutor, CancelledError)) else None

    def check(self) -> None:
        """A pool says itself that it is lost."""

    def restart(self) -> None:
        """New processes in the place of those that are left."""
        stop_now(self._executor)
        self._executor = local_processes(self.slots)

    def close(self, now: bool = False) -> None:
        """End the processes."""
        if now:
            stop_now(self._executor)
        else:
            self._executor.shutdown()


def backend_for(workers: int | None, scheduler: Any = None) -> Backend:
    """The backend that was asked for."""
    if scheduler is not None:
        from .cluster import Cluster

        return scheduler if isinstance(scheduler, Cluster) else Cluster(scheduler)
    return Here() if workers == 0 else Processes(-1 if workers is None else workers)
