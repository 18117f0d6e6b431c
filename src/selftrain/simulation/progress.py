"""A progress bar with the time left, on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """Counts finished seeds on stderr; silent in a pipe unless asked."""

    def __init__(self, total: int, show: bool | None):
        self._total = total
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        if self._show:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            columns = (
                TextColumn("seeds"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(
                *columns, console=Console(stderr=True, force_terminal=True), transient=True
            )
            self._bar.start()
            self._task = self._bar.add_task("seeds", total=self._total)
        return self

    def advance(self) -> None:
        if self._bar is not None:
            self._bar.advance(self._task)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
