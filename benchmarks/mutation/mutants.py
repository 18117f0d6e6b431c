"""Do the tests notice a wrong formula? Small faults (mutants) are put into the code, one at a time.

A fault changes one operator, comparison, number or constant of one file (`faults.py`). A failing
test kills it. A survivor either changes no result, or shows that a test is missing.

    python -m benchmarks mutants --count 120 --seed 1 --out mutants.csv simulation/frame
    python -m benchmarks mutants --count 200 --seed 1 --out mutants.csv theory/step theory/averages

Kernels run as plain Python here: compiling them for every mutant would take a minute. A survey
first runs the tests of the package once, selects those that pass within `--each` seconds, and
records which functions each of them calls. For a mutant, the tests that call its function are run
until one fails, those of its folder and the fastest first. The tests are collected once: every
mutant is a fork of the process that has collected them. The same command resumes from `--survey`
and `--out`.
"""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from _pytest.runner import runtestprotocol

from ..options import parser
from .faults import Fault, faults, put

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "selftrain"

FURTHER_TESTS = {"theory": ("tests/evidence",)}
"""Further tests of a package, outside of the folder of `tests` with its name."""

PATIENCE, GRACE = 4.0, 2.0
"""A test has noticed the fault if it takes longer than this many times its usual time plus these
seconds."""

ASLEEP = 30.0
"""A process whose wall-clock time exceeds its limit of CPU seconds by this factor is considered
blocked."""

FAILED = 77
"""The exit code of a fork in which this script itself failed."""

TRACING = 1.5
"""Factor by which recording the called functions slows a test down, approximately."""


class Surveyed(NamedTuple):
    """A test, run without faults: its seconds, and the functions that it calls, as `file:name`."""

    seconds: float
    calls: list[str]


class Trials:
    """A pytest plugin that, instead of the tests, runs forks of this process with one fault each.

    Arguments:
        sample: the faults, in order.
        each: largest number of seconds of a test without faults.
        budget: largest number of seconds of all tests of a fault.
        survey: file of the survey; an existing one is continued.
        out: file of the results; an existing one is continued.
    """

    def __init__(self, sample: list[Fault], each: float, budget: float, survey: Path, out: Path):
        self._sample, self._each, self._budget = sample, each, budget
        self._survey, self._out = survey, out

    def pytest_sessionstart(self) -> None:
        """Make hypothesis repeat the same examples, and not shrink a failing one."""
        from hypothesis import Phase, settings  # pytest rewrites it first

        quick = (Phase.explicit, Phase.generate)
        settings.register_profile("faults", phases=quick, derandomize=True, database=None,
                                  deadline=None)  # fmt: skip
        settings.load_profile("faults")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        surveyed = self._tests(items)
        total = sum(test.seconds for test in surveyed.values())
        print(f"{len(surveyed)} of {len(items)} tests, {total:.0f} s", file=sys.stderr)
        done = set()
        if self._out.exists():
            with open(self._out, newline="") as found:
                done = {(row["file"], row["node"], row["owner"]) for row in csv.DictReader(found)}
        survived, begun = 0, time.monotonic()
        with open(self._out, "a", newline="") as out:
            table = csv.writer(out)
            if not done:
                table.writerow([*Fault._fields, "seconds", "tests", "killed by"])
            for number, fault in enumerate(self._sample, 1):
                where = str(Path(fault.file).relative_to(PACKAGE))
                if (where, str(fault.node), fault.owner) in done:
                    continue
                chosen = self._chosen(fault, surveyed)
                start = time.monotonic()
                trial = partial(_meet, fault, [items[name] for name in chosen], surveyed)
                answer = _apart(trial, self._patience(chosen, surveyed))
                killer = "the process did not end" if answer is None else answer
                seconds = time.monotonic() - start
                survived += not killer
                table.writerow([where, *fault[1:], f"{seconds:.1f}", len(chosen), killer])
                out.flush()
                if not killer:
                    print(f"survived {len(chosen)} tests: {where}:{fault.line}  {fault.before}  ->"
                          f"  {fault.after}", file=sys.stderr)  # fmt: skip
                if number % 20 == 0:
                    spent = time.monotonic() - begun
                    print(f"{number} of {len(self._sample)}: {survived} survived, {spent:.0f} s",
                          file=sys.stderr)  # fmt: skip
        return True

    def _patience(self, chosen: list[str], surveyed: dict[str, Surveyed]) -> float:
        """Return the seconds after which a mutant that still runs its tests counts as hanging."""
        return PATIENCE * sum(surveyed[name].seconds for name in chosen) + 10 * GRACE

    def _tests(self, items: dict[str, pytest.Item]) -> dict[str, Surveyed]:
        """Return the tests that pass, from the file of the survey or from running them."""
        known: dict[str, Any] = {}
        if self._survey.exists():
            known = dict(json.loads(line) for line in self._survey.read_text().splitlines())
        with open(self._survey, "a") as survey:
            for name, item in items.items():
                if name not in known:
                    limit = 2 * TRACING * self._each + GRACE
                    known[name] = _apart(partial(_look, item, self._each), limit)
                    survey.write(json.dumps([name, known[name]]) + "\n")
                    survey.flush()
        return {name: Surveyed(*test) for name, test in known.items() if test and name in items}

    def _chosen(self, fault: Fault, surveyed: dict[str, Surveyed]) -> list[str]:
        """Return the tests to run for a fault, as many as the budget allows.

        These are the tests that call its function; for a constant, those that call a function of a
        file in which the constant is known. Tests of the fault's own folder come first, and the
        fastest first among them.
        """
        place = f"{fault.file}:{fault.owner}"
        called = [name for name, test in surveyed.items() if place in test.calls]
        if not called:
            known = {
                module.__file__
                for name, module in list(sys.modules.items())
                if name.startswith("selftrain.") and hasattr(module, fault.owner.strip("()"))
            } | {fault.file}
            called = [
                name
                for name, test in surveyed.items()
                if any(call.rpartition(":")[0] in known for call in test.calls)
            ]
        room = Path(fault.file).relative_to(PACKAGE).parent

        def order(name: str) -> tuple[bool, float]:
            tests = Path(name.partition("::")[0]).parent.relative_to("tests")
            return not room.is_relative_to(tests), surveyed[name].seconds

        called.sort(key=order)
        spent = np.cumsum([surveyed[name].seconds for name in called])
        return called[: int(np.searchsorted(spent, self._budget)) + 1]


def _look(item: pytest.Item, each: float) -> Surveyed | None:
    """Run a test; return its seconds and the functions that it calls, in all threads; None if it
    fails.
    """
    calls: set[str] = set()

    def note(frame: FrameType, *_: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)):
            calls.add(f"{code.co_filename}:{code.co_qualname.partition('.<locals>')[0]}")

    seconds = _passes(item, TRACING * each, note)
    return None if seconds is None else Surveyed(seconds / TRACING, sorted(calls))


def _meet(fault: Fault, items: list[pytest.Item], surveyed: dict[str, Surveyed]) -> str:
    """Put a fault into this process and run tests; return the first that notices it, "" if none."""
    try:
        put(fault)
    except ValueError:  # constants that do not unpack
        return "the module does not load"
    for item in items:
        if _passes(item, PATIENCE * surveyed[item.nodeid].seconds + GRACE, None) is None:
            return item.nodeid
    return ""


def _passes(item: pytest.Item, limit: float, note: Callable[..., None] | None) -> float | None:
    """Return the CPU seconds of a test with its fixtures; None if it fails or exceeds the limit."""

    def late(*_: Any) -> None:
        raise TimeoutError

    start = time.process_time()
    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit, 0.5)
    if note:
        threading.settrace(note)
        sys.settrace(note)
    try:
        passed = all(report.passed for report in runtestprotocol(item, log=False, nextitem=None))
    except (TimeoutError, Warning):  # pluggy turns an exception in a hook into a warning
        passed = False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        sys.settrace(None)
        threading.settrace(None)
    return time.process_time() - start if passed else None


def _apart(work: Callable[[], Any], patience: float) -> Any:
    """Return the result of `work` in a fork of this process; None if that crashes or hangs.

    `work` catches the exceptions of tests; if it raises itself, that is an error of this script.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        child = os.fork()
        if not child:
            os.setsid()
            most = int(patience) + 1  # of the processor: other work on the machine does not count
            resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
            screen = os.dup(2)
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            try:
                answer.write_text(json.dumps(work()))
            except BaseException as error:
                os.write(screen, f"{type(error).__name__}: {error}\n".encode())
                os._exit(FAILED)
            os._exit(0)
        deadline = time.monotonic() + ASLEEP * patience
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return None
            time.sleep(0.02)
        if os.waitstatus_to_exitcode(status) == FAILED:
            raise RuntimeError("a mutant could not be made")
        return json.loads(answer.read_text()) if answer.exists() else None


def prepare() -> None:
    """Disable compilation of kernels, except for the random numbers."""
    normals = import_module("selftrain.simulation.random.normals")
    normals.fill_normals(np.uint64(1), 0, 0, np.empty(4, np.float32))
    config: Any = numba.config
    config.DISABLE_JIT = 1


def drawn(rooms: list[str], count: int, seed: int) -> list[Fault]:
    """Return faults drawn at random from all those of some folders."""
    files = sorted(file for room in rooms for file in (PACKAGE / room).rglob("*.py"))
    for file in files:
        import_module(".".join(("selftrain", *file.relative_to(PACKAGE).with_suffix("").parts)))
    everything = [fault for file in files for fault in faults(file)]
    print(f"{len(everything)} faults are possible in {len(files)} files", file=sys.stderr)
    return random.Random(seed).sample(everything, min(count, len(everything)))


def survivors(table: Path) -> Iterator[Fault]:
    """Yield the faults of an earlier table that no test noticed."""
    with open(table, newline="") as rows:
        for row in csv.DictReader(rows):
            if not row["killed by"]:
                file = str(PACKAGE / row["file"])
                yield Fault(file, row["owner"], int(row["node"]), int(row["line"]),
                            row["before"], row["after"])  # fmt: skip


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("rooms", nargs="+", help="folders of src/selftrain")
    options.add_argument("--count", type=int, default=100, help="how many, drawn at random")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--each", type=float, default=2.0, help="CPU seconds of a test")
    options.add_argument("--budget", type=float, default=30.0, help="CPU seconds of a mutant")
    options.add_argument(
        "--survey",
        type=Path,
        default=Path("survey.json"),
        help="file of the survey of the tests",
    )
    options.add_argument("--again", type=Path, help="only the survivors of this table")
    options.add_argument("--out", type=Path, default=Path("mutants.csv"))
    asked = options.parse_args(arguments)
    prepare()
    sample = (
        list(survivors(asked.again)) if asked.again else drawn(asked.rooms, asked.count, asked.seed)
    )
    packages = sorted({room.split("/")[0] for room in asked.rooms})
    folders = [
        folder
        for package in packages
        for folder in (f"tests/{package}", *FURTHER_TESTS.get(package, ()))
    ]
    tests = [str(ROOT / folder) for folder in folders]
    settings = ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::RuntimeWarning",
               "--capture=no", f"--rootdir={ROOT}",
               f"--config-file={ROOT / 'pyproject.toml'}"]  # fmt: skip
    trials = Trials(sample, asked.each, asked.budget, asked.survey, asked.out)
    return int(pytest.main([*settings, *tests], plugins=[trials]))
