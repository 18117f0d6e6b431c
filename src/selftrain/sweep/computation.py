"""What a point is: a pure function, the quantities it returns, and the code its values depend on.

A stored value may be used again only if the code that would compute it now is the code that computed
it. The key of a point is therefore a digest of: the name of the function, its `version`, its
parameters, the code of the module it is defined in, and the code of the engines it stands on, with the
words (`Problem`, `Recipe`, losses, labelers) that they all speak. Code means the syntax tree: comments,
docstrings and layout do not count. Releases of numpy and the like are no part of it.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from .grid import Point

PACKAGE = Path(__file__).parents[1]
WORDS = ("fields.py", "labelers.py", "losses.py", "problem.py", "recipe.py")


@dataclass(frozen=True)
class Output:
    """A quantity that every point returns.

    Attributes:
        symbol: as the paper writes it, in LaTeX.
        dims: names of its own dimensions; the output named like one, if there is any, is its
            coordinate.
        unit: all quantities of the theory are pure numbers, hence "1".
    """

    symbol: str
    dims: tuple[str, ...] = ()
    unit: str = "1"


def _a_moment(**_: Any) -> float:
    return 0.05


@dataclass(frozen=True)
class Computation:
    """A function of plain parameters that returns numbers and arrays by name.

    Arguments:
        function: called with the parameters of a point as keywords; the same parameters must give
            the same values, in any process.
        outputs: what it returns.
        version: raise it when the function means something else than before.
        engines: folders and files of this package its values depend on ("theory", ...).
        seconds: about how long a point takes, from its parameters: it orders the work, puts
            cheap points together, and makes the time left an honest guess.
    """

    function: Callable[..., Mapping[str, Any]]
    outputs: Mapping[str, Output]
    version: int = 1
    engines: tuple[str, ...] = ()
    seconds: Callable[..., float] = field(default=_a_moment)

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def key(self, point: Point) -> str:
        """The digest under which the values of a point are stored."""
        told = {
            "function": self.name,
            "version": self.version,
            "code": code_digest(self.function, self.engines),
            "parameters": point,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:40]


@lru_cache
def code_digest(function: Callable[..., Any], engines: tuple[str, ...]) -> str:
    """Digest of the code that the values of a function depend on."""
    digest = hashlib.sha256(_tree(_source(function)).encode())
    files = [PACKAGE / name for name in WORDS] if engines else []
    for engine in engines:
        place = PACKAGE / engine
        files += [place] if place.is_file() else sorted(place.rglob("*.py"))
    for file in files:
        digest.update(_file_digest(file))
    return digest.hexdigest()


@cache
def _file_digest(file: Path) -> bytes:
    return hashlib.sha256(_tree(file.read_text(encoding="utf-8")).encode()).digest()


def _source(function: Callable[..., Any]) -> str:
    """The module of a function; the function alone if it lives in a script or a notebook."""
    module = inspect.getmodule(function)
    if module is None or module.__name__ == "__main__":
        return textwrap.dedent(inspect.getsource(function))
    return inspect.getsource(module)


def _tree(source: str) -> str:
    """The syntax tree of a source without its docstrings.

    >>> _tree('def f():\\n    "Says."\\n    return 1  # one') == _tree("def f(): return 1")
    True
    >>> _tree("x = 1") == _tree("x = 2")
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
