"""Progress reports of long computations. The argument `progress=` means the same everywhere:

- None: show progress after a second, if stderr is a terminal or in a notebook;
- True: show it at once; as plain lines if stderr is neither, so that a log stays readable;
- False: show nothing;
- a function: call it with a `ProgressReport` after every item; an exception in it ends the work.

In nested work (a run inside a search, a search inside a sweep) only the outermost reports. If items
have expected durations, the bar and the remaining time follow these instead of the count.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

from ..errors import InvalidInput

__all__ = ["Progress", "ProgressOption", "ProgressReport", "checked_progress", "clock", "quiet"]

SHOW_AFTER = 1.0
"""Seconds after which progress is shown by default."""

BAR_SECONDS, NOTEBOOK_SECONDS, LINE_SECONDS = 0.1, 0.2, 5.0
"""Shortest times between two updates of a bar, a line in a notebook, and plain lines."""

RELIABLE_SHARE = 0.01
"""Smallest share of the work in the first item for which the remaining time is predicted from that
item alone. A smaller item may have spent most of its time on starting processes.
"""

PROGRESS = {"selftrain": "progress"}
"""Metadata of a progress line in a notebook, so that tools can remove it."""

_reporting: ContextVar[bool] = ContextVar("reporting", default=False)
"""Whether enclosing work already decides about progress: nested work then shows none."""


@dataclass(frozen=True)
class ProgressReport:
    """The state of some work; `str` gives it as a sentence.

    Attributes:
        noun: what the items are called.
        done: finished items, failed ones included.
        failed: items that failed.
        total: number of items; None if unknown.
        seconds: time since the work began.
        left: predicted remaining time in seconds; None if unknown.
        share: completed share of the work, from 0 to 1; None if unknown.
        best: smallest error found so far, for a search.

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
    """Format a duration as hours, minutes and seconds.

    >>> clock(24.2), clock(3725.0)
    ('0:24', '1:02:05')
    """
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def quiet() -> Iterator[None]:
    """Show no progress inside this block unless `progress` is given; for workers and servers."""
    token = _reporting.set(True)
    try:
        yield
    finally:
        _reporting.reset(token)


class Progress:
    """A context that counts finished items and shows progress.

    Arguments:
        total: number of items; None if unknown.
        noun: what they are called.
        show: the argument `progress=` of the caller.
        expected: expected duration of all items together, in any unit; by default all items take
            the same time.
        often: whether items are so short that the display may start with the first finished one.
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
        self._completed = 0.0  # expected duration of the finished items
        self._best: float | None = None
        self._first: tuple[float, float] | None = None
        self._display: _Lines | None = None
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
            self._timer = threading.Timer(SHOW_AFTER, self._begin)
            self._timer.daemon = True
            self._timer.start()
        return self

    def advance(
        self, count: int = 1, *, failed: int = 0, expected: float = 0.0, best: float | None = None
    ) -> None:
        """Count finished items.

        Arguments:
            count: number of items.
            failed: how many of them failed.
            expected: their expected duration.
            best: smallest error of a search so far.
        """
        self._done += count
        self._failed += failed
        self._completed += count if self._equal else expected
        self._best = best
        if self._first is None:
            self._first = (time.monotonic(), self._completed)
        if self._show is False:
            return
        if callable(self._show):
            self._show(self.report())
            return
        now = time.monotonic()
        if self._display is None:
            if now - self._begun < SHOW_AFTER:
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
        """Set the number of finished items."""
        self.advance(done - self._done)

    def extend(self, count: int, expected: float) -> None:
        """Add items to the total, with their expected duration."""
        if self._total is not None:
            self._total += count
        self._expected += expected

    def report(self) -> ProgressReport:
        """Return the current state."""
        now = time.monotonic()
        share = min(1.0, self._completed / self._expected) if self._expected > 0 else None
        left = None if share is None or self._done == self._total else self._left(now, share)
        return ProgressReport(
            self._noun, self._done, self._failed, self._total, now - self._begun, left, share,
            self._best,
        )  # fmt: skip

    def _left(self, now: float, share: float) -> float | None:
        """Predict the remaining seconds, from the speed since the first item if possible."""
        if self._first is None:
            return None
        since, before = self._first
        if self._completed > before and now > since:
            left = max(0.0, self._expected - self._completed)
            return (now - since) * left / (self._completed - before)
        return (now - self._begun) * (1 - share) / share if share >= RELIABLE_SHARE else None

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        _reporting.reset(self._token)
        with self._lock:
            self._show = False
            if self._display is not None:
                self._display.end()

    def _begin(self) -> None:
        """Start the display; called by a timer or by `advance`."""
        with self._lock:
            if self._display is None and self._show is not False:
                kind = _Notebook if _in_notebook() else _Bar if sys.stderr.isatty() else _Lines
                self._display = kind(self.report())


def watched() -> bool:
    """Return whether stderr is a terminal, or this process a notebook kernel."""
    return (sys.stderr is not None and sys.stderr.isatty()) or _in_notebook()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


class _Lines:
    """Plain lines on stderr, from the first update on; base class of the other displays."""

    every = LINE_SECONDS

    def __init__(self, report: ProgressReport): ...

    def update(self, report: ProgressReport) -> None:
        print(report, file=sys.stderr)

    def end(self) -> None:
        """Finish the display; what was written stays."""


class _Bar(_Lines):
    """A bar on a terminal that disappears when the work is done; without a total it pulses."""

    every = BAR_SECONDS

    def __init__(self, report: ProgressReport):
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=None)
        self.update(report)

    def update(self, report: ProgressReport) -> None:
        total = None if report.share is None else 1.0
        done = report.share or 0.0
        self._bar.update(self._task, total=total, completed=done, description=str(report))

    def end(self) -> None:
        self._bar.stop()


class _Notebook(_Lines):
    """A line below the cell, replaced at every update."""

    every = NOTEBOOK_SECONDS

    def __init__(self, report: ProgressReport):
        from IPython.display import display

        line = {"text/plain": str(report)}
        self._place: Any = display(line, raw=True, display_id=True, metadata=PROGRESS)

    def update(self, report: ProgressReport) -> None:
        self._place.update({"text/plain": str(report)}, raw=True, metadata=PROGRESS)
