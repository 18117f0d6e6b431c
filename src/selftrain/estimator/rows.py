"""Sums over the rows of a table: dense, sparse, or a Dask array chunked by rows.

Every quantity of the estimator is a sum over rows (`total`), one number per row (`column`), or
a narrower table (`project`), so one solver serves arrays in memory, sparse text and rows on a
cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ..arrays import Array

Block = Any
"""Rows in memory: a numpy array or a scipy sparse array."""

ENTRIES = 2**18
"""Entries of a dense block (2 MB): temporaries stay in the cache."""

SPARSE_ENTRIES = 2**22
"""Entries of a sparse block, whose rows are copied when it is sliced."""


class Rows(Protocol):
    """A table of `shape` rows and columns, as `matrix` stores it."""

    matrix: Any
    shape: tuple[int, int]

    def total(self, part: Callable[..., tuple[Array, ...]], *vectors: Array) -> tuple[Array, ...]:
        """Return the sum over blocks of `part(block, *slices of the vectors)`."""
        ...

    def column(self, part: Callable[..., Array], *vectors: Array) -> Array:
        """Return `part(block, ...)` of all blocks, concatenated, in memory."""
        ...

    def project(self, part: Callable[[Block], Array], columns: int) -> Rows:
        """Return the table `part(block)` of dense rows, stored where the rows are."""
        ...

    def part(self, which: Any) -> Rows:
        """Return the table of some rows, stored where the rows are."""
        ...

    def take(self, which: Any) -> Block:
        """Return some rows, in memory."""
        ...


class StoredRows:
    """Rows in memory."""

    def __init__(self, matrix: Block):
        self.matrix = matrix
        self.shape: tuple[int, int] = tuple(matrix.shape)

    def _blocks(self) -> Iterator[slice]:
        rows, columns = self.shape
        entries = ENTRIES
        if is_sparse(self.matrix):
            entries, columns = SPARSE_ENTRIES, self.matrix.nnz // max(1, rows)
        length = max(256, entries // max(1, columns))
        for start in range(0, rows, length):
            yield slice(start, min(rows, start + length))

    def _piece(self, block: slice) -> Block:
        """Return the rows of a block; a whole table is not sliced, which would copy sparse rows."""
        return self.matrix if block.stop - block.start == self.shape[0] else self.matrix[block]

    def total(self, part: Callable[..., tuple[Array, ...]], *vectors: Array) -> tuple[Array, ...]:
        sums: list[Array] | None = None
        for block in self._blocks():
            terms = part(self._piece(block), *(vector[block] for vector in vectors))
            sums = (
                list(terms) if sums is None else [a + b for a, b in zip(sums, terms, strict=True)]
            )
        if sums is None:
            return part(self.matrix, *vectors)
        return tuple(sums)

    def column(self, part: Callable[..., Array], *vectors: Array) -> Array:
        parts = [part(self._piece(b), *(vector[b] for vector in vectors)) for b in self._blocks()]
        return np.concatenate(parts) if parts else np.asarray(part(self.matrix, *vectors))

    def project(self, part: Callable[[Block], Array], columns: int) -> Rows:
        image = np.empty((self.shape[0], columns))
        for block in self._blocks():
            image[block] = part(self._piece(block))
        return StoredRows(image)

    def part(self, which: Any) -> Rows:
        return StoredRows(self.matrix[which])

    def take(self, which: Any) -> Block:
        return self.matrix[which]


class ChunkedRows:
    """A Dask array: one task per chunk of rows; sums and columns return, tables stay."""

    def __init__(self, matrix: Any):
        if matrix.numblocks[1] != 1:
            matrix = matrix.rechunk({1: -1})
        self.matrix = matrix
        self.shape: tuple[int, int] = (int(matrix.shape[0]), int(matrix.shape[1]))
        edges = np.concatenate([[0], np.cumsum(matrix.chunks[0])])
        self._slices = [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def _tasks(self, part: Callable[..., Any], vectors: tuple[Array, ...]) -> list[Any]:
        from dask.base import compute
        from dask.delayed import delayed

        blocks = self.matrix.to_delayed().ravel()
        tasks = [
            delayed(part)(block, *(vector[rows] for vector in vectors))
            for block, rows in zip(blocks, self._slices, strict=True)
        ]
        return list(compute(*tasks))  # type: ignore[no-untyped-call]

    def total(self, part: Callable[..., tuple[Array, ...]], *vectors: Array) -> tuple[Array, ...]:
        terms = self._tasks(part, vectors)
        return tuple(sum(column[1:], start=column[0]) for column in zip(*terms, strict=True))

    def column(self, part: Callable[..., Array], *vectors: Array) -> Array:
        return np.concatenate(self._tasks(part, vectors))

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
