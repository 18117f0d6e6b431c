"""Processes that compute for this one, one piece of work after the other, and can be ended at once.

A child is a Python process of its own, not one of `multiprocessing`: it runs no part of the user's
script, it may be started by any process (workers of Dask may start no other kind), and its end
concerns nobody but the one who waits for it. Messages are pickles through its standard input and
output; what the work prints goes to the error output. A child ends when its parent does.
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

IDLE = 20.0
"""Seconds without work after which a child ends by itself."""

TOGETHER = 0.05
"""Seconds for which answers are collected, unless each is sent at once: a message wakes up the
parent, which costs more than a cheap answer is worth.
"""

Serve = Callable[[Any], Iterator[Any]]
"""The work of a child: a function of a question that loads what is needed and returns answers."""

BEGUN, FINISHED = "begun", "finished"
"""Messages around the answers to a question."""


class Child:
    """A process that answers questions by a function `serve` of an importable module."""

    def __init__(self, serve: Serve) -> None:
        self.owner = os.getpid()
        begin = f"from {__name__} import run; from {serve.__module__} import {serve.__name__} as f"
        group: dict[str, Any] = {"start_new_session": True}  # ctrl-C is for the parent alone
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

    def answers(self, question: Any, at_once: bool, seconds: float | None = None) -> Iterator[Any]:
        """Yield the answers to a question, as they come.

        Arguments:
            at_once: each answer is sent when it is known.
            seconds: the time for each answer, from the moment when everything is loaded.

        Raises:
            TimeoutError: an answer took longer, and the process was ended.
            EOFError: the process has ended; `has_begun` says whether it had loaded everything.
        """
        late = threading.Event()
        self.has_begun = False
        try:
            assert self._process.stdin is not None
            pickle.dump((question, at_once), self._process.stdin)
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

        def end_late() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(seconds, end_late)
        timer.start()
        try:
            return pickle.load(self._process.stdout)
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the process now, and all that it has started; who waits for it gets an `EOFError`."""
        with suppress(OSError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """End the process, unless it belongs to another one that this one was forked from."""
        if self.owner == os.getpid():
            self.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]


def run(serve: Serve) -> None:
    """Answer questions until nobody asks: what a child does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # even in the middle of a call that never returns
        die_with_parent = 1
        ctypes.CDLL(None).prctl(die_with_parent, signal.SIGKILL)
    asked, answered = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    questions: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(asked, questions), daemon=True).start()
    with suppress(queue.Empty):
        while True:
            question, at_once = questions.get(timeout=IDLE)
            answers = serve(question)
            pickle.dump(BEGUN, answered)
            answered.flush()
            last = time.monotonic()
            for answer in answers:
                pickle.dump(answer, answered)
                if at_once or time.monotonic() - last > TOGETHER:
                    answered.flush()
                    last = time.monotonic()
            pickle.dump(FINISHED, answered)
            answered.flush()


def _listen(asked: Any, questions: queue.Queue[Any]) -> None:
    """Take questions; end the process when the parent is gone, whatever it computes."""
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            questions.put(pickle.load(asked))
    os._exit(1)
