"""A child process that answers requests one after the other and can be killed at any time.

It is a plain subprocess, not one of `multiprocessing`: it does not run the user's script again, any
process may start it (even the daemonic workers of Dask), and its death affects only the thread that
waits for it. Messages are pickles through its standard input and output; anything that is printed
in the child goes to standard error. A child dies with its parent.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from .parallel import ONE_THREAD

IDLE_SECONDS = 20.0
"""Time without requests after which a child exits."""

FLUSH_SECONDS = 0.05
"""Time for which answers are buffered, unless `at_once` is set: waking up the parent for every
cheap answer would take longer than computing the answer.
"""

Serve = Callable[[Any], Iterator[Any]]
"""The function that a child runs: loads what a request needs, then returns the answers."""

BEGUN, FINISHED = "begun", "finished"
"""Messages before and after the answers to a request."""


class ChildProcess:
    """A process that answers requests.

    Arguments:
        serve: the function that answers; it must be importable.

    Attributes:
        has_begun: whether the child has loaded what the present request needs.
    """

    def __init__(self, serve: Serve) -> None:
        begin = f"from {__name__} import run; from {serve.__module__} import {serve.__name__} as f"
        group: dict[str, Any] = {"start_new_session": True}  # only the parent gets ctrl-C
        if sys.platform == "win32":
            group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"{begin}; run(f)"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)},
            **group,
        )
        self.has_begun = False

    def answers(self, request: Any, at_once: bool, seconds: float | None = None) -> Iterator[Any]:
        """Yield the answers to a request as they arrive.

        Arguments:
            at_once: send each answer without buffering.
            seconds: time limit for each answer, without the time for loading.

        Raises:
            TimeoutError: an answer took longer, and the process was killed.
            EOFError: the process has died; `has_begun` says whether before or after loading.
        """
        late = threading.Event()
        self.has_begun = False
        try:
            assert self._process.stdin is not None
            pickle.dump((request, at_once), self._process.stdin)
            self._process.stdin.flush()
            self._next(None, late)
            self.has_begun = True
            while (answer := self._next(seconds, late)) != FINISHED:
                yield answer
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self.end()
            raise (TimeoutError if late.is_set() else EOFError) from None

    def _next(self, seconds: float | None, late: threading.Event) -> Any:
        assert self._process.stdout is not None
        if seconds is None:
            return pickle.load(self._process.stdout)

        def kill_late() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(seconds, kill_late)
        timer.start()
        try:
            return pickle.load(self._process.stdout)
        finally:
            timer.cancel()

    def kill(self) -> None:
        """Kill the process and everything it has started; a waiting thread gets an `EOFError`."""
        with suppress(OSError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process and release its resources."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def run(serve: Serve) -> None:
    """Answer requests until none has come for `IDLE_SECONDS`: the main function of a child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # also ends a compiled call that never returns to Python
        die_with_parent = 1
        ctypes.CDLL(None).prctl(die_with_parent, signal.SIGKILL)
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    requests: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(incoming, requests), daemon=True).start()
    with suppress(queue.Empty):
        while True:
            request, at_once = requests.get(timeout=IDLE_SECONDS)
            answers = serve(request)
            pickle.dump(BEGUN, outgoing)
            outgoing.flush()
            last = time.monotonic()
            for answer in answers:
                pickle.dump(answer, outgoing)
                if at_once or time.monotonic() - last > FLUSH_SECONDS:
                    outgoing.flush()
                    last = time.monotonic()
            pickle.dump(FINISHED, outgoing)
            outgoing.flush()


def _listen(incoming: Any, requests: queue.Queue[Any]) -> None:
    """Receive requests; exit as soon as the parent is gone, even during a computation."""
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            requests.put(pickle.load(incoming))
    os._exit(1)
