"""Digests of this package's source code: stored values are not used after it has changed."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

from ..runtime.source_files import sources, sources_digest
from .introspection import PACKAGE

ROOT = Path(__file__).parents[1]
NOT_COMPUTING = ("cli", "explorer", "plots", "runtime", "sweeps", "__init__.py")
"""Parts of the package that no computed value depends on."""


@cache
def code_digest(modules: frozenset[str]) -> str:
    """Return the digest of modules of this package and of all that they import from it.

    Comments, docstrings and layout do not count.

    >>> len(code_digest(frozenset({"selftrain.theory.solve"})))
    64
    """
    files = set(_computing_files()) if PACKAGE in modules else set[Path]()
    for name in modules - {PACKAGE}:
        place = ROOT.joinpath(*name.split(".")[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        files.update(sources(file, NOT_COMPUTING))
    found = [f"{file.relative_to(ROOT)}\n{_tree_digest(file)}" for file in sorted(files)]
    return hashlib.sha256("".join(found).encode()).hexdigest()


@cache
def package_digest() -> str:
    """Return the digest of all files that compute; all processes of a sweep must have the same."""
    return sources_digest(_computing_files(), ROOT)


def _computing_files() -> list[Path]:
    files = sorted(ROOT.rglob("*.py"))
    return [file for file in files if file.relative_to(ROOT).parts[0] not in NOT_COMPUTING]


@cache
def _tree_digest(file: Path) -> str:
    return hashlib.sha256(syntax(file.read_text(encoding="utf-8")).encode()).hexdigest()


def syntax(source: str) -> str:
    """Return the syntax tree of a source without its docstrings, as text.

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
