"""The examples of the pages print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    "page", ["first-run", "imbalance", "domain-shift", "add-a-labeler", "limits"]
)
def test_examples(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python")
    names: dict[str, Any] = {}
    for code, printed in blocks:
        exec(compile(code, f"docs/{page}.md", "exec"), names)
        assert capsys.readouterr().out == printed


def test_no_page_is_lonely() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert pages <= set(re.findall(r"\]\(([\w-]+\.md)", index))


def test_the_index_of_figures_has_them_all() -> None:
    from selftrain.paper.registry import figures

    rows = [
        line
        for line in (DOCS / "figures.md").read_text("utf-8").splitlines()
        if "`](paper.md" in line
    ]
    headings = set(re.findall(r"^## (.+)$", (DOCS / "paper.md").read_text("utf-8"), flags=re.M))
    for row, figure in zip(rows, figures(), strict=True):
        assert f"[`{figure.id}`](paper.md#{figure.id})" in row
        assert figure.id in headings
        assert figure.title in row
        assert f"| {figure.place.number or 'ours'} | " in row


def test_the_page_of_errors_has_every_error_and_all_are_exported() -> None:
    import selftrain
    from selftrain import errors

    page = (DOCS / "errors.md").read_text("utf-8")
    classes = [
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.SelfTrainError)
    ]
    for name in classes:
        assert f"`{name}`" in page
        assert getattr(selftrain, name) is getattr(errors, name)
