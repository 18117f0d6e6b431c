"""The code of this package behind a stored value is found by its imports, all of it and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from selftrain import SelfTrainError, simulate, solve
from selftrain.sweeps.identity import Source, sources, syntax


def modules(function: object) -> set[str]:
    module = sys.modules[function.__module__]
    return {one.module for one in sources(Source(module.__name__, Path(str(module.__file__))))}


def test_every_module_that_solving_loads_is_part_of_its_digest() -> None:
    """What the interpreter itself loads for a run, engines that are imported on demand included."""
    script = (
        "import sys; from selftrain import Problem, Recipe, solve;"
        "[solve(Problem(.5, 2., .4, .5, steps=1, loss=loss), Recipe(sharpness=sharp))"
        " for loss in ('logistic', 'squared') for sharp in (1.0, 2.0)];"
        "print(*(name for name in sys.modules if name.startswith('selftrain.')))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    ).stdout.split()
    outside = {name for name in loaded if name.split(".")[1] in ("runtime",)}
    assert set(loaded) - outside <= modules(solve)


def test_drawing_and_storing_are_no_part_of_it() -> None:
    rooms = {name.split(".")[1] for name in modules(simulate)}
    assert rooms.isdisjoint({"plots", "sweeps", "cli", "report", "bench", "tuning", "paper"})


def test_an_import_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "figure.py"
    path.write_text("from ..theroy.solve import solve\n")
    with pytest.raises(SelfTrainError, match=r"imports selftrain\.theroy\.solve"):
        sources(Source("selftrain.paper.figure", path))


def test_a_computed_import_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "figure.py"
    path.write_text("from importlib import import_module\nx = import_module('.' + __name__)\n")
    with pytest.raises(SelfTrainError, match="computed import"):
        sources(Source("selftrain.paper.figure", path))


def test_imports_for_type_checkers_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "figure.py"
    path.write_text("if TYPE_CHECKING:\n    from ..theory.solve import solve\n")
    assert "selftrain.theory.solve" not in {
        one.module for one in sources(Source("selftrain.paper.figure", path))
    }


def test_syntax_leaves_out_what_is_no_code() -> None:
    assert syntax('"""Says."""\nx = 1  # one') == syntax("x = 1") != syntax("x = 2")
    for first in ("def f(): return {!r}", "def f(): x = {!r}", "x = {!r}"):
        assert syntax(first.format("a")) != syntax(first.format("b"))
