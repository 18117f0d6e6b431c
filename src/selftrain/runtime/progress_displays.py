"""Displays of progress: a bar on a terminal, a line in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .progress import ProgressReport

BAR_SECONDS, LINE_SECONDS = 0.1, 5.0
"""Shortest time between two updates of a bar, and between two plain lines."""


def in_notebook() -> bool:
    """Return whether this process is a notebook kernel."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def watched() -> bool:
    """Return whether stderr is a terminal, or this process a notebook kernel."""
    return (sys.stderr is not None and sys.stderr.isatty()) or in_notebook()


def display() -> Lines:
    """Return the display for this process."""
    if in_notebook():
        return Notebook()
    return Bar() if sys.stderr.isatty() else Lines()


class Lines:
    """Plain lines on stderr; base class of the other displays.

    Attributes:
        every: shortest time between two updates, in seconds.
    """

    every = LINE_SECONDS

    def begin(self, report: ProgressReport) -> None:
        """Start the display; plain lines begin with the first update."""

    def update(self, report: ProgressReport) -> None:
        """Show a report."""
        print(report, file=sys.stderr)

    def end(self) -> None:
        """Finish the display; what was written stays."""


class Bar(Lines):
    """A bar on a terminal that disappears when the work is done."""

    every = BAR_SECONDS

    def begin(self, report: ProgressReport) -> None:
        """Show a bar; it pulses while the total is unknown."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=None)
        self.update(report)

    def update(self, report: ProgressReport) -> None:
        """Move the bar and update its text."""
        total = None if report.share is None else 1.0
        done = report.share or 0.0
        self._bar.update(self._task, total=total, completed=done, description=str(report))

    def end(self) -> None:
        """Remove the bar."""
        self._bar.stop()


PROGRESS = {"selftrain": "progress"}
"""Metadata of a progress line in a notebook, so that tools can remove it."""


class Notebook(Lines):
    """A line below the cell, replaced at every update."""

    every = 2 * BAR_SECONDS

    def begin(self, report: ProgressReport) -> None:
        """Show the line."""
        from IPython.display import display as show

        line = {"text/plain": str(report)}
        self._place: Any = show(line, raw=True, display_id=True, metadata=PROGRESS)

    def update(self, report: ProgressReport) -> None:
        """Replace the line."""
        self._place.update({"text/plain": str(report)}, raw=True, metadata=PROGRESS)
