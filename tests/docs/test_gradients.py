"""The examples of the page on gradients print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "gradients.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=["gradient", "optimize"])
def test_example(code: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "docs/gradients.md", "exec"), {})
    assert capsys.readouterr().out == printed
