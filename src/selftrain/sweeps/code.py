"""The code of this package behind a stored value, as digests of syntax trees."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

from ..runtime.sources import check_imports, sources
from .origins import PACKAGE

ROOT = Path(__file__).parents[1]
WITHOUT_EQUATIONS = ("cli", "explorer", "plots", "report", "runtime", "sweeps", "__init__.py")
"""Parts that compute no value of a point: imports of them do not count."""


@cache
def code_digest(modules: frozenset[str]) -> str:
    """Return the digest of the code behind modules of this package.

    >>> len(code_digest(frozenset({"selftrain.theory.solve"})))
    64
    """
    files = set(_with_equations()) if PACKAGE in modules else set[Path]()
    for name in modules - {PACKAGE}:
        place = ROOT.joinpath(*name.split(".")[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        check_imports(file, WITHOUT_EQUATIONS)
        files.update(sources(file, WITHOUT_EQUATIONS))
    found = [f"{file.relative_to(ROOT)}\n{_tree_digest(file)}" for file in sorted(files)]
    return hashlib.sha256("".join(found).encode()).hexdigest()


@cache
def fingerprint() -> str:
    """Return the digest of all files with equations, which every process of a sweep must share."""
    files = [(str(one.relative_to(ROOT)), one.read_bytes()) for one in _with_equations()]
    return hashlib.sha256(repr(files).encode()).hexdigest()


def _with_equations() -> list[Path]:
    files = ((file, file.relative_to(ROOT).parts[0]) for file in sorted(ROOT.rglob("*.py")))
    return [file for file, part in files if part not in WITHOUT_EQUATIONS]


@cache
def _tree_digest(file: Path) -> str:
    return hashlib.sha256(syntax(file.read_text(encoding="utf-8")).encode()).hexdigest()


def syntax(source: str) -> str:
    """Return the syntax tree of a source without its docstrings.

    >>> syntax('def f():\\n    "Says."\\n    return 1  # one') == syntax("def f(): return 1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                    node.body = rest or [ast.Pass()]
    return ast.dump(tree)
