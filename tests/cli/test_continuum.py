"""`selftrain continuum` from the outside: what is printed, what is written, how it ends."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from selftrain import Problem, Recipe, continuum

PROBLEM = (
    *("--alpha-l", "0.5", "--alpha-u", "2", "--rho", "0.4", "--delta", "0.5625"),
    *("--steps", "100", "--lambda-u", "0.002"),
)


def in_a_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "selftrain", "continuum", *PROBLEM, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def asked(selftrain: Any) -> Any:
    """The command with the problem and more arguments, in this process."""
    return partial(selftrain, "continuum", *PROBLEM)


def test_json_has_the_names_of_the_api() -> None:
    done = in_a_process("--json", "--until", "0.3", "--compare")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=100)
    path = continuum(problem, Recipe(lambda_u=0.002), until=0.3)
    assert told["until"] == 0.3
    assert told["half_aligned"] == pytest.approx(path.half_aligned, rel=1e-9)
    assert told["aligned"] is None
    assert told["best"]["where"] == "interior"
    assert told["best"]["error"] == pytest.approx(path.best.error, rel=1e-12)
    middle = told["path"][100]
    assert middle["tau"] == pytest.approx(0.15)
    for name in ("m", "q", "bias", "cosine", "error", "squared_cosine"):
        assert middle[name] == pytest.approx(getattr(path(0.15), name), rel=1e-9)
    rate = path.first_order(0.0).alignment_rate
    assert told["first_order"]["alignment_rate"] == pytest.approx(rate, rel=1e-9)
    assert 0 < told["compare"]["cosine"] < 0.02
    assert {"problem", "recipe", "version", "solver"} <= set(told)


def test_table_and_figure(asked: Any, tmp_path: Path) -> None:
    figure = tmp_path / "path.png"
    done = asked("--plot", str(figure), "--loss", "squared", "--compare")
    assert done.returncode == 0, done.stderr
    header = next(line for line in done.stdout.splitlines() if "cosine" in line)
    assert header.split() == ["τ", "q", "m", "B", "B/√q", "error", "cosine", "M"]
    assert "The error is smallest at the end" in done.stdout
    assert "M is 1/2 not on this path" in done.stdout
    assert "largest difference over 100 steps" in done.stdout
    assert done.stderr.splitlines()[-1] == f"Figure: {figure}"
    assert figure.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--sharpness", "2"), 2, "sharpness must be 1:"),
        (("--labeler", "hard"), 2, "labeler must give"),
        (("--until", "soon"), 2, "until must be a finite number > 0, got 'soon'"),
        (("--threshold", "1"), 1, "alpha_u times the selected share"),
        (("--plot", "path.txt"), 2, "a name ending in one of"),
    ],
)
def test_refusals_are_one_line(
    asked: Any, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = asked(*arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


ENDING = ("--steps", "2", "--alpha-u", "2,0.9", "--lambda-u", "0.05")


def test_the_part_that_exists_can_be_had(asked: Any, tmp_path: Path) -> None:
    """A second batch with too few points: by default nothing, asked to, the path up to there; exit
    code 1 in both cases.
    """
    done = asked(*ENDING)
    assert (done.returncode, done.stdout) == (1, "")
    figure = tmp_path / "path.png"
    done = asked(*ENDING, "--on-failure", "partial", "--json", "--plot", str(figure))
    assert done.returncode == 1
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    assert told["until"] == told["failure"]["tau"] == pytest.approx(0.05)
    assert "must be > 1, got" in told["failure"]["reason"]
    assert told["path"][-1]["tau"] == pytest.approx(0.05)
    assert len(done.stderr.splitlines()) == 1
    assert "at tau = 0.05: alpha_u times the selected share must be > 1, got 0.9" in done.stderr
    assert figure.stat().st_size > 1000
    done = asked(*ENDING, "--on-failure", "partial", "--compare")
    assert done.returncode == 1
    assert "Ended early, at τ = 0.05." in done.stdout
    assert "over 1 steps" not in done.stdout
    assert "largest difference over 1 step:" in done.stdout


def test_a_whole_path_has_no_failure(asked: Any) -> None:
    done = asked("--json", "--loss", "squared", "--on-failure", "partial")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failure"] is None
