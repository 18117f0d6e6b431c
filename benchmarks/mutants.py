"""Do the tests notice a wrong formula? Small faults are put into the code, one at a time.

A fault (a mutant) changes one operator, comparison, number or constant of one file. Tests that fail
kill it. One that survives is either a change that no result can show, or a missing test.

    python benchmarks/mutants.py --count 120 --seed 1 --out mutants.csv simulation/frame
    python benchmarks/mutants.py --count 200 --seed 1 --out mutants.csv theory/step theory/engines

Kernels run here as plain Python: compiling anew for every mutant would take a minute. The tests are
those of `TESTS` that pass in this way within `--each` seconds. Every mutant runs in a process of
its own, a copy of this one, so that nothing has to be imported again.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numba
import pytest

ROOT = Path(__file__).resolve().parents[1]

TESTS = {
    "simulation": ("tests/simulation/frame", "tests/simulation/test_failures.py"),
    "theory": (
        "tests/evidence/test_reference.py",
        "tests/theory/engines/test_squared.py",
        "tests/theory/step",
        "tests/theory/test_solve.py",
        "tests/theory/test_two_losses.py",
    ),
}
"""Where the tests of a package are."""

SHARED = ("mpmath", "pandas", "scipy.integrate", "scipy.optimize", "scipy.special",
          "scipy.stats", "sklearn.linear_model", "xarray")  # fmt: skip
"""Imported once, before processes are made."""

PATIENCE, GRACE = 4.0, 2.0
"""A test that takes so many times its usual time, and these seconds, has noticed the fault."""

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""Comparisons are reversed: `<` to `<=` would change nothing for numbers that are never equal."""

NAMES = {"min": "max", "max": "min", "sin": "cos", "exp": "expm1", "log": "log1p"}


class Mutant(NamedTuple):
    """One fault: the file, the place of its node in a walk over the tree, and what it changes."""

    file: str
    node: int
    line: int
    before: str
    after: str


def mutants(file: Path) -> Iterator[Mutant]:
    """All faults that this script can put into a file."""
    source = file.read_text()
    for place, node in enumerate(_formulas(ast.parse(source))):
        before = ast.unparse(node)
        if _change(node):
            yield Mutant(str(file), place, node.lineno, before, ast.unparse(node))


def _formulas(tree: ast.Module) -> list[Any]:
    """Expressions and assignments, without annotations, decorators and texts."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            skipped = [*node.decorator_list, node.returns, *(a.annotation for a in arguments)]
        elif isinstance(node, ast.AnnAssign):
            skipped = [node.annotation]
        else:
            continue
        left_out.update(id(part) for top in skipped if top for part in ast.walk(top))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.expr, ast.AugAssign)) and id(node) not in left_out
    ]


def _change(node: Any) -> bool:
    """Put the fault into a node; False where this script knows none."""
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)) and type(node.op) in OPERATORS:
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        node.ops[0] = OPERATORS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.Name) and node.id in NAMES:
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        node.value = 2 * node.value or 1.0
    else:
        return False
    return True


def mutated(mutant: Mutant) -> str:
    """The text of the file with the fault in it."""
    tree = ast.parse(Path(mutant.file).read_text())
    _change(_formulas(tree)[mutant.node])
    return ast.unparse(tree)


class Watch:
    """A pytest plugin: the chosen tests only, the quickest first, each within its time."""

    def __init__(self, limits: dict[str, float] | None, each: float):
        self.limits, self.each = limits, each
        self.seconds: dict[str, float] = {}
        self.killer = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.limits is not None:
            limits = self.limits
            items[:] = sorted(
                (item for item in items if item.nodeid in limits),
                key=lambda item: limits[item.nodeid],
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        def late(*_: Any) -> None:
            raise TimeoutError

        usual = self.each if self.limits is None else self.limits[item.nodeid]
        limit = usual if self.limits is None else PATIENCE * usual + GRACE
        signal.signal(signal.SIGVTALRM, late)
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        try:
            return (yield)
        except Exception as error:  # without its traceback, which takes long to write
            raise AssertionError(type(error).__name__) from None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration
        elif report.failed:
            self.killer = report.nodeid


def trial(
    tree: Path, tests: list[str], limits: dict[str, float] | None, each: float
) -> dict[str, Any]:
    """Run tests on the code of `tree`, in a copy of this process: those that pass, with their
    seconds, and the first that fails.
    """
    answer = tree / "answer.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        try:
            _run(tree, tests, Watch(limits, each))
        finally:
            os._exit(0)
    usual = sum(limits.values()) if limits else 600.0
    deadline = time.monotonic() + 3 * usual + 60.0
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.05)
    if not answer.exists():
        return {"seconds": {}, "killer": "the process did not end"}
    return dict(json.loads(answer.read_text()))


def _run(tree: Path, tests: list[str], watch: Watch) -> None:
    """The part of `trial` in the new process: write down what the tests say."""
    with open(tree / "log.txt", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.path.insert(0, str(tree))
    options = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-W",
        "ignore::RuntimeWarning",
        f"--rootdir={ROOT}",
    ]
    options += [] if watch.limits is None else ["-x"]
    code = pytest.main([*options, *tests], plugins=[watch])
    killer = watch.killer or ("" if code in (0, 1) else "the tests cannot be loaded")
    (tree / "answer.json").write_text(json.dumps({"seconds": watch.seconds, "killer": killer}))


def prepare(package: Path) -> None:
    """Import what no mutant changes; the random numbers stay compiled, the rest is plain Python."""
    sys.dont_write_bytecode = True
    for name in SHARED:
        import_module(name)
    sys.path.insert(0, str(package.parent))
    normals = import_module("selftrain.simulation.random.normals")
    import numpy as np

    normals.fill_normals(np.uint64(1), 0, 0, np.empty(4, np.float32))
    numba.config.DISABLE_JIT = 1


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("rooms", nargs="+", help="folders of src/selftrain")
    arguments.add_argument("--count", type=int, default=100, help="how many, drawn at random")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--each", type=float, default=2.0, help="CPU seconds of a test")
    arguments.add_argument("--out", type=Path, default=Path("mutants.csv"))
    chosen = arguments.parse_args()
    package = ROOT / "src" / "selftrain"
    files = sorted(file for room in chosen.rooms for file in (package / room).rglob("*.py"))
    everything = [mutant for file in files for mutant in mutants(file)]
    sample = random.Random(chosen.seed).sample(everything, min(chosen.count, len(everything)))
    tests = [
        path for name in sorted({r.split("/")[0] for r in chosen.rooms}) for path in TESTS[name]
    ]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        shutil.copytree(package, tree / "selftrain", ignore=shutil.ignore_patterns("__pycache__"))
        prepare(tree / "selftrain")
        limits = trial(tree, tests, None, chosen.each)["seconds"]
        print(f"{len(everything)} mutants, {len(sample)} drawn; {len(limits)} tests,"
              f" {sum(limits.values()):.0f} s", flush=True)  # fmt: skip
        with open(chosen.out, "w", newline="") as out:
            table = csv.writer(out)
            table.writerow(["file", "line", "before", "after", "killed by"])
            survived = 0
            for number, mutant in enumerate(sample, 1):
                home = tree / "selftrain" / Path(mutant.file).relative_to(package)
                kept = home.read_text()
                home.write_text(mutated(mutant))
                killer = trial(tree, tests, limits, chosen.each)["killer"]
                home.write_text(kept)
                survived += not killer
                name = Path(mutant.file).relative_to(package)
                table.writerow([name, mutant.line, mutant.before, mutant.after, killer])
                out.flush()
                if not killer:
                    print(f"survived: {name}:{mutant.line}  {mutant.before}  ->  {mutant.after}")
                if number % 20 == 0:
                    print(f"{number} of {len(sample)}: {survived} survived", flush=True)


if __name__ == "__main__":
    main()
