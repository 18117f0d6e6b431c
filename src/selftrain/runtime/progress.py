"""Progress of long work: done, failed, per second, time left. What `progress=` means everywhere:

- None: shown once the work has taken a second, in a terminal or a notebook;
- True: shown at once, as plain lines elsewhere, so that a log stays readable;
- False: never;
- a function: called with a `ProgressReport` after every piece of work; what it raises ends the
  work.

Work inside other work (a run inside a search, a search inside a sweep) leaves reporting to the
outermost. Pieces that differ in length say how long they are expected to take: the bar and the
time left then go by that, not by the count.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ..errors import InvalidInput
from .displays import Display, display, watched

__all__ = ["Progress", "ProgressOption", "ProgressReport", "checked_progress", "clock", "quiet"]

PATIENCE = 1.0
"""Seconds after which work has taken long."""

ENOUGH = 0.01
"""The share of the work that tells the time left by itself. A smaller first piece may have been
mostly the start of processes: then the time since that piece tells.
"""

_reporting: ContextVar[bool] = ContextVar("reporting", default=False)
"""Whether work around this one reports, or was asked not to."""


@dataclass(frozen=True)
class ProgressReport:
    """The state of some work; as text, the sentence about it.

    Attributes:
        noun: what the pieces are called.
        done, failed: pieces that are finished, and how many of them without a result.
        total: pieces in all; None where that is not known.
        seconds: since the work began.
        left: seconds that are left, if the rest goes on like this; None where that is not known.
        share: of the work that is done, from 0 to 1; None where that is not known.
        best: the smallest error found so far, of a search.

    >>> print(ProgressReport("seeds", done=4, failed=1, total=16, seconds=8.0, left=24.0))
    seeds 4/16, 1 failed, 0.5 per second, 0:24 left
    """

    noun: str
    done: int
    failed: int = 0
    total: int | None = None
    seconds: float = 0.0
    left: float | None = None
    share: float | None = None
    best: float | None = None

    def __str__(self) -> str:
        parts = [f"{self.noun} {self.done}" + ("" if self.total is None else f"/{self.total}")]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.best is not None:
            parts.append(f"best error {self.best:.6g}")
        if self.done and self.seconds > 0:
            rate = self.done / self.seconds
            parts.append(f"{rate:.3g} per second" if rate >= 0.1 else f"{1 / rate:.3g} s each")
        if self.left is not None:
            parts.append(f"{clock(self.left)} left")
        return ", ".join(parts)


ProgressOption = bool | Callable[[ProgressReport], object] | None


def checked_progress(value: Any) -> ProgressOption:
    """Validate `progress`.

    >>> checked_progress(print) is print
    True
    """
    if value is None or callable(value) or isinstance(value, bool):
        option: ProgressOption = value
        return option
    raise InvalidInput("progress", value, "must be None, True, False or a function of a report")


def clock(seconds: float) -> str:
    """Return a time in hours, minutes and seconds.

    >>> clock(24.2), clock(3725.0)
    ('0:24', '1:02:05')
    """
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def quiet() -> Iterator[None]:
    """Report nothing inside this block, unless asked: for workers and servers."""
    token = _reporting.set(True)
    try:
        yield
    finally:
        _reporting.reset(token)


class Progress:
    """A context in which work reports what is done.

    Arguments:
        total: pieces of work; None if that is not known.
        noun: what they are called.
        show: the `progress=` of the verb.
        expected: how long all pieces together are expected to take, in any unit; default: all
            take the same.
        often: pieces are short, so that nothing has to be shown before one is finished.
    """

    def __init__(
        self,
        total: int | None,
        noun: str = "points",
        show: ProgressOption = None,
        expected: float | None = None,
        often: bool = False,
    ):
        self._noun, self._total, self._show, self._often = noun, total, show, often
        self._equal = expected is None
        self._expected = float(total or 0) if expected is None else expected
        self._done = self._failed = 0
        self._behind = 0.0
        self._best: float | None = None
        self._first: tuple[float, float] | None = None
        self._display: Display | None = None
        self._last = 0.0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        if self._show is None and _reporting.get():
            self._show = False
        self._token = _reporting.set(True)
        if self._show is True:
            self._begin()
        elif self._show is None and not self._often and watched():
            self._timer = threading.Timer(PATIENCE, self._begin)
            self._timer.daemon = True
            self._timer.start()
        return self

    def advance(
        self, count: int = 1, *, failed: int = 0, expected: float = 0.0, best: float | None = None
    ) -> None:
        """Count finished pieces, `failed` of them without a result; they were `expected` to take
        so long; `best` is the best error of a search so far.
        """
        self._done += count
        self._failed += failed
        self._behind += count if self._equal else expected
        self._best = best
        if self._first is None:
            self._first = (time.monotonic(), self._behind)
        if self._show is False:
            return
        if callable(self._show):
            self._show(self.report())
            return
        now = time.monotonic()
        if self._display is None:
            if now - self._begun < PATIENCE:
                return
            if not watched():
                self._show = False
                return
            self._begin()
        assert self._display is not None
        if now - self._last >= self._display.every or self._done == self._total:
            self._last = now
            self._display.update(self.report())

    def reach(self, done: int) -> None:
        """Set the number of finished pieces."""
        self.advance(done - self._done)

    def extend(self, count: int, expected: float) -> None:
        """Add pieces to the total, which are `expected` to take so long."""
        if self._total is not None:
            self._total += count
        self._expected += expected

    def report(self) -> ProgressReport:
        """Return the present state."""
        now = time.monotonic()
        share = min(1.0, self._behind / self._expected) if self._expected > 0 else None
        left = None if share is None or self._done == self._total else self._left(now, share)
        return ProgressReport(
            self._noun, self._done, self._failed, self._total, now - self._begun, left, share,
            self._best,
        )  # fmt: skip

    def _left(self, now: float, share: float) -> float | None:
        """Return the seconds left, from what was done since the first piece if possible."""
        if self._first is None:
            return None
        since, before = self._first
        if self._behind > before and now > since:
            return (now - since) * max(0.0, self._expected - self._behind) / (self._behind - before)
        return (now - self._begun) * (1 - share) / share if share >= ENOUGH else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        _reporting.reset(self._token)
        with self._lock:
            self._show = False
            if self._display is not None:
                self._display.end()

    def _begin(self) -> None:
        """Start the display; called by a timer, or by `advance`."""
        with self._lock:
            if self._display is None and self._show is not False:
                shown = display()
                shown.begin(self.report())
                self._display = shown
