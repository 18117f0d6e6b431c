"""No cycle between modules: who imports whom, read from the source without running it.

`lint-imports` checks packages; here modules are checked. An import inside a function counts, one
under `TYPE_CHECKING` does not. Drawing is imported by the call that draws (CONTRIBUTING.md), so an
import of `plots` inside a function does not count either. `python tests/test_imports.py` prints the
cycles of every package.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from importlib.util import resolve_name
from itertools import groupby
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

SOURCE = Path(__file__).parents[1] / "src" / "selftrain"

Graph = dict[str, set[str]]


def imports(tree: ast.Module, package: str, modules: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yield the modules that a module of a package imports, and whether inside a function.

    `from a import b` is an import of a.b if that is a module, else of a.
    """
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                module = f"{home}.{alias.name}"
                yield module if module in modules else home, inside
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += [(child, inside) for child in node.orelse]
        else:
            inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def graph(source: Path) -> Graph:
    """Return the modules of a package, each with the modules of the package that it imports."""
    files = {_name(source, file): file for file in source.rglob("*.py")}
    found: Graph = {}
    for name, file in files.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        found[name] = {
            other
            for other, inside in imports(ast.parse(file.read_text("utf-8")), package, files)
            if other in files and not (inside and other.startswith(f"{source.name}.plots"))
        }
    return found


def cycles(found: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one module, the largest first."""
    names = sorted(found)
    place = {name: at for at, name in enumerate(names)}
    pairs = [(place[name], place[other]) for name, others in found.items() for other in others]
    rows, columns = np.array(pairs, dtype=int).reshape(-1, 2).T
    matrix = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(matrix, connection="strong")
    order = sorted(range(len(names)), key=lambda at: labels[at])
    groups = [[names[at] for at in some] for _, some in groupby(order, key=lambda at: labels[at])]
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def _name(source: Path, file: Path) -> str:
    parts = file.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_module_of_theory_is_in_a_cycle() -> None:
    within = {name for group in cycles(graph(SOURCE)) for name in group}
    theory = {name for name in within if name.startswith("selftrain.theory.")}
    assert not theory, "\n".join(sorted(theory))


def test_imports_in_functions_count_and_those_for_types_do_not(tmp_path: Path) -> None:
    package = tmp_path / "made"
    (package / "plots").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "a": "def f():\n    from .b import g",
        "b": "from . import c",
        "c": "from __future__ import annotations\nimport made.a",
        "d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .e import E",
        "e": "from .d import f",
        "g": "def f():\n    from .plots.h import draw",
        "plots/__init__": "",
        "plots/h": "from ..g import f",
    }.items():
        (package / f"{name}.py").write_text(text)
    assert cycles(graph(package)) == [["made.a", "made.b", "made.c"]]
    (package / "d.py").write_text("from .e import E")
    assert cycles(graph(package))[1] == ["made.d", "made.e"]


def test_the_graph_of_the_package_is_not_empty() -> None:
    found = graph(SOURCE)
    assert "selftrain.problem" in found["selftrain.theory.solve"]
    assert len(found) > 100


if __name__ == "__main__":
    for cycle in cycles(graph(SOURCE)):
        print(f"{len(cycle)} modules:", *cycle, sep="\n    ")
