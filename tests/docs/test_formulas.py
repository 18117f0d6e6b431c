"""Display formulas in docstrings keep their line breaks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
PAIRS = ("()", "[]", "{}")


def formulas() -> Iterator[tuple[str, str]]:
    """Lines of indented paragraphs with TeX in them, each with its file."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            for block in re.split(r"\n\s*\n", text or ""):
                lines = block.splitlines()
                if "\\" in block and all(line.startswith("    ") for line in lines):
                    yield from ((path.name, line) for line in lines)


def test_no_formula_is_broken_inside() -> None:
    """A formula cut by a line break ends in an operator or leaves a bracket open."""
    found = list(formulas())
    assert len(found) > 30
    for name, line in found:
        assert not re.search(r"[=+\-*/(\[{,]$", line.rstrip()) or line.endswith("`,"), (name, line)
        for opening, closing in PAIRS:
            assert line.count(opening) == line.count(closing) or "`" in line, (name, line)
