"""Examples in docstrings are what they look like: TOML and Python that parse.

Doctests run by themselves. What is left are indented blocks and fenced ones, which nothing else
looks at: a formatter that fills their lines turns them into nonsense. Formulas (LaTeX) and command
lines are no examples of this kind.
"""

from __future__ import annotations

import ast
import doctest
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import selftrain
from selftrain.cli import gridfile
from selftrain.cli.gridfile import plan_of_tables

SOURCE = Path(selftrain.__file__).parent
SECTION = re.compile(r"^\w+( \w+)?:$")  # "Arguments:", "Returns:", of which entries are indented
COMMANDS = ("python ", "selftrain ", "make ", "pip ", "dask ")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"(?:^ {4}.*\n(?:\n(?= {4}))?)+", re.MULTILINE)


def docstrings(source: str) -> Iterator[str]:
    """Every docstring of a file, those behind constants and attributes included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                first, _, rest = text.partition("\n")
                yield f"{first.strip()}\n{textwrap.dedent(rest)}\n"


def without_doctests(text: str) -> str:
    parts = doctest.DocTestParser().parse(text)
    return "".join(part for part in parts if isinstance(part, str))


def examples(text: str) -> Iterator[tuple[str, str]]:
    """Blocks of code of a docstring with their language, "" where it does not say which."""
    plain = without_doctests(text)
    for fence in FENCE.finditer(plain):
        yield fence[1], textwrap.dedent(fence[2])
    plain = FENCE.sub("", plain)
    for block in BLOCK.finditer(plain):
        before = plain[: block.start()].rstrip().splitlines()
        content = textwrap.dedent(block[0])
        formula = "\\" in content or "$" in content
        entries = bool(before) and SECTION.match(before[-1].strip())
        if not (formula or entries or content.startswith(COMMANDS)):
            yield "", content


def parses(language: str, content: str) -> bool:
    """Whether a block is what it says, or one of both if it does not say."""
    if language not in ("", "toml", "python"):
        return True
    if language in ("", "toml"):
        try:
            tomllib.loads(content)
            return True
        except tomllib.TOMLDecodeError:
            pass
    try:
        ast.parse(content)
        return language != "toml"
    except SyntaxError:
        return False


FILES = sorted(path for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_examples_in_docstrings_parse(path: Path) -> None:
    for text in docstrings(path.read_text(encoding="utf-8")):
        for language, content in examples(text):
            assert parses(language, content), content


def test_an_example_whose_lines_were_filled_is_noticed() -> None:
    whole = 'A file.\n\n    task = "solve"\n    keep = ["error"]\n\n    [axes]\n    rho = [0.1]\n'
    filled = 'A file.\n\n    task = "solve" keep = ["error"]\n\n    [axes] rho = [0.1]\n'
    assert [parses(*one) for one in examples(whole)] == [True]
    assert [parses(*one) for one in examples(filled)] == [False]
    fenced = "Code.\n\n```python\nx = 1 y = 2\n```\n\n```toml\nx = 1\n```\n"
    assert [parses(*one) for one in examples(fenced)] == [False, True]


def test_the_example_of_a_grid_file_is_one(tmp_path: Path) -> None:
    ((_, example),) = examples(next(docstrings(Path(gridfile.__file__).read_text("utf-8"))))
    plan = plan_of_tables(tomllib.loads(example), tmp_path)
    assert plan.grid.shape == (3, 10, 2)
    assert (plan.task, plan.call.keep) == ("optimize", ("error", "gain"))
