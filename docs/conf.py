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
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax as files of the site: no page asks another host
]
mathjax3_config = {"options": {"enableMenu": False}}  # its menu would load more from elsewhere
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
default_role = "code"
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"selftrain {release}"
nb_execution_mode = "off"  # tests/docs/test_examples.py executes every notebook
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80

_EXAMPLES = HERE / "examples"
shutil.rmtree(_EXAMPLES, ignore_errors=True)
shutil.copytree(HERE.parent / "examples", _EXAMPLES, ignore=shutil.ignore_patterns("grids"))

# Pages link to files of the repository, as a reader of the sources needs it; on the site those
# files have pages of their own.
_PLACES = {
    r"\]\(\.\./examples/([\w-]+\.ipynb)": r"](examples/\1",
    r"\]\(\.\./docs/": "](../",  # from a notebook
    r"\]\(\.\./CHANGELOG\.md": "](changes.md",
    r"\]\(\.\./CONTRIBUTING\.md": "](contributing.md",
    r"\]\(\.\./README\.md": "](index.md",
}

_PIECES = re.compile(r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)(?!`)|\$(?P<math>[^$]+)\$", re.DOTALL)


def _links(app: Any, name: str, source: list[str]) -> None:
    """Point links at the pages of the site."""
    for pattern, place in _PLACES.items():
        source[0] = re.sub(pattern, place, source[0])


def _piece(found: re.Match[str]) -> str:
    """Code and mathematics of a docstring as reStructuredText has them, on one line."""
    math, code = found["math"], found["code"]
    text = f":math:`{math}`" if code is None else f"``{code}``"
    # A word that follows at once, as the s of a plural, would hide the end of the markup.
    follows = found.string[found.end() : found.end() + 1]
    return " ".join(text.split()) + ("\\ " if follows.isalnum() else "")


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Read docstrings as they are written: $x$ is mathematics, names in backticks are code.

    A vertical bar is one, not the beginning of a substitution.
    """
    text, parts, end = "\n".join(lines), [], 0
    for found in _PIECES.finditer(text):
        parts += [text[end : found.start()].replace("|", "\\|"), _piece(found)]
        end = found.end()
    lines[:] = "".join([*parts, text[end:].replace("|", "\\|")]).split("\n")


def setup(app: Any) -> None:
    """Connect the hooks."""
    app.connect("source-read", _links)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon
