"""Labelled data in CSV files: one column per feature and one with the class.

`read_table` validates such a file. `standardised` scales every column to mean 0 and variance 1: the
ridge treats all directions alike, so units must not matter.
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
"""Maximum number of column names in a message."""

COMPRESSED = (".bz2", ".gz", ".tar", ".xz", ".zip", ".zst")
"""Suffixes of files that pandas decompresses: their bytes are not those of the table."""


class Table(NamedTuple):
    """Rows with their classes.

    Attributes:
        X: rows by features.
        y: the class of each row; the larger of the two values is the positive class.
        names: names of the columns.
        constant: names of constant columns, which were dropped.
    """

    X: Array
    y: Any
    names: tuple[str, ...]
    constant: tuple[str, ...] = ()

    @property
    def positive(self) -> Any:
        """The positive class."""
        return np.unique(self.y)[-1]

    @property
    def rho(self) -> float:
        """The proportion of the positive class."""
        return float(np.mean(self.y == self.positive))

    def frame(self) -> pd.DataFrame:
        """Return the rows as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.X, columns=list(self.names))


def read_table(path: str | Path, target: str) -> Table:
    """Read a CSV file; `target` is the column with the class, all others are features."""
    frame = read_csv(path, target, "data")
    y = frame.pop(target)
    if y.isna().any():
        accepted = f"{int(y.isna().sum())} rows have no class; remove them"
        raise InvalidInput("target", target, accepted)
    kinds = y.unique()
    if len(kinds) != 2:
        accepted = f"must be a column with two classes; it has {len(kinds)}: {_few(kinds)}"
        raise InvalidInput("target", target, accepted)
    return Table(_numbers(path, frame), y.to_numpy(), tuple(str(name) for name in frame.columns))


def read_csv(path: str | Path, target: str, field: str) -> pd.DataFrame:
    """Read a CSV file with pandas; raise `InvalidInput` if it has no column `target`.

    Arguments:
        field: name of the file's argument, for error messages.
    """
    import pandas as pd

    with _readable_errors(path, field):
        _check_target(path, target)
        return pd.read_csv(path)


def read_csv_pieces(
    path: str | Path, target: str, field: str, size: int, **options: Any
) -> Iterator[pd.DataFrame]:
    """Yield a CSV file in pieces of `size` rows; `options` are passed to pandas."""
    import pandas as pd

    with _readable_errors(path, field):
        _check_target(path, target)
        with pd.read_csv(path, chunksize=size, **options) as pieces:
            yield from pieces


def _check_target(path: str | Path, target: str) -> None:
    import pandas as pd

    names = [str(name) for name in pd.read_csv(path, nrows=0).columns]
    other = next((mark for mark in (";", "\t") if len(names) == 1 and mark in names[0]), None)
    if target not in names and other:
        accepted = f"no such column; the file seems separated by {other!r}: convert it to commas"
        raise InvalidInput("target", target, accepted)
    if target not in names:
        raise InvalidInput("target", target, f"no such column; {nearest(target, names)}")


@contextmanager
def _readable_errors(path: str | Path, field: str) -> Iterator[None]:
    """Convert errors of pandas to an `InvalidInput` with a readable message."""
    import pandas as pd

    try:
        yield
    except UnicodeDecodeError as error:
        accepted = (
            f"{_invalid_byte(Path(path), error)} is not UTF-8: save the file as UTF-8 (from"
            " Latin-1: iconv -f latin1 -t utf-8)"
        )
        raise InvalidInput(field, Path(path), accepted) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        accepted = f"must be a CSV file with a line of names ({' '.join(str(error).split())})"
        raise InvalidInput(field, Path(path), accepted) from None


def _invalid_byte(path: Path, error: UnicodeDecodeError) -> str:
    """Return the first byte that is not UTF-8, as text; for plain files also its line.

    Pandas does not report the line, so the file is read again.
    """
    if path.is_file() and path.suffix.lower() not in COMPRESSED:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError as found:
                    return f"the byte 0x{line[found.start]:02X} in line {number}"
    return f"a byte 0x{error.object[error.start]:02X}"


def standardised(table: Table) -> Table:
    """Scale every column to mean 0 and variance 1; drop constant columns and list their names."""
    varying = np.ptp(table.X, axis=0) > 0
    if not varying.any():
        accepted = "must have a column that is not constant"
        raise InvalidInput("data", f"{len(varying)} columns", accepted)
    rows = table.X[:, varying]
    rows = (rows - rows[0]) / np.ptp(rows, axis=0)  # avoids cancellation and overflow
    names = np.array(table.names, dtype=object)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return Table(scaled, table.y, tuple(names[varying]), tuple(names[~varying]))


def _numbers(path: str | Path, frame: pd.DataFrame) -> Array:
    """Return the columns as an array; raise unless all entries are finite numbers."""
    if not len(frame.columns):
        raise InvalidInput("data", str(path), "must have a column of numbers besides the target")
    words = [str(name) for name in frame.columns if frame[name].dtype.kind not in "iufb"]
    if words:
        accepted = f"must have numbers only; these columns have other entries: {_few(words)}"
        raise InvalidInput("data", str(path), accepted)
    rows = frame.to_numpy(dtype=float)
    invalid = ~np.isfinite(rows)
    if invalid.any():
        where = [str(name) for name in frame.columns[invalid.any(axis=0)]]
        accepted = (
            f"must have finite numbers; {int(invalid.sum())} are missing or infinite, in:"
            f" {_few(where)}"
        )
        raise InvalidInput("data", str(path), accepted)
    return rows


def _few(names: Any) -> str:
    more = ", ..." if len(names) > SHOWN else ""
    return ", ".join(str(name) for name in names[:SHOWN]) + more
