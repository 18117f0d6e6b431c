"""How far long work is: done, failed, per second, time left. On a terminal and in a notebook.

Silent elsewhere unless asked; asked, it writes a plain line now and then, so that a log stays
readable. Work whose pieces differ in length says how long it expects each to take: the bar and the
time left then go by that, not by the count.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

EVERY, EVERY_LINE = 0.1, 5.0
"""Seconds between two updates of a bar, and between two plain lines."""


@dataclass
class Count:
    """The state of some work, and the sentence about it.

    >>> count = Count("seeds", total=16, expected=16.0, begun=0.0)
    >>> count.done, count.failed, count.behind = 4, 1, 4.0
    >>> count.sentence(now=8.0)
    'seeds 4/16, 1 failed, 0.5 per second, 0:24 left'
    """

    noun: str
    total: int
    expected: float
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    failed: int = 0
    behind: float = 0.0

    def sentence(self, now: float | None = None) -> str:
        """Done of all, failed if any, rate, time left."""
        seconds = (time.monotonic() if now is None else now) - self.begun
        parts = [f"{self.noun} {self.done}/{self.total}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.done and seconds > 0:
            rate = self.done / seconds
            parts.append(f"{rate:.3g} per second" if rate >= 0.1 else f"{1 / rate:.3g} s each")
            if self.done < self.total and self.behind > 0:
                left = seconds * (self.expected - self.behind) / self.behind
                parts.append(f"{clock(left)} left")
        return ", ".join(parts)


def clock(seconds: float) -> str:
    """A time as people write it.

    >>> clock(24.2), clock(3725.0)
    ('0:24', '1:02:05')
    """
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    running = shell.get_ipython()
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


def watched() -> bool:
    """Whether somebody looks at what is written: a terminal or a notebook."""
    return sys.stderr.isatty() or in_notebook()


class Progress:
    """A context in which work reports what is done.

    Arguments:
        total: pieces of work.
        noun: what they are called.
        show: True or False; None: on a terminal and in a notebook only.
        expected: how long all pieces together are expected to take, in any unit; default: all
            take the same.
    """

    def __init__(
        self,
        total: int,
        noun: str = "points",
        show: bool | None = None,
        expected: float | None = None,
    ):
        self._count = Count(noun, total, float(total) if expected is None else expected)
        self._equal = expected is None
        self._show = (watched() if show is None else show) and total > 0
        self._display: _Display = _Silent()
        self._last = 0.0

    def __enter__(self) -> Self:
        if self._show:
            self._display = _display()
        self._display.begin(self._count)
        return self

    def advance(self, count: int = 1, *, failed: int = 0, expected: float = 0.0) -> None:
        """So many pieces are finished, `failed` of them without a result; they were `expected` to
        take so long.
        """
        self._count.done += count
        self._count.failed += failed
        self._count.behind += count if self._equal else expected
        now = time.monotonic()
        if now - self._last >= self._display.every or self._count.done == self._count.total:
            self._last = now
            self._display.update(self._count)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._display.end()


class _Display(Protocol):
    every: float

    def begin(self, count: Count) -> None: ...

    def update(self, count: Count) -> None: ...

    def end(self) -> None: ...


def _display() -> _Display:
    if in_notebook():
        return _Notebook()
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Silent:
    every = float("inf")

    def begin(self, count: Count) -> None: ...

    def update(self, count: Count) -> None: ...

    def end(self) -> None: ...


class _Lines:
    """Plain lines on stderr."""

    every = EVERY_LINE

    def begin(self, count: Count) -> None: ...

    def update(self, count: Count) -> None:
        print(count.sentence(), file=sys.stderr)

    def end(self) -> None: ...


class _Bar:
    """A bar on a terminal, gone when the work is done."""

    every = EVERY

    def begin(self, count: Count) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (BarColumn(), TextColumn("{task.description}"))
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(count.sentence(), total=count.expected)

    def update(self, count: Count) -> None:
        self._bar.update(self._task, completed=count.behind, description=count.sentence())

    def end(self) -> None:
        self._bar.stop()


class _Notebook:
    """One line below the cell, written anew in its place."""

    every = 2 * EVERY

    def begin(self, count: Count) -> None:
        from IPython.display import display

        self._place: Any = display(_Text(count.sentence()), display_id=True)

    def update(self, count: Count) -> None:
        self._place.update(_Text(count.sentence()))

    def end(self) -> None: ...


class _Text:
    """A line as a notebook shows it: without quotes."""

    def __init__(self, line: str):
        self._line = line

    def __repr__(self) -> str:
        return self._line
