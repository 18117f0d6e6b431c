"""The examples of the pages print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["first-run", "imbalance", "domain-shift"])
def test_examples(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python")
    names: dict[str, Any] = {}
    for code, printed in blocks:
        exec(compile(code, f"docs/{page}.md", "exec"), names)
        assert capsys.readouterr().out == printed
