"""Sums over the rows of a table: dense, sparse, or a Dask array chunked by rows.

Every quantity of the estimator is a sum over rows (`total`), one number per row (`column`), or
a narrower table (`project`), so one solver serves arrays in memory, sparse matrices and rows on
a cluster.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from ..arrays import Array

Block = Any
"""Rows in memory: a numpy array or a scipy sparse array."""

ENTRIES = 2**18
"""Number of entries of a dense block (2 MB): temporaries fit into the processor's cache."""

SPARSE_ENTRIES = 2**22
"""Number of entries of a sparse block; larger than a dense one, because slicing copies rows."""


class Blocks(ABC):
    """Rows of a table in blocks, over which sums and columns are computed."""

    @abstractmethod
    def each(self, part: Callable[..., Any], vectors: tuple[Array, ...]) -> Iterable[Any]:
        """Return `part(block, *slices of the vectors)` for every block.

        A vector has one entry per row. An empty table has one block without rows.
        """

    def total(self, part: Callable[..., tuple[Array, ...]], *vectors: Array) -> tuple[Array, ...]:
        """Return the sum over blocks of `part(block, *slices of the vectors)`."""
        return reduce(
            lambda sums, terms: tuple(a + b for a, b in zip(sums, terms, strict=True)),
            self.each(part, vectors),
        )

    def column(self, part: Callable[..., Array], *vectors: Array) -> Array:
        """Return `part(block, ...)` of all blocks, concatenated, in memory."""
        return np.concatenate(list(self.each(part, vectors)))


class Rows(Blocks):
    """A table (`matrix`, of `shape` rows and columns) that is processed block by block."""

    matrix: Any
    shape: tuple[int, int]

    @abstractmethod
    def project(self, part: Callable[[Block], Array], columns: int) -> Rows:
        """Return the dense table `part(block)` of so many columns, stored where the rows are."""

    @abstractmethod
    def part(self, which: Any) -> Rows:
        """Return the table of some rows, stored where the rows are."""

    @abstractmethod
    def take(self, which: Any) -> Block:
        """Return some rows, in memory."""


class Stacked(Blocks):
    """Labelled rows in memory, then the others, wherever they are stored (None: no others)."""

    def __init__(self, labeled: Array, others: Rows | None = None):
        self.labeled = labeled
        self.others = others if others is not None and others.shape[0] else None

    def each(self, part: Callable[..., Any], vectors: tuple[Array, ...]) -> Iterator[Any]:
        count = len(self.labeled)
        yield part(self.labeled, *(vector[:count] for vector in vectors))
        if self.others is not None:
            yield from self.others.each(part, tuple(vector[count:] for vector in vectors))


class StoredRows(Rows):
    """Rows in memory."""

    def __init__(self, matrix: Block):
        self.matrix = matrix
        self.shape = tuple(matrix.shape)

    def _blocks(self) -> Iterator[slice]:
        rows, columns = self.shape
        entries = ENTRIES
        if is_sparse(self.matrix):
            entries, columns = SPARSE_ENTRIES, self.matrix.nnz // max(1, rows)
        length = max(256, entries // max(1, columns))
        for start in range(0, max(rows, 1), length):
            yield slice(start, min(rows, start + length))

    def each(self, part: Callable[..., Any], vectors: tuple[Array, ...]) -> Iterator[Any]:
        for block in self._blocks():
            # A whole table is not sliced, which would copy sparse rows.
            whole = block.stop - block.start == self.shape[0]
            rows = self.matrix if whole else self.matrix[block]
            yield part(rows, *(vector[block] for vector in vectors))

    def project(self, part: Callable[[Block], Array], columns: int) -> Rows:
        image = np.empty((self.shape[0], columns))
        for block, values in zip(self._blocks(), self.each(part, ()), strict=True):
            image[block] = values
        return StoredRows(image)

    def part(self, which: Any) -> Rows:
        return StoredRows(self.matrix[which])

    def take(self, which: Any) -> Block:
        return self.matrix[which]


class ChunkedRows(Rows):
    """A Dask array: one task per chunk of rows. Sums and columns are sent to this process; tables
    stay on the workers.
    """

    def __init__(self, matrix: Any):
        if matrix.numblocks[1] != 1:
            matrix = matrix.rechunk({1: -1})
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))

    def each(self, part: Callable[..., Any], vectors: tuple[Array, ...]) -> list[Any]:
        from dask.base import compute
        from dask.delayed import delayed

        edges = np.concatenate([[0], np.cumsum(self.matrix.chunks[0])])
        tasks = [
            delayed(part)(block, *(vector[int(start) : int(end)] for vector in vectors))
            for block, (start, end) in zip(
                self.matrix.to_delayed().ravel(), pairwise(edges), strict=True
            )
        ]
        return list(compute(*tasks))  # type: ignore[no-untyped-call]

    def project(self, part: Callable[[Block], Array], columns: int) -> Rows:
        chunks = (self.matrix.chunks[0], (columns,))
        image = self.matrix.map_blocks(part, dtype=float, chunks=chunks)
        return ChunkedRows(image.persist())

    def part(self, which: Any) -> Rows:
        return ChunkedRows(self.matrix[which].persist())

    def take(self, which: Any) -> Block:
        return np.asarray(self.matrix[which].compute())


def is_sparse(matrix: Any) -> bool:
    """Return whether this is a scipy sparse array or matrix."""
    return bool(scipy.sparse.issparse(matrix))


def is_dask(matrix: Any) -> bool:
    """Return whether this is a Dask array, without importing Dask."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(matrix, module.Array)


def as_rows(matrix: Any) -> Rows:
    """Return the store for a matrix; duplicate entries of a sparse one are summed first, in a
    copy.
    """
    if is_sparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return ChunkedRows(matrix) if is_dask(matrix) else StoredRows(matrix)
