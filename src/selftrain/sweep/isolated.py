"""Points in a process of their own, which can be stopped and whose end says which point ended it.

Three kinds of work are done here: points with a limit of time, since a blocking or compiled call
can only be stopped together with its process; points of batches that lost their process, since only
a point that ends a process in which nothing else ran is to blame; and all points on a cluster,
whose workers have other work, too. Whoever computes (this process, a process of a pool, a worker of
a cluster) starts the process, sends it one point after the other, and ends it if a point takes too
long.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any

import cloudpickle

from ..arrays import Array
from ..runtime.parallel import ONE_THREAD, follow_parent
from ..runtime.progress import quiet
from .grid import Point
from .work import Limits, Loaded, Refusal, Result, Work, too_long

TRIES = 3
"""A point that ended its own process this often, one after the other, has failed: kills from
outside hit now and then, not again and again.
"""

IDLE = 20.0
"""Seconds without work after which the process ends by itself."""

LAST = 10.0
"""Seconds beyond the limit after which the system ends a process that nobody watches any more."""

ENDED = "its process was ended from outside, perhaps for want of memory"

NO_PROCESS = Refusal("a process for single points could not be started: it ended while it loaded")


class Isolated:
    """One process, and the work it has loaded."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._connection, there = Pipe()
        with there:
            begin = f"from {__name__} import serve; serve({there.fileno()}, {os.getpid()})"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", begin],
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                start_new_session=True,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)},
            )

    @property
    def is_mine(self) -> bool:
        """Whether this process started it, and not one that this one was forked from."""
        return self._owner == os.getpid()

    def ask(self, question: Any, seconds: float | None = None) -> Any:
        """The answer to a question; `TimeoutError` if there is none in time, `EOFError` if the
        process has ended.
        """
        try:
            self._connection.send_bytes(cloudpickle.dumps(question))
            if not self._connection.poll(seconds):
                raise TimeoutError
            return cloudpickle.loads(self._connection.recv_bytes())
        except (BrokenPipeError, ConnectionResetError):
            raise EOFError from None

    def end(self) -> None:
        """End it now, and all that it has started."""
        if not self.is_mine:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._connection.close()


_idle: list[Isolated] = []
_lock = threading.Lock()


class OneByOne:
    """The points of a batch, each alone in its process."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._process: Isolated | None = None

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leave the process to the next batch, unless it may still compute."""
        if self._process is not None and kind is None:
            with _lock:
                _idle.append(self._process)
        elif self._process is not None:
            self._process.end()

    def __call__(self, point: Point, near: Sequence[Array]) -> Result | Refusal:
        """The result of one point."""
        seconds = self._work.limits.seconds
        for _ in range(TRIES):
            try:
                process = self._loaded()
                if isinstance(process, Refusal):
                    return process
                answer: Result | Refusal = process.ask((point, near), seconds)
                return answer
            except TimeoutError:
                self._end()
                return Result(None, float(seconds or 0), too_long(seconds))
            except EOFError:
                self._end()
        return Result(None, 0.0, ENDED)

    def _loaded(self) -> Isolated | Refusal:
        """A process that has loaded the work."""
        if self._process is not None:
            return self._process
        for _ in range(TRIES):
            self._process = _take()
            try:
                refusal: Refusal | None = self._process.ask(self._work)
            except EOFError:  # it was idle for too long, or was killed
                self._end()
                continue
            return self._process if refusal is None else refusal
        return NO_PROCESS

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
        self._process = None


def _take() -> Isolated:
    with _lock:
        while _idle:
            process = _idle.pop()
            if process.is_mine:
                return process
    return Isolated()


def end_idle() -> None:
    """End the processes of this one that wait for work."""
    with _lock:
        while _idle:
            _idle.pop().end()


def serve(file: int, parent: int) -> None:
    """Answer questions until nobody asks: first a `Work`, then its points."""
    follow_parent(parent)
    if sys.platform.startswith("linux"):  # even in the middle of a call that never returns
        die_with_parent = 1
        ctypes.CDLL(None).prctl(die_with_parent, signal.SIGKILL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    loaded: Loaded | Refusal | None = None
    limits = Limits()
    with Connection(file) as connection, quiet(), suppress(EOFError, OSError):
        while connection.poll(IDLE):
            question = cloudpickle.loads(connection.recv_bytes())
            if isinstance(question, Work):
                loaded, limits = question.load(), question.limits
                answer: Any = loaded if isinstance(loaded, Refusal) else None
            else:
                assert isinstance(loaded, Loaded)
                if limits.seconds is not None:
                    signal.setitimer(signal.ITIMER_REAL, limits.seconds + LAST)
                answer = loaded.one(*question)
                signal.setitimer(signal.ITIMER_REAL, 0)
            connection.send_bytes(_packed(answer))


def _packed(answer: Any) -> bytes:
    try:
        content: bytes = cloudpickle.dumps(answer)
    except Exception as error:  # a value that looks like numbers and cannot travel
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        content = cloudpickle.dumps(Result(None, 0.0, reason))
    return content
