"""The code a stored value depends on is found by its imports, all of it and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from selftrain import SelfTrainError, simulate, solve
from selftrain.sweep.code import Source, code_digest, sources, syntax

DIGEST = """
import sys
sys.path.insert(0, sys.argv[1])
import own.jobs.points as points
from selftrain.sweep.code import code_digest
print(code_digest(points.point))
"""


def digest_of(folder: Path) -> str:
    """The digest of own.jobs.points.point as a new process sees it."""
    command = [sys.executable, "-c", DIGEST, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_change_two_packages_away_changes_the_digest_and_a_comment_does_not(
    tmp_path: Path,
) -> None:
    files = {
        "own/__init__.py": "",
        "own/jobs/__init__.py": "",
        "own/jobs/points.py": (
            "def point(x):\n    from ..law import rule\n    return rule.value(x)\n"
        ),
        "own/law/__init__.py": "",
        "own/law/rule.py": "from own.deep.constant import C\ndef value(x): return C * x\n",
        "own/deep/__init__.py": "",
        "own/deep/constant.py": "C = 2\n",
        "own/deep/aside.py": "D = 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = digest_of(tmp_path)
    (tmp_path / "own/deep/constant.py").write_text('"""Says."""\nC = 2  # two\n')
    (tmp_path / "own/deep/aside.py").write_text("D = 3\n")
    assert digest_of(tmp_path) == before
    (tmp_path / "own/deep/constant.py").write_text("C = 3\n")
    assert digest_of(tmp_path) != before


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
    assert rooms.isdisjoint({"plots", "sweep", "cli", "report", "bench", "tuning", "paper"})


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


SCRIPT = """
from selftrain.sweep.code import code_digest
SCALE = {scale}
def helper(x): return SCALE * x
def point(x): return {{"y": helper(x)}}
def other(x): return {other}
print(code_digest(point))
"""


def test_a_function_of_a_script_counts_with_what_it_uses(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    seen = []
    for scale, other in ((1, 1), (1, 2), (2, 2)):
        script.write_text(SCRIPT.format(scale=scale, other=other))
        command = [sys.executable, str(script)]
        seen.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert seen[0] == seen[1] != seen[2]


def test_syntax_leaves_out_what_is_no_code() -> None:
    assert syntax('"""Says."""\nx = 1  # one') == syntax("x = 1") != syntax("x = 2")
    assert code_digest(solve) == code_digest(solve)
