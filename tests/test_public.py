"""The public names: few, importable, documented, the same for people and for type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import selftrain
from selftrain import datasets, estimator, expansions, labelers, losses, results

ROOT = Path(__file__).parents[1]


def test_there_are_at_most_twenty_names_at_the_top() -> None:
    assert len(selftrain.__all__) <= 20
    assert "solve" in selftrain.__all__


@pytest.mark.parametrize("name", dir(selftrain))
def test_every_name_is_there_with_a_docstring(name: str) -> None:
    assert getattr(selftrain, name).__doc__


def test_the_stub_has_nothing_that_is_not_there() -> None:
    stub = ast.parse(Path(selftrain.__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    named = {alias.asname for node in imports for alias in node.names}
    assert named == set(dir(selftrain))


def test_the_pages_of_the_api_have_every_public_name() -> None:
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    names = [f"selftrain.{name}" for name in selftrain.__all__ if name != "SelfTrainError"]
    for part in (datasets, estimator, expansions, labelers, losses, results):
        names += [f"{part.__name__}.{name}" for name in part.__all__]
    for name in names:
        assert f":: {name}\n" in pages, name


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    code = "import sys, selftrain; print({'numpy', 'numba'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
