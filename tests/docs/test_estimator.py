"""The examples of the pages on the classifiers print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "count"), [("estimator", 3), ("self-training", 2)])
def test_examples(page: str, count: int, capsys) -> None:
    """They build on each other, so they share their names."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    examples = re.findall(
        r"```python\n((?:(?!```).)*?)```\s+```text\n(.*?)```", text, flags=re.DOTALL
    )
    names: dict[str, object] = {}
    assert len(examples) == count
    for code, printed in examples:
        exec(compile(code, f"docs/{page}.md", "exec"), names)
        assert capsys.readouterr().out == printed
