"""The examples of the page on the classifier print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "estimator.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", PAGE, flags=re.DOTALL)


def test_examples(capsys) -> None:
    """They build on each other, so they share their names."""
    names: dict[str, object] = {}
    assert len(EXAMPLES) == 3
    for code, printed in EXAMPLES:
        exec(compile(code, "docs/estimator.md", "exec"), names)
        assert capsys.readouterr().out == printed
