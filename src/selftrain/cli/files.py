"""The files a verb writes besides its output: a figure (`--plot`) and the result (`--save`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .output import PICTURES, STORED, check_output, remark, save_figure, writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AsJson = Annotated[bool, typer.Option("--json", metavar="", help="One JSON object on stdout.")]
"""The flag that every verb has."""


class OutputFiles(NamedTuple):
    """Where figure and result go, None: nowhere; `quiet` leaves out the remarks on stderr."""

    plot: Path | None
    save: Path | None = None
    quiet: bool = False

    def check(self) -> OutputFiles:
        """Refuse what cannot be written, before the work."""
        if self.plot is not None:
            check_output("plot", self.plot, PICTURES)
        if self.save is not None:
            check_output("save", self.save, STORED)
        return self

    def write(
        self, draw: Callable[[], Figure], store: Callable[[Path], object] | None = None
    ) -> None:
        """Write what was asked for, after the work."""
        if self.plot is not None:
            save_figure(draw(), self.plot)
            self._remark(f"Figure: {self.plot}")
        if self.save is not None and store is not None:
            with writing(self.save):
                store(self.save)
            self._remark(f"Saved: {self.save}")

    def _remark(self, text: str) -> None:
        if not self.quiet:
            remark(text)
