"""A user's CSV file: one column per feature and one with the class.

`read_table` rejects a file that is not a table of numbers and two classes, with the name of the
column.
`standardised` gives every column mean 0 and variance 1: the ridge treats all directions alike, so
the result should not depend on units.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import Array
from .errors import InvalidInput, nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "read_table", "standardised"]

SHOWN = 5
"""Names of columns that a sentence lists at most."""

COMPRESSED = (".bz2", ".gz", ".tar", ".xz", ".zip", ".zst")
"""Endings of files that pandas unpacks: their lines are not those of the table."""


class Table(NamedTuple):
    """Rows with their classes.

    Attributes:
        X: rows by features.
        y: the class of each row; the larger of the two values is the positive one.
        names: of the columns.
        constant: names of columns that were left out because they never change.
    """

    X: Array
    y: Any
    names: tuple[str, ...]
    constant: tuple[str, ...] = ()

    @property
    def positive(self) -> Any:
        """The class that counts as positive."""
        return np.unique(self.y)[-1]

    @property
    def rho(self) -> float:
        """The share of the positive class."""
        return float(np.mean(self.y == self.positive))

    def frame(self) -> pd.DataFrame:
        """The rows with the names of their columns."""
        import pandas as pd

        return pd.DataFrame(self.X, columns=list(self.names))


def read_table(path: str | Path, target: str) -> Table:
    """Read a CSV file; `target` is the column with the class, all others are features."""
    frame = read_csv(path, target, "data")
    y = frame.pop(target)
    if y.isna().any():
        accepted = f"{int(y.isna().sum())} rows have no class; leave them out"
        raise InvalidInput("target", target, accepted)
    kinds = y.unique()
    if len(kinds) != 2:
        accepted = f"two classes are needed; this column has {len(kinds)}: {_few(kinds)}"
        raise InvalidInput("target", target, accepted)
    return Table(_numbers(path, frame), y.to_numpy(), tuple(str(name) for name in frame.columns))


def read_csv(path: str | Path, target: str, field: str) -> pd.DataFrame:
    """Read a file with `pandas.read_csv`; its header must have the column `target`.

    Arguments:
        field: what the file is called in an error message.
    """
    import pandas as pd

    with _one_sentence(path, field):
        _check_target(path, target)
        return pd.read_csv(path)


def read_csv_pieces(
    path: str | Path, target: str, field: str, size: int, **options: Any
) -> Iterator[pd.DataFrame]:
    """Read the file in pieces of `size` rows; `options` are those of pandas."""
    import pandas as pd

    with _one_sentence(path, field):
        _check_target(path, target)
        with pd.read_csv(path, chunksize=size, **options) as pieces:
            yield from pieces


def _check_target(path: str | Path, target: str) -> None:
    import pandas as pd

    names = [str(name) for name in pd.read_csv(path, nrows=0).columns]
    if target not in names:
        raise InvalidInput("target", target, f"no such column; {nearest(target, names)}")


@contextmanager
def _one_sentence(path: str | Path, field: str) -> Iterator[None]:
    """Say what is wrong with a file that pandas cannot read."""
    import pandas as pd

    try:
        yield
    except UnicodeDecodeError as error:
        accepted = (
            f"a CSV file in UTF-8 is accepted; {_invalid_byte(Path(path), error)} is not UTF-8."
            " Save the file as UTF-8 (from Latin-1: iconv -f latin1 -t utf-8)"
        )
        raise InvalidInput(field, Path(path), accepted) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        accepted = f"a CSV file with a line of names is accepted ({' '.join(str(error).split())})"
        raise InvalidInput(field, Path(path), accepted) from None


def _invalid_byte(path: Path, error: UnicodeDecodeError) -> str:
    """Return the first byte that is not UTF-8, with its line; pandas reports only the cell."""
    if path.is_file() and path.suffix.lower() not in COMPRESSED:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError as found:
                    return f"the byte 0x{line[found.start]:02X} in line {number}"
    return f"a byte 0x{error.object[error.start]:02X}"


def standardised(table: Table) -> Table:
    """Scale every column to mean 0 and variance 1; constant columns are dropped and named."""
    moving = np.ptp(table.X, axis=0) > 0
    if not moving.any():
        raise InvalidInput("data", f"{len(moving)} columns", "some column has to vary")
    rows = table.X[:, moving]
    rows = (rows - rows[0]) / np.ptp(rows, axis=0)  # no offset or unit costs a digit
    names = np.array(table.names, dtype=object)
    return Table(
        (rows - rows.mean(axis=0)) / rows.std(axis=0),
        table.y,
        tuple(names[moving]),
        tuple(names[~moving]),
    )


def _numbers(path: str | Path, frame: pd.DataFrame) -> Array:
    """The columns as numbers."""
    if not len(frame.columns):
        raise InvalidInput("data", str(path), "a column of numbers besides the target is needed")
    words = [str(name) for name in frame.columns if frame[name].dtype.kind not in "iufb"]
    if words:
        accepted = f"columns of numbers are accepted; these have other entries: {_few(words)}"
        raise InvalidInput("data", str(path), accepted)
    rows = frame.to_numpy(dtype=float)
    holes = ~np.isfinite(rows)
    if holes.any():
        where = [str(name) for name in frame.columns[holes.any(axis=0)]]
        accepted = (
            f"finite numbers are accepted; {int(holes.sum())} are missing or infinite, in:"
            f" {_few(where)}"
        )
        raise InvalidInput("data", str(path), accepted)
    return rows


def _few(names: Any) -> str:
    more = ", ..." if len(names) > SHOWN else ""
    return ", ".join(str(name) for name in names[:SHOWN]) + more
