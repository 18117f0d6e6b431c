"""How far the work is and how long it will take, on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """A bar on stderr, by the seconds the work was expected to take; silent in a pipe unless asked."""

    def __init__(self, points: int, seconds: float, show: bool | None, noun: str = "points"):
        self._points, self._seconds, self._noun = points, seconds, noun
        self._done = 0
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        if self._show and self._points:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TimeRemainingColumn(),
                TextColumn("left"),
            )
            self._bar = Progress(
                *columns, console=Console(stderr=True, force_terminal=True), transient=True
            )
            self._bar.start()
            self._task = self._bar.add_task(self._noun, total=self._seconds, count=self._count())
        return self

    def advance(self, points: int, seconds: float) -> None:
        """Some points are done that were expected to take so long."""
        self._done += points
        if self._bar is not None:
            self._bar.update(self._task, advance=seconds, count=self._count())

    def _count(self) -> str:
        return f"{self._done}/{self._points}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
