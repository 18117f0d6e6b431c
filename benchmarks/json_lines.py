"""Results stored as they come, one JSON object per line, so that an interrupted run resumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class JsonLines:
    """A file of results; `rows` are the stored ones.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     JsonLines(Path(folder) / "runs.jsonl").add({"seed": 0})
    ...     JsonLines(Path(folder) / "runs.jsonl").rows
    [{'seed': 0}]
    """

    def __init__(self, path: Path):
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def known(self, *names: str) -> set[tuple[Any, ...]]:
        """Return the entries with these names of every stored row, as tuples."""
        return {tuple(row[name] for name in names) for row in self.rows}

    def add(self, row: dict[str, Any]) -> None:
        """Append a row to the file."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
