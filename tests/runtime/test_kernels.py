"""Cached machine code does not outlive the sources it was made from, wherever it is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import codegen

from selftrain.runtime import kernels
from selftrain.runtime.kernels import cache_folder, kernel
from selftrain.runtime.source_files import package_root, sources

RULE = "NODES = {nodes}\n"
AVERAGE = """
from typing import TYPE_CHECKING
from selftrain.runtime.kernels import kernel
from ..rules.rule import (
    NODES,
)
if TYPE_CHECKING:
    from ..words import WORD

@kernel()
def average(x):
    return NODES * x
"""
SOLVER = """
from selftrain.runtime.kernels import kernel
from ..averages.average import average

@kernel()
def solve(x):
    return average(x) + 0.5
"""
ASK = (
    "from physics.solvers.solver import solve; print(solve(2.0),"
    " sum(solve.stats.cache_hits.values()))"
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in which a kernel stands on a constant two packages away."""
    root = tmp_path / "physics"
    for folder, name, text in (
        ("", "words", "WORD = 1\n"),
        ("rules", "rule", RULE.format(nodes=3)),
        ("averages", "average", AVERAGE),
        ("solvers", "solver", SOLVER),
    ):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "__init__.py").touch()
        (root / folder / f"{name}.py").write_text(text)
    return root


def ask(package: Path, **settings: str) -> tuple[float, int]:
    """What the kernel of the outer package says in a new process, and how often the cache
    served.
    """
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path]), **settings}
    told = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True
    )
    value, hits = told.stdout.split()
    assert told.stderr == ""
    return float(value), int(hits)


@pytest.mark.parametrize("place", ["package", "numba's folder", "user's cache"])
def test_a_change_two_packages_away_is_seen(package: Path, tmp_path: Path, place: str) -> None:
    settings: dict[str, str] = {}
    if place == "numba's folder":
        settings["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    if place == "user's cache":
        (package / "__pycache__").touch()  # a file: no folder can be made there, for root neither
        settings["XDG_CACHE_HOME"] = str(tmp_path / "home")
    assert ask(package, **settings) == (6.5, 0)
    assert ask(package, **settings) == (6.5, 1)
    (package / "rules" / "rule.py").write_text(RULE.format(nodes=5))
    assert ask(package, **settings) == (10.5, 0)
    where = {
        "package": package,
        "numba's folder": tmp_path / "cache",
        "user's cache": tmp_path / "home",
    }
    kept = [path.parent.name.rpartition("-")[0] for path in where[place].rglob("*.nbc")]
    assert sorted(kept) == [
        "averages.average",
        "solvers.solver",
    ]  # of the old sources nothing is left


def test_a_word_that_is_imported_for_its_type_does_not_count(package: Path) -> None:
    names = {path.name for path in sources(package / "solvers" / "solver.py")}
    assert names - {"__init__.py"} == {"average.py", "rule.py", "solver.py"}
    assert package_root(package / "solvers" / "solver.py") == package


def test_a_record_that_is_not_imported_is_refused(package: Path) -> None:
    """Its fields could be exchanged without the kernel being compiled anew."""
    (package / "records.py").write_text(
        "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: float\n    b: float\n"
    )
    kernel = (
        "from selftrain.runtime.kernels import kernel\n{}\n"
        "@kernel()\ndef f(pair):\n    return pair.b\n"
    )
    call = "from physics.records import Pair; from physics.use import f; print(f(Pair(1.0, 2.0)))"
    for line, expected in (("", "import it"), ("from .records import Pair", "2.0")):
        (package / "use.py").write_text(kernel.format(line))
        done = subprocess.run(
            [sys.executable, "-c", call],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert expected in done.stdout + done.stderr


def test_without_any_folder_kernels_still_run(package: Path, tmp_path: Path) -> None:
    (package / "__pycache__").touch()
    (tmp_path / "home").touch()
    for _ in range(2):
        assert ask(package, XDG_CACHE_HOME=str(tmp_path / "home")) == (6.5, 0)


def test_every_kernel_of_this_package_has_a_folder_of_its_own() -> None:
    import selftrain

    root = Path(selftrain.__file__).parent
    files = [path for path in root.rglob("*.py") if "@kernel(" in path.read_text(encoding="utf-8")]
    files.remove(root / "runtime" / "kernels.py")
    folders = {cache_folder(file) for file in files}
    assert len(folders) == len(files) > 3
    others = [
        path for path in root.rglob("*.py") if "njit(cache" in path.read_text(encoding="utf-8")
    ]
    assert others == []


DAMAGED = """
import sys
from pathlib import Path

def solve():
    for name in [name for name in sys.modules if name.startswith("physics")]:
        del sys.modules[name]
    from physics.solvers.solver import solve
    return solve(2.0), sum(solve.stats.cache_hits.values())

damages = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "garbage": lambda data: bytes(range(256)) * 20,
    "one bit": lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
}
assert solve() == (6.5, 0)
assert solve() == (6.5, 1)
for name, damage in damages.items():
    files = list(Path(sys.argv[1]).rglob("*.nbc"))
    assert len(files) == 2, files
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    print(name, *solve(), *solve())
"""


def test_damaged_files_are_compiled_again_and_overwritten(package: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", DAMAGED, str(package)],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": "",
            "PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stderr == ""
    lines = [line.rsplit(maxsplit=4)[1:] for line in told.stdout.splitlines()]
    assert lines == [["6.5", "0", "6.5", "1"]] * 4


def _compile(package: Path, kind: str, barrier: object) -> None:
    sys.path.insert(0, str(package.parent))
    from physics.solvers.solver import solve

    barrier.wait()
    solve(np.dtype(kind).type(2))


def test_processes_that_compile_at_once_keep_every_result(
    package: Path,
) -> None:
    kinds = ["f4", "f8", "i4", "i8"]
    context = get_context("spawn")
    barrier = context.Barrier(len(kinds))
    workers = [context.Process(target=_compile, args=(package, kind, barrier)) for kind in kinds]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * len(kinds)
    loaded = (
        "import numpy as np; from physics.solvers.solver import solve\n"
        f"for kind in {kinds}: print(float(solve(np.dtype(kind).type(2))))\n"
        "print(sum(solve.stats.cache_misses.values()))"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path]),
    }
    told = subprocess.run(
        [sys.executable, "-c", loaded], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["6.5"] * len(kinds) + ["0"]


CALLED = """
@kernel()
def sum_of_copy(values):
    room = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        room[i] = values[i]
    return room.sum()

@kernel(allocates=False)
def twice(values):
    return 2.0 * sum_of_copy(values)
"""


def test_a_kernel_that_makes_arrays_may_be_called_by_one_that_does_not() -> None:
    """Numba hands options of a kernel on to those it calls, where these have none of their own.
    The source is in no file, so that it is compiled and not taken from a cache.
    """
    names: dict[str, Any] = {"kernel": kernel, "np": np}
    exec(CALLED, names)
    assert names["twice"](np.arange(4.0)) == 12.0


SAYS = """
from selftrain.runtime.kernels import kernel

@kernel()
def part(x):
    print("part", x, "of a kernel")
    if x > 5.0:
        raise ValueError("too large", x)
    return 2.0 * x

@kernel()
def whole(x):
    return part(x) + 1.0
"""
SAID = "part 2.0 of a kernel\n5.0\npart 7.0 of a kernel\n('too large', 7.0)\n"


def test_a_part_may_print_and_raise(tmp_path: Path) -> None:
    """Both need the Python objects of the part (numba's environment): compiled with a whole
    kernel, loaded with it, and loaded to be compiled into one.
    """
    (tmp_path / "says.py").write_text(SAYS)
    asked = (
        "from says import whole\nprint(whole(2.0))\n"
        "try: whole(7.0)\nexcept ValueError as error: print(error)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    for attempt in range(3):
        told = subprocess.run(
            [sys.executable, "-c", asked],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert told.stdout == SAID
        if attempt == 1:
            (whole,) = tmp_path.rglob("whole-*-whole-*.nbc")
            whole.unlink()


def test_a_numba_whose_methods_have_other_names_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels.numba_is_known()
    monkeypatch.delattr(codegen.CPUCodeLibrary, "_finalize_final_module")
    assert not kernels.numba_is_known.__wrapped__()


def test_kernels_run_without_the_own_way_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "numba_is_known", lambda: False)
    names: dict[str, Any] = {"kernel": kernel, "np": np}
    exec(CALLED, names)
    assert names["twice"](np.arange(4.0)) == 12.0
