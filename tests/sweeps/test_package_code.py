"""The code of this package behind a stored value is found by its imports, all of it and no more."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from selftrain import SelfTrainError, bayes_error, continuum, optimize, simulate, solve
from selftrain.runtime.source_files import _NOT_LOADED, sources
from selftrain.sweeps.package_code import NOT_COMPUTING, ROOT, syntax


def file_of(function: Callable[..., object]) -> Path:
    return Path(str(sys.modules[function.__module__].__file__))


def modules(function: Callable[..., object]) -> set[str]:
    found = [one.relative_to(ROOT.parent) for one in sources(file_of(function), NOT_COMPUTING)]
    return {".".join(one.with_suffix("").parts).removesuffix(".__init__") for one in found}


@pytest.fixture
def figure(tmp_path: Path) -> Path:
    """Return a module of a small package, `made.paper.figure`, beside `made.theory.solve`."""
    for folder in ("made", "made/paper", "made/theory"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "made" / "theory" / "solve.py").touch()
    return tmp_path / "made" / "paper" / "figure.py"


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
    assert rooms.isdisjoint({"plots", "sweeps", "cli", "bench", "tuning", "paper"})


def test_an_import_that_leads_nowhere_is_refused(figure: Path) -> None:
    figure.write_text("from ..theroy.solve import solve\n")
    with pytest.raises(SelfTrainError, match=r"imports made\.theroy\.solve"):
        sources(figure)


def test_no_file_that_computes_imports_by_a_computed_name() -> None:
    """Such an import cannot be followed."""
    computed = re.compile(r"^[^#\n]*\b(?:import_module|__import__)\(", re.MULTILINE)
    begun = [file_of(task) for task in (solve, optimize, simulate, continuum, bayes_error)]
    begun += (ROOT / "paper" / "computations").glob("*.py")
    reached = {one for file in begun for one in sources(file, NOT_COMPUTING)}
    assert len(reached) > 100
    assert [one for one in reached if computed.search(_NOT_LOADED.sub("", one.read_text()))] == []


def test_imports_for_type_checkers_do_not_count(figure: Path) -> None:
    figure.write_text("if TYPE_CHECKING:\n    from ..theory.solve import solve\n")
    assert "solve.py" not in {one.name for one in sources(figure)}
    other = figure.with_name("other.py")
    other.write_text("def f():\n    from ..theory.solve import solve\n")
    assert "solve.py" in {one.name for one in sources(other)}


def test_syntax_leaves_out_what_is_no_code() -> None:
    assert syntax('"""Says."""\nx = 1  # one') == syntax("x = 1") != syntax("x = 2")
    for first in ("def f(): return {!r}", "def f(): x = {!r}", "x = {!r}"):
        assert syntax(first.format("a")) != syntax(first.format("b"))
