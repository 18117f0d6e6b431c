"""The examples of the page on problems and recipes run, and its config file is one."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from selftrain import Problem, Recipe

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "problem-and-recipe.md").read_text()


def test_examples_run_in_order() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/problem-and-recipe.md", "exec"), names)
    assert names["same"] == names["again"] == names["problem"]
    assert names["other"].rho == 0.2
    assert names["shifted"].test_mixture == (0.3, 0.7)
    last = names["reports"][-1]
    assert (last.done, last.total, last.left) == (17, 17, None)


def test_the_config_file_holds_both_words() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    tables = tomllib.loads(text)
    assert Problem.from_dict(tables["problem"]).steps == 16
    assert Recipe.from_dict(tables["recipe"]).threshold == 0.5


@pytest.mark.parametrize("word", [Problem, Recipe])
def test_every_field_is_explained(word: type[Problem] | type[Recipe]) -> None:
    for field in fields(word):
        assert f"`{field.name}`" in PAGE, field.name


def test_links_between_pages_lead_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)(?:#[\w-]+)?\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)
