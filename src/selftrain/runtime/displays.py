"""Where progress is shown: a bar on a terminal, a line in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .progress import ProgressReport

EVERY, EVERY_LINE = 0.1, 5.0
"""Seconds between two updates of a bar, and between two plain lines."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    running = shell.get_ipython()
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


def watched() -> bool:
    """Whether somebody looks at what is written: a terminal or a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or in_notebook()


class Display(Protocol):
    """A place that shows reports, at most one in `every` seconds."""

    every: float

    def begin(self, report: ProgressReport) -> None:
        """Show the first report."""
        ...

    def update(self, report: ProgressReport) -> None:
        """Show a later one in its place."""
        ...

    def end(self) -> None:
        """The work is done, or has ended."""
        ...


def display() -> Display:
    """What suits this process."""
    if in_notebook():
        return Notebook()
    return Bar() if sys.stderr.isatty() else Lines()


class Lines:
    """Plain lines on stderr."""

    every = EVERY_LINE

    def begin(self, report: ProgressReport) -> None:
        """A line is written when there is something to tell."""

    def update(self, report: ProgressReport) -> None:
        """One line."""
        print(report, file=sys.stderr)

    def end(self) -> None:
        """What was written stays."""


class Bar:
    """A bar on a terminal, gone when the work is done."""

    every = EVERY

    def begin(self, report: ProgressReport) -> None:
        """An empty bar; one that moves to and fro where the share is not known."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=None)
        self.update(report)

    def update(self, report: ProgressReport) -> None:
        """The bar moves, and so does the sentence beside it."""
        known = report.share is not None
        self._bar.update(
            self._task,
            total=1.0 if known else None,
            completed=report.share or 0.0,
            description=str(report),
        )

    def end(self) -> None:
        """The line is empty again."""
        self._bar.stop()


PROGRESS = {"selftrain": "progress"}
"""Metadata of a line of progress in a notebook: others can leave it out."""


class Notebook:
    """One line below the cell, written anew in its place."""

    every = 2 * EVERY

    def begin(self, report: ProgressReport) -> None:
        """The line."""
        from IPython.display import display as show

        self._place: Any = show(Text(str(report)), display_id=True, metadata=PROGRESS)

    def update(self, report: ProgressReport) -> None:
        """The same line with other words."""
        self._place.update(Text(str(report)), metadata=PROGRESS)

    def end(self) -> None:
        """The last line stays."""


class Text:
    """A line as a notebook shows it: without quotes."""

    def __init__(self, line: str):
        self._line = line

    def __repr__(self) -> str:
        return self._line
