"""Every run of the comparison, computed once and stored: a file per task, number of labels, seed.

Files are written atomically, so an interrupted comparison resumes. A method that a file does not
have yet is computed and added; `again` recomputes methods that were changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selftrain.runtime.files import replacing
from selftrain.runtime.progress import Progress

from .competitors import prepared
from .measures import measured
from .methods import METHODS, run
from .tasks import RealTask, named, split

LABELS = (20, 40, 100)
FEWEST_UNLABELED = 60
"""Smallest number of unlabelled rows; a task is skipped at numbers of labels that leave fewer."""


@dataclass(frozen=True)
class Cell:
    """A task, its number of labels, and the seed with which they are drawn."""

    task: str
    labels: int
    seed: int

    @property
    def file(self) -> str:
        """The name of its file in the store.

        >>> Cell("MNIST 3 or 5, 20 %", 40, 2).file
        'mnist-3-or-5-20-40-2.json'
        """
        words = "".join(c if c.isalnum() else " " for c in self.task.lower()).split()
        return f"{'-'.join(words)}-{self.labels}-{self.seed}.json"


def cells(tasks: tuple[RealTask, ...], seeds: int) -> list[Cell]:
    """Return all cells, ordered by seed, so that an unfinished comparison contains all tasks."""
    return [
        Cell(task.name, labels, seed)
        for seed in range(seeds)
        for labels in LABELS
        for task in tasks
        if large_enough(task, labels)
    ]


def large_enough(task: RealTask, labels: int) -> bool:
    """Return whether a task leaves enough rows without a label."""
    return 0.6 * len(task.load().classes) - labels >= FEWEST_UNLABELED


def compute(
    wanted: list[Cell],
    store: Path,
    again: tuple[str, ...] = (),
    methods: tuple[str, ...] | None = None,
) -> None:
    """Compute the methods that are not in the store.

    Arguments:
        again: methods whose stored results are replaced.
        methods: methods to compute; None: all.
    """
    store.mkdir(parents=True, exist_ok=True)
    with Progress(len(wanted), "runs") as progress:
        for cell in wanted:
            known = _read(store / cell.file)
            missing = [name for name in methods or METHODS if name not in known or name in again]
            if missing:
                found = {**known, **_compute(cell, missing)}
                with replacing(store / cell.file) as path:
                    path.write_text(json.dumps({"cell": vars(cell), "methods": found}, indent=1))
            progress.advance()


def _compute(cell: Cell, names: list[str]) -> dict[str, Any]:
    task = named(cell.task)
    parts = split(task, cell.labels, cell.seed)
    rows = prepared(parts, task.kind)
    found = {}
    for name in names:
        verdict, seconds = run(METHODS[name], parts, rows)
        values = measured(verdict, parts.truth, float(parts.hidden.mean()))
        found[name] = {**values, "seconds": seconds}
    return found


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text())["methods"]
    return found


def stored(wanted: list[Cell], store: Path) -> Iterator[tuple[Cell, str, dict[str, float]]]:
    """Yield cell, method and measures of all stored results of these cells."""
    for cell in wanted:
        for method, values in _read(store / cell.file).items():
            yield cell, method, values
