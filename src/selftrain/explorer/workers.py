"""Worker processes that answer requests within a time limit, so that no request blocks the page.

A few processes wait with compiled kernels. A request takes a free one; if the answer takes too
long, the process is killed and replaced. A waiting request is dropped when the same page sends a
newer one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

STARTING = 300.0
"""Seconds that a request waits for the first process to be ready, which may compile kernels."""

PAGES = 256
"""Number of pages whose newest request is stored; the oldest is deleted first."""

_SPAWN = multiprocessing.get_context("spawn")


class Superseded(Exception):
    """The error of a request that a newer one of the same page has replaced."""


class TooLong(Exception):
    """The error of an answer that took longer than allowed."""


class Busy(Exception):
    """The error of a request for which no process became free in time."""


def _serve(pipe: Connection) -> None:
    """Answer requests, in a process of its own, until the pipe closes."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from threadpoolctl import threadpool_limits

    from .answers import answer, table
    from .page_state import PageState

    kinds = {"answer": answer, "table": table}
    with threadpool_limits(1):
        for shape in ("", "1:0.5, 0.3:2"):  # general covariances have kernels of their own
            answer({"texts": PageState().texts | {"shape": shape}})
        with contextlib.suppress(EOFError, OSError):  # the server has ended
            pipe.send("ready")
            while True:
                kind, data = pipe.recv()
                try:
                    answered = (True, kinds[kind](data))
                except Exception as error:
                    answered = (False, f"{type(error).__name__}: {error}")
                pipe.send(answered)


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self.pipe, other = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.ready = False

    def wait_ready(self, seconds: float) -> None:
        if not self.ready and self.pipe.poll(seconds):
            self.pipe.recv()
            self.ready = True

    def ask(self, kind: str, data: Any, seconds: float) -> tuple[bool, Any]:
        self.pipe.send((kind, data))
        if not self.pipe.poll(seconds):
            raise TooLong
        answered: tuple[bool, Any] = self.pipe.recv()
        return answered

    def end(self) -> None:
        self.process.kill()
        self.process.join(5)
        self.pipe.close()


class Workers:
    """A pool of processes that answer requests.

    Arguments:
        count: number of processes.
        seconds: longest time for an answer.
        patience: longest time, in seconds, that a request waits for a free process, once any
            process has been ready.
    """

    def __init__(self, count: int = 2, seconds: float = 10.0, patience: float = 20.0):
        self.count, self.seconds, self.patience = count, seconds, patience
        self._changed = threading.Condition()
        self._free: list[_Worker] = []
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._closed = False
        self._begun, self._warm = time.monotonic(), False
        for _ in range(count):
            self._add()

    def ask(self, kind: str, data: Any, page: str = "", number: int = 0) -> Any:
        """Return the answer to a request.

        Arguments:
            kind: "answer" or "table" (see `answers`).
            page, number: id of the page, and the number of its request.

        Raises:
            Superseded, TooLong, Busy: there is no answer.
            RuntimeError: an unexpected error in the worker.
        """
        self._note(page, number)
        with self._taken(page, number) as worker:
            good, value = worker.ask(kind, data, self.seconds)
        if not good:
            raise RuntimeError(value)
        return value

    def close(self) -> None:
        """End all processes."""
        with self._changed:
            self._closed = True
            while self._free:
                self._free.pop().end()

    def _note(self, page: str, number: int) -> None:
        with self._changed:
            if page:
                self._newest[page] = max(number, self._newest.get(page, 0))
                self._newest.move_to_end(page)
                while len(self._newest) > PAGES:
                    self._newest.popitem(last=False)
            self._changed.notify_all()

    @contextlib.contextmanager
    def _taken(self, page: str, number: int) -> Iterator[_Worker]:
        """Yield a free process; afterwards it is free again, or replaced if it failed."""
        deadline = time.monotonic() + self.patience
        with self._changed:
            while not self._free:
                self._check(page, number)
                until = deadline if self._warm else max(deadline, self._begun + STARTING)
                left = until - time.monotonic()
                if left <= 0 or self._closed:
                    raise Busy
                self._changed.wait(left)
            self._check(page, number)
            worker = self._free.pop()
        try:
            yield worker
        except BaseException:
            worker.end()
            threading.Thread(target=self._add, daemon=True).start()
            raise
        with self._changed:
            if self._closed:
                worker.end()
            else:
                self._free.append(worker)
            self._changed.notify_all()

    def _check(self, page: str, number: int) -> None:
        if page and number < self._newest.get(page, 0):
            raise Superseded

    def _add(self) -> None:
        """Start a process in the background; it is free once its kernels are compiled."""

        def start() -> None:
            worker = _Worker()
            worker.wait_ready(STARTING)
            with self._changed:
                if self._closed or not worker.ready:
                    worker.end()
                    return
                self._free.append(worker)
                self._warm = True
                self._changed.notify_all()

        threading.Thread(target=start, daemon=True).start()
