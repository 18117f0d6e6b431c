"""How `make docs` turns these pages into a site. They are Markdown and read well without it."""

from __future__ import annotations

import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

project = "selftrain"
author = "the selftrain authors"
release = metadata.version("selftrain")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_missing", "myst.header"]
default_role = "code"
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
html_theme = "furo"
html_title = f"selftrain {release}"
nb_execution_mode = "off"  # tests/docs/test_examples.py executes every notebook
autodoc_typehints = "description"
autodoc_member_order = "bysource"

_EXAMPLES = HERE / "examples"
shutil.rmtree(_EXAMPLES, ignore_errors=True)
shutil.copytree(HERE.parent / "examples", _EXAMPLES, ignore=shutil.ignore_patterns("grids"))


def _code(found: re.Match[str]) -> str:
    """A name or an expression in backticks, on one line."""
    return f"``{' '.join(found[1].split())}``"


def _formulas(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Formulas of docstrings, written $x$, as mathematics; names in backticks as code."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", _code, "\n".join(lines))
    text = re.sub(r"(``[^`\n]+``)(?=\w)", r"\1\\ ", text)
    text = re.sub(r"\$([^$]+)\$", r":math:`\1`", text)
    lines[:] = text.split("\n")


def setup(app: Any) -> None:
    """Connect the hook."""
    app.connect("autodoc-process-docstring", _formulas, priority=400)  # before napoleon
