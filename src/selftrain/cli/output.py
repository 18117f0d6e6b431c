"""What commands write: strict JSON, tables for a terminal, files, remarks on stderr.

Strict JSON has neither NaN nor infinity: they become null and the string "inf" (or "-inf").
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from ..errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from ..fields import Portable

TABLE_WIDTH = 120

PICTURES = ("png", "pdf", "svg", "eps", "jpg")
STORED = ("nc",)
"""File name extensions of figures, and of stored results."""

MOST_WANTED = ("error", "cosine")
"""Columns that are shown however narrow the terminal is."""


class StepRows:
    """A list of JSON objects, stored as columns; each object is created when it is written."""

    def __init__(self, columns: Mapping[str, Any]):
        self.columns = columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        from ..fields import strict

        for entries in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, map(strict, entries), strict=True))


def print_json(result: Mapping[str, Any], **inputs: Portable) -> None:
    """Write one JSON object to stdout: the result of a command, its inputs, the version.

    `StepRows` are written one by one, so that a million steps need no more memory than one.
    """
    from importlib.metadata import version

    from ..fields import strict

    asked = {name: part.to_dict() for name, part in inputs.items()}
    whole = {**result, **asked, "version": version("selftrain")}
    write = sys.stdout.write
    before = "{"
    for name, value in whole.items():
        write(f"{before}{json.dumps(str(name))}: ")
        if isinstance(value, StepRows):
            write("[")
            for at, row in enumerate(value):
                write((", " if at else "") + json.dumps(row, allow_nan=False))
            write("]")
        else:
            write(json.dumps(strict(value), allow_nan=False))
        before = ", "
    write("}\n")
    sys.stdout.flush()


def terminal() -> Console:
    """Return a console on stdout; in a pipe it has unlimited width, so that no table wraps."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width, console.soft_wrap = TABLE_WIDTH, True
    return console


def cell(value: float | str) -> str:
    """Return a table entry: a number with six digits, a dash for NaN, or a text unchanged."""
    if isinstance(value, str):
        return value
    return "-" if value != value else f"{value:.6g}"


def print_table(
    console: Console,
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Sequence[str] = (),
    widths: Mapping[str, int | None] | None = None,
    **style: Any,
) -> None:
    """Print a table, without blanks at the ends of lines.

    If it is too wide, columns are omitted from the last on, and their names are printed; numbers
    are never cut off. The first column, the error and the cosine are always shown.

    Arguments:
        left: columns of text, which may wrap; the others are right-aligned numbers, which do not.
        widths: widths of columns of text; None: as wide as their text, which then does not wrap.
        style: further options of the table of rich.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table

    cells = dict(zip(titles, zip(*rows, strict=True), strict=True))
    shown, omitted, widths = list(titles), list[str](), widths or {}
    endless = console.options.update(width=10_000)
    while True:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, **style)
        for title in shown:
            if title in left:
                whole = widths.get(title, 0) is None
                table.add_column(title, width=widths.get(title), no_wrap=whole)
            else:  # without a least width rich would wrap "0.43 %"
                least = max(map(cell_len, cells[title]))
                table.add_column(title, justify="right", no_wrap=True, min_width=least)
        for row in zip(*(cells[title] for title in shown), strict=True):
            table.add_row(*row)
        spare = [title for title in shown[1:] if title not in MOST_WANTED]
        if not spare or console.measure(table, options=endless).minimum <= console.width:
            break
        shown.remove(spare[-1])
        omitted.insert(0, spare[-1])
    with console.capture() as captured:
        console.print(table, soft_wrap=False)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
    if omitted:
        typer.echo(f"Not shown for lack of width: {', '.join(omitted)}; --json has all.")


def remark(text: str) -> None:
    """Print a remark on stderr; stdout is for results."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False, emoji=False)
    console.print(escape(text), soft_wrap=not console.is_terminal)


def counted(count: int, noun: str) -> str:
    """Return a number and its noun.

    >>> counted(1, "step"), counted(2, "step")
    ('1 step', '2 steps')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def check_output(field: str, path: Path, suffixes: tuple[str, ...] = ()) -> None:
    """Reject a path that cannot be written, before anything is computed."""
    if path.is_dir():
        raise IsADirectoryError(21, "is a folder, a file name is needed", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "no such folder", str(path.parent))
    known = path.suffix.lower().removeprefix(".") in suffixes
    if suffixes and not known and not path.is_char_device():
        accepted = f"must be a name ending in one of: {', '.join(suffixes)}"
        raise InvalidInput(field, str(path), accepted)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Add the name of the file to errors of the operating system."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically."""
    from ..runtime.files import replacing

    with writing(path), replacing(path) as part:
        figure.savefig(part, format=path.suffix.lower().removeprefix("."))


class OutputFiles(NamedTuple):
    """Paths of the figure and the stored result, None if not requested; `quiet`: no remarks."""

    plot: Path | None
    save: Path | None = None
    quiet: bool = False

    def check(self) -> OutputFiles:
        """Reject paths that cannot be written, before anything is computed."""
        if self.plot is not None:
            check_output("plot", self.plot, PICTURES)
        if self.save is not None:
            check_output("save", self.save, STORED)
        return self

    def write(
        self, draw: Callable[[], Figure], store: Callable[[Path], object] | None = None
    ) -> None:
        """Write the requested files; `draw` returns the figure, `store` writes the result."""
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
