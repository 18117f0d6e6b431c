"""Which code of this package the values of a point depend on, found by following imports.

A stored value may be used again only if the code that would compute it now is the code that
computed it. A user's own code is identified by value (`identity`); the package counts by its files.
`code_digest` starts at the modules that were reached and follows every import inside this package,
however deep and wherever the import stands. An import that leads nowhere is an error, so nothing
can be left out by a wrong name. Code means the syntax tree: comments, docstrings, layout and
imports for type checkers do not count.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import SelfTrainError

PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]

WITHOUT_EQUATIONS = ("cli", "explorer", "plots", "report", "runtime", "sweep")
"""Rooms that compute no value of a point: imports into them are not followed."""

TASKS = f"{PACKAGE}.sweep.tasks"
"""The functions of points, which do."""


class Source(NamedTuple):
    """A file of code: the name of its module, and whether it is a package."""

    module: str
    path: Path

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        whole = self.path.name == "__init__.py"
        return self.module if whole else self.module.rpartition(".")[0]


@cache
def code_digest(modules: frozenset[str]) -> str:
    """Digest of the code behind modules of this package.

    >>> len(code_digest(frozenset({"selftrain.theory.solve"})))
    64
    """
    digest = hashlib.sha256()
    for file in _files(modules):
        digest.update(file.module.encode() + b"\n" + _file_digest(file.path))
    return digest.hexdigest()


Fingerprint = tuple[tuple[str, str], ...]
"""Modules and the digests of their files, byte by byte."""


@cache
def fingerprint(modules: frozenset[str]) -> Fingerprint:
    """What another process must have on its disk to compute the same with these modules."""
    return tuple((file.module, _bytes_digest(file.path)) for file in _files(modules))


@cache
def first_difference(there: Fingerprint) -> str | None:
    """The first module whose file is another here, None if all are the same."""
    for module, digest in there:
        if _bytes_digest(_path_of(module)) != digest:
            return module
    return None


def _path_of(module: str) -> Path:
    place = ROOT.joinpath(*module.split(".")[1:])
    inside = place / "__init__.py"
    return inside if inside.is_file() else place.with_suffix(".py")


def _bytes_digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "not there"


@cache
def _files(modules: frozenset[str]) -> tuple[Source, ...]:
    """All files behind modules; the package itself stands for every one with equations."""
    found: set[Source] = set()
    for module in modules:
        if module == PACKAGE:
            found.update(_package_files())
        else:
            found |= sources(Source(module, _path_of(module)))
    return tuple(sorted(found))


def sources(root: Source) -> set[Source]:
    """The file of a module and of everything it imports, directly or not."""
    found = {root}
    waiting = [root]
    while waiting:
        source = waiting.pop()
        for name in _imports(source):
            if name == PACKAGE:
                found.update(_package_files())
                continue
            for one in _followed(name, source):
                if one not in found:
                    found.add(one)
                    waiting.append(one)
    return found


@cache
def _file_digest(path: Path) -> bytes:
    return hashlib.sha256(syntax(path.read_text(encoding="utf-8")).encode()).digest()


def _package_files() -> Iterator[Source]:
    """Every file of this package that may hold equations."""
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] not in WITHOUT_EQUATIONS:
            names = parts[:-1] if parts[-1] == "__init__" else parts
            yield Source(".".join((PACKAGE, *names)), path)


def _followed(name: str, source: Source) -> Iterator[Source]:
    """The files behind an imported dotted name: none if it is a library."""
    if not name.startswith(f"{PACKAGE}."):
        return
    if name.split(".")[1] not in WITHOUT_EQUATIONS or name.startswith(TASKS):
        yield from _inside(name, source)


def _inside(name: str, source: Source) -> Iterator[Source]:
    """A module of this package, or the module that a public name comes from."""
    parts = name.split(".")[1:]
    for depth in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:depth])
        module = ".".join((PACKAGE, *parts[:depth]))
        if (place / "__init__.py").is_file():
            yield Source(module, place / "__init__.py")
            return
        if place.with_suffix(".py").is_file():
            yield Source(module, place.with_suffix(".py"))
            return
    public = getattr(importlib.import_module(PACKAGE), parts[0], None)
    home = getattr(public, "__module__", None) or ""
    if not home.startswith(f"{PACKAGE}."):
        raise SelfTrainError(f"{source.path}: it imports {name}, which is not there")
    yield from _inside(home, source)


@cache
def _imports(source: Source) -> tuple[str, ...]:
    """Dotted names that a file imports, at its top or in its functions."""
    names: set[str] = set()
    for node in _nodes(ast.parse(source.path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute("." * node.level + (node.module or ""), source)
            names.update(
                base if alias.name == "*" else f"{base}.{alias.name}" for alias in node.names
            )
        elif isinstance(node, ast.Call) and _calls_import(node):
            names.add(_absolute(_constant(node, source), source))
    parents = source.module.split(".")
    names.update(".".join(parents[:depth]) for depth in range(2, len(parents)))
    return tuple(sorted(names))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs: not those under `if TYPE_CHECKING`, nor what a package gives only when
    asked.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for other in node.orelse:
                yield other
                yield from _nodes(other)
            continue
        yield node
        yield from _nodes(node)


def _calls_import(node: ast.Call) -> bool:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return name in ("import_module", "__import__")


def _constant(node: ast.Call, source: Source) -> str:
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    raise SelfTrainError(
        f"{source.path}, line {node.lineno}: a computed import cannot be followed; "
        "name the module in the source, so that stored points know what they depend on"
    )


def _absolute(name: str, source: Source) -> str:
    """A dotted name without leading dots."""
    if not name.startswith("."):
        return name
    rest = name.lstrip(".")
    up = len(name) - len(rest) - 1
    parents = source.package.split(".")
    base = ".".join(parents[: len(parents) - up])
    return f"{base}.{rest}" if rest else base


def syntax(source: str) -> str:
    """The syntax tree of a source without its docstrings.

    >>> syntax('def f():\\n    "Says."\\n    return 1  # one') == syntax("def f(): return 1")
    True
    >>> syntax("x = 1") == syntax("x = 2")
    False
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            node.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
