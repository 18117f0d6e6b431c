"""A CSV file as samples and targets, read in chunks: memory stays bounded for any length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import InvalidInput
from ...runtime.progress import Progress, ProgressOption
from ...tables import read_csv_pieces
from ..checks import identifiers
from .inputs import MOST_LABELED, MOST_UNLABELED, Input, sampled

if TYPE_CHECKING:
    import pandas as pd

PIECE = 50_000
"""Rows of a chunk."""


class Kept(NamedTuple):
    """A uniform sample of the rows so far: those with the smallest random numbers."""

    rows: Any
    lots: Any

    def merge(self, rows: Any, lots: Any, most: int) -> Kept:
        """Add rows, and keep `most` of all."""
        import pandas as pd

        rows = rows if self.rows is None else pd.concat([self.rows, rows])
        lots = lots if self.lots is None else np.concatenate([self.lots, lots])
        if len(lots) > most:
            chosen = np.sort(np.argsort(lots, kind="stable")[:most])
            rows, lots = rows.iloc[chosen], lots[chosen]
        return Kept(rows, lots)


class CsvRows(NamedTuple):
    """Columns, targets as text (None: unlabelled), and the numbers of rows in the file.

    Attributes:
        identifiers: columns that number the rows of the file; those of `X` are in another order.
    """

    X: pd.DataFrame
    y: Any
    labeled: int
    unlabeled: int
    identifiers: tuple[str, ...]

    def complete(self, rows: Input) -> Input:
        """Return checked samples with the counts of the whole file, and remarks."""
        remarks = rows.remarks
        if self.labeled + self.unlabeled > len(self.y):
            remarks = (sampled(rows.codes, self.labeled, self.unlabeled), *remarks)
        return replace(
            rows,
            labeled=self.labeled,
            unlabeled=self.unlabeled,
            remarks=remarks,
            identifiers=self.identifiers,
        )


def read_csv_rows(
    path: Path, target: str, unlabeled: str = "-1", seed: int = 0, progress: ProgressOption = None
) -> CsvRows:
    """Read the rows of a CSV file, or a random sample if there are very many.

    Arguments:
        target: the column of the classes; empty cells and `unlabeled` mark unlabelled rows.
    """
    import pandas as pd

    random = np.random.default_rng(seed)
    kept = {True: Kept(None, None), False: Kept(None, None)}
    counts = {True: 0, False: 0}
    total = _pieces(path)
    with Progress(total, f"pieces of {PIECE} rows", progress if total > 1 else False) as bar:
        for piece in read_csv_pieces(
            path, target, "rows", PIECE, dtype={target: str}, low_memory=False
        ):
            known = _known(piece[target], unlabeled)
            lots = random.random(len(piece))
            for kind, most in ((True, MOST_LABELED), (False, MOST_UNLABELED)):
                chosen = known == kind
                counts[kind] += int(chosen.sum())
                kept[kind] = kept[kind].merge(piece[chosen], lots[chosen], most)
            bar.advance()
    if not any(counts.values()):
        raise InvalidInput("rows", str(path), "must have rows")
    whole = pd.concat([kept[True].rows, kept[False].rows])
    names = whole[target].str.strip().where(_known(whole[target], unlabeled), None)
    columns = whole.drop(columns=target)
    if not columns.shape[1]:
        raise InvalidInput("rows", str(path), f"must have a column besides the target {target!r}")
    counting = tuple(identifiers(columns.sort_index()))
    return CsvRows(columns, names.to_numpy(dtype=object), counts[True], counts[False], counting)


def _known(names: Any, unlabeled: str) -> Any:
    """Return where a class is given: cells that are neither empty nor the marker."""
    text = names.str.strip()
    marked = text.isna() | (text == "") | (text == unlabeled.strip())
    try:
        marker = float(unlabeled)
    except ValueError:
        return ~marked
    import pandas as pd

    return ~(marked | (pd.to_numeric(text, errors="coerce") == marker))


def _pieces(path: Path) -> int:
    """Estimate the number of chunks from the size of the file and the length of its first lines."""
    with path.open("rb") as file:
        lines = [len(file.readline()) for _ in range(50)]
    used = [length for length in lines[1:] if length]
    if not used:
        return 1
    rows = path.stat().st_size / (sum(used) / len(used))
    return max(1, int(np.ceil(rows / PIECE)))
