"""`selftrain simulate` from the outside: what is printed, what is written, how it ends."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from selftrain import Ensemble

PROBLEM = [
    *("--alpha-l", "0.5", "--alpha-u", "2", "--rho", "0.4", "--delta", "0.5625"),
    *("--steps", "2"),
]


def in_a_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "selftrain", "simulate", *PROBLEM, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def asked(selftrain: Any) -> Any:
    """The command with the problem and more arguments, in this process."""
    return partial(selftrain, "simulate", *PROBLEM)


def test_json_has_the_names_of_the_api() -> None:
    done = in_a_process("--features", "200", "--seeds", "3", "--json", "--compare")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert len(told["q"]) == 3
    assert len(told["q"][0]) == 3
    assert told["overlap"][0][0] is None
    assert told["mean"]["q"][1] == pytest.approx(sum(row[1] for row in told["q"]) / 3)
    assert told["collapsed_at"] == [None, None, None]
    compared = told["compare"]
    assert {
        "verdict",
        "consistent",
        "within",
        "deviations",
        "finite_size",
        "z",
        "worst",
        "note",
    } == set(compared)
    assert compared["verdict"].startswith("cannot tell: more seeds or features")
    assert compared["consistent"] is None
    q = compared["deviations"]["q"]
    assert q["mean"][q["at"]] == q["largest"]
    assert abs(q["largest"]) <= q["at_most"]
    assert q["times_features"] == pytest.approx(200 * q["largest"])
    assert {"problem", "recipe", "version", "std", "sem", "seeds"} <= set(told)


def test_table_figure_and_file(asked: Any, tmp_path: Path) -> None:
    figure, stored = tmp_path / "runs.png", tmp_path / "runs.nc"
    done = asked(
        *("--features", "100", "--seeds", "2", "--method", "dense", "--compare"),
        *("--plot", str(figure), "--save", str(stored)),
    )
    assert done.returncode == 0, done.stderr
    assert "N = 100, 2 seeds, dense" in done.stdout
    assert "cannot tell: more seeds or features" in done.stdout.splitlines()[-1]
    assert "detectable" in done.stdout
    header = next(line for line in done.stdout.splitlines() if "cosine" in line)
    assert header.split() == ["t", "q", "m", "B", "χ", "R", "error", "cosine", "seeds"]
    assert done.stderr.splitlines() == [f"Figure: {figure}", f"Saved: {stored}"]
    assert figure.stat().st_size > 1000
    assert stored.stat().st_size > 1000


def test_verdict_is_said_in_words(asked: Any) -> None:
    done = asked("--features", "8000", "--compare", "--threshold", "0.2")
    assert done.returncode == 0, done.stderr
    assert re.match(r"agree to \d(\.\d)? %, ", done.stdout.splitlines()[-1])
    header = next(line for line in done.stdout.splitlines() if "cosine" in line)
    assert header.split()[-2:] == ["selected", "seeds"]
    done = asked("--features", "8000", "--compare", "--threshold", "0.2", "--within", "0.001")
    assert done.stdout.splitlines()[-1].startswith("cannot tell: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--features", "1000000", "--method", "dense"), "GB of memory"),
        (("--features", "2"), "3 features or more"),
        (("--seeds", "0"), "seeds"),
        (("--seeds", "1000000000000"), "seeds"),
        (("--method", "sparse"), "sparse"),
        (("--probes", "100000000000"), "a whole number from 0 to 10,000"),
    ],
)
def test_bad_values_are_exit_code_2(asked: Any, arguments: tuple[str, ...], message: str) -> None:
    done = asked(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_failed_seeds_are_told_and_end_with_exit_code_1(asked: Any) -> None:
    flags = ("--features", "60", "--seeds", "2", "--threshold", "9")
    done = asked(*flags)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("selftrain: 2 of 2 seeds failed: seed 0, step 1: the threshold 9")
    done = asked(*flags, "--on-failure", "partial", "--json", "--compare")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [failure["step"] for failure in told["failures"]] == [1, 1]
    assert told["q"][0][1] is None
    done = asked(*flags, "--on-failure", "partial")
    assert "2 of 2 seeds failed; later means are those of the others." in done.stdout


def test_one_seed_is_no_comparison(asked: Any) -> None:
    done = asked("--features", "60", "--seeds", "1", "--json", "--compare")
    told = json.loads(done.stdout)["compare"]
    assert told["consistent"] is None
    assert told["worst"] is None


def test_a_warning_is_one_line() -> None:
    done = in_a_process("--features", "60", "--seeds", "2", "--keep-labeled", "1")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("Warning: keep_labeled with sharpness 1")


def test_an_interrupt_is_not_a_result(tmp_path: Path) -> None:
    """The seeds that are done go to a file of their own; the old file stays, and the exit code says
    so.
    """
    stored = tmp_path / "runs.nc"
    stored.write_bytes(b"of a whole run")
    code = (
        "import importlib\n"
        "module = importlib.import_module('selftrain.simulation.simulate')\n"
        "run_seed = module.run_seed\n"
        "def work(plan, engine, record, options):\n"
        "    if record.seed == 2: raise KeyboardInterrupt\n"
        "    return run_seed(plan, engine, record, options)\n"
        "module.run_seed = work\n"
        "from selftrain.cli.main import run\n"
        "run()\n"
    )
    command = [sys.executable, "-c", code, "simulate", *PROBLEM, "--features", "60", "--seeds", "9"]
    done = subprocess.run(
        [*command, "--save", str(stored), "--json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130
    assert done.stdout == ""
    part = tmp_path / "runs.partial.nc"
    assert done.stderr.splitlines() == ["Interrupted: 2 of 9 seeds are done.", f"Saved: {part}"]
    assert stored.read_bytes() == b"of a whole run"
    assert Ensemble.load(part).seeds.tolist() == [0, 1]
