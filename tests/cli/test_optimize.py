"""`selftrain optimize` as a user runs it."""

import json
import subprocess
import sys
from functools import partial

import pytest

PROBLEM = [
    "--alpha-l",
    "0.5",
    "--alpha-u",
    "2",
    "--rho",
    "0.5",
    "--delta",
    "0.5625",
    "--steps",
    "4",
]


def in_a_process(*options):
    command = [sys.executable, "-m", "selftrain", "optimize", *PROBLEM, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def asked(selftrain):
    """The command with the problem and more options, in this process."""
    return partial(selftrain, "optimize", *PROBLEM)


def test_json(tmp_path):
    figure, stored = tmp_path / "best.png", tmp_path / "best.nc"
    done = in_a_process(
        "--over", "lambda_l,lambda_u,threshold", "--schedule", "lambda_u", "--bounds",
        "lambda_u=1e-6:0.1,threshold=0:1", "--json", "--plot", str(figure), "--save", str(stored),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["recipe"]["lambda_u"]) == 4
    assert told["bounds"]["lambda_u"] == [1e-6, 0.1]
    assert told["error"] == told["steps"][-1]["error"]
    assert told["bayes"]["semi_supervised"] < told["error"] < told["against"]["t=0"]
    assert told["problem"]["steps"] == 4
    assert told["is_minimum"] is True
    assert figure.stat().st_size > 10_000
    assert stored.stat().st_size > 1000


def test_table_and_start(asked):
    done = asked("--over", "lambda_u", "--lambda-l", "0.02", "--fix-bias")
    assert done.returncode == 0, done.stderr
    assert "upper" in done.stdout
    assert "Self-training lowers the error" in done.stdout
    assert "runs of the solver" in done.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--over", ""], "at least one of"),
        (["--over", "lambda"], "unknown name"),
        (["--bounds", "lambda_u=0.1"], "NAME=LOW:HIGH"),
        (["--bounds", "lambda_u=0.1:0.01"], "low < high"),
        (["--bounds", "lambda_u=a:b"], "two finite numbers"),
        (["--lambda-u", "0.5"], "within the bounds"),
        (["--lambda-u", "0.05", "--bounds", "lambda_u=1e-6:1e-3"], "within the bounds"),
        (["--bounds", "lambda_u=1e-6:1e-3,lambda_u=1e-6:1e-2"], "bounds of a name once"),
        (["--starts", "x"], "starts"),
        (["--plot", "here.txt"], "png"),
    ],
)
def test_bad_usage(asked, options, reason):
    done = asked(*options)
    assert done.returncode == 2
    assert reason in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not done.stdout
