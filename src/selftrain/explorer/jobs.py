"""Jobs: long computations in processes that can be cancelled (searches, simulations, a visitor's
own data).

A few jobs run at once, some more wait, further ones are rejected with a message. A job that exceeds
its time or memory is ended; what it has reported by then stays on the page.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

RUNNING, WAITING, KEPT = 2, 8, 64
"""Largest numbers of jobs that run at once, that wait, and whose results are stored."""

SECONDS = 300.0
"""Longest time that a job may run."""

MEMORY = 3 * 2**30
"""Bytes that a job may use; the largest simulation that the page accepts needs a third of it."""

TOO_MUCH_MEMORY = (
    "it needs more memory than the {size:.2g} GB a job of this page may use: try fewer rows,"
    " columns, features or steps, or the command line, which has no such limit"
)

_SPAWN = multiprocessing.get_context("spawn")


@dataclass
class VisitorJob:
    """A job and what it has reported so far.

    Attributes:
        kind, data: name of the task (`tasks.TASKS`) and its input.
        status: "waiting", "running", "done", "failed" or "cancelled".
        progress: the last sentence that it reported.
        result: everything else that it reported; the latest value of each name.
    """

    kind: str
    data: dict[str, Any]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    status: str = "waiting"
    progress: str = "waiting for other work to end"
    result: dict[str, Any] = field(default_factory=dict)
    process: BaseProcess | None = None

    @property
    def ended(self) -> bool:
        return self.status in ("done", "failed", "cancelled")

    def shown(self) -> dict[str, Any]:
        """Return what is sent to the page."""
        return {
            "id": self.id,
            "kind": self.kind,
            "status": self.status,
            "progress": self.progress,
            **self.result,
        }


def _work(kind: str, data: dict[str, Any], pipe: Connection, memory: int) -> None:
    """Run a job in its own process: send its messages, then its final status."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from threadpoolctl import threadpool_limits

    from ..errors import SelfTrainError
    from ..runtime.progress import quiet
    from .tasks import TASKS

    _limit_memory(memory)
    ended: dict[str, Any] = {"status": "failed"}
    try:
        with threadpool_limits(1), quiet():
            TASKS[kind](data, pipe.send)
        ended["status"] = "done"
    except SelfTrainError as error:
        ended["progress"] = str(error)
    except MemoryError:
        ended["progress"] = TOO_MUCH_MEMORY.format(size=memory / 2**30)
    except Exception as error:
        ended["progress"] = f"it failed: {type(error).__name__}"
    with contextlib.suppress(OSError):  # the server may have ended
        pipe.send(ended)


def _limit_memory(size: int) -> None:
    """Limit the memory of this process to `size` bytes; allocating more raises MemoryError.

    The limit applies to private writable memory (RLIMIT_DATA), not to reserved addresses. macOS and
    Windows do not enforce it: there, only the limits on the size of a job protect the server.
    """
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (size, hard))


class JobBoard:
    """All jobs of a server."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY):
        self.seconds, self.memory = seconds, memory
        self._jobs: OrderedDict[str, VisitorJob] = OrderedDict()
        self._lock = threading.RLock()

    def start(self, kind: str, data: dict[str, Any]) -> VisitorJob:
        """Start a job, or return a failed one with the reason if too many are waiting."""
        job = VisitorJob(kind, data)
        with self._lock:
            waiting = [other for other in self._jobs.values() if other.status == "waiting"]
            if len(waiting) >= WAITING:
                job.status = "failed"
                job.progress = "too much is running here; try again in a moment"
                return job
            self._jobs[job.id] = job
            self._tidy()
            self._begin_next()
        return job

    def get(self, job_id: str) -> VisitorJob | None:
        """Return a job by its id; None if it is unknown or was deleted."""
        with self._lock:
            return self._jobs.get(job_id)

    def cancel(self, job_id: str) -> None:
        """Kill the process of a job."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is not None and not job.ended:
                job.status, job.progress = "cancelled", "cancelled"
                if job.process is not None:
                    job.process.kill()

    def close(self) -> None:
        """Cancel all jobs."""
        for job_id in list(self._jobs):
            self.cancel(job_id)

    def _begin_next(self) -> None:
        running = sum(job.status == "running" for job in self._jobs.values())
        for job in self._jobs.values():
            if job.status == "waiting" and running < RUNNING:
                job.status, job.progress, running = "running", "starting", running + 1
                threading.Thread(target=self._follow, args=(job,), daemon=True).start()

    def _follow(self, job: VisitorJob) -> None:
        """Run the process of a job and record what it reports."""
        pipe, other = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(
            target=_work, args=(job.kind, job.data, other, self.memory), daemon=True
        )
        with self._lock:
            if job.ended:
                self._begin_next()
                return
            process.start()
            job.process = process
        other.close()
        deadline = time.monotonic() + self.seconds
        try:
            while not job.ended:
                if not pipe.poll(max(0.0, deadline - time.monotonic())):
                    said = f"stopped after {self.seconds:g} s"
                    self._note(job, {"status": "failed", "progress": said})
                    break
                self._note(job, pipe.recv())
        except (EOFError, OSError):
            self._note(job, {"status": "failed", "progress": "its process ended early"})
        process.kill()
        process.join(10)
        pipe.close()
        with self._lock:
            job.data = {}
            self._begin_next()

    def _note(self, job: VisitorJob, message: dict[str, Any]) -> None:
        with self._lock:
            if job.status == "cancelled":
                return
            job.status = message.pop("status", job.status)
            job.progress = message.pop("progress", job.progress)
            job.result.update(message)

    def _tidy(self) -> None:
        """Delete the oldest finished jobs if there are more than `KEPT`."""
        ended = [job.id for job in self._jobs.values() if job.ended]
        for job_id in ended[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[job_id]
