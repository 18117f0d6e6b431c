"""The README shows real output: its Python and its commands are run and compared."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)


def ran(command, folder):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout


def test_every_block_of_python_shows_its_output():
    assert len(BLOCKS) == README.count("```python") == 2
    for code, _ in BLOCKS:
        assert len([line for line in code.splitlines() if line.strip()]) <= 12


@pytest.mark.parametrize(("code", "text"), BLOCKS, ids=["data", "theory"])
def test_python_runs_as_pasted_and_prints_what_the_readme_says(code, text, tmp_path):
    assert ran(["-c", code], tmp_path) == text


def test_the_commands_run(tmp_path):
    whole = README.replace("\\\n", "")
    commands = re.findall(r"^    (selftrain (?:solve|optimize) .*)$", whole, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert "error" in ran(["-m", *shlex.split(command)], tmp_path)


def test_the_two_commands_stand_near_the_top():
    top = README.splitlines()[:12]
    assert any(line.startswith("    make run ") for line in top)
    assert any(line.startswith("    make test ") for line in top)


def test_the_bars_are_those_of_the_comparison():
    page = " ".join((ROOT / "docs" / "comparison.md").read_text("utf-8").split())
    for row in ("few labels", "self-training .9, balanced"):
        (degraded,) = re.findall(rf"\| {re.escape(row)} \|(?: [\d.]+ \|){{3}} ([\d.]+) \|", page)
        assert f"{degraded} %" in README


SPEEDS = [
    (r"same quadrature is ([\d,]+) times slower", "theory", "Algorithm 1, our quadrature"),
    (r"scikit-learn is ([\d,]+) times slower", "simulation", "scikit-learn"),
    (r"gradient costs ([\d.]+) forward runs", "gradients", "gradient over forward"),
    (
        r"Nelder-Mead is ([\d.]+) to", "gradients",
        "Nelder-Mead over ours: lambda_l, lambda_u, threshold",
    ),
    (
        r"Nelder-Mead is [\d.]+ to ([\d.]+) times", "gradients",
        "Nelder-Mead over ours: lambda_l, lambda_u, annealing",
    ),
    (r"10\^5 modes, 16 steps in ([\d.]+) seconds", "covariance", "the same in seconds"),
    (
        r"substitution is ([\d,]+) times slower", "covariance",
        "17 steps against plain substitution on the same equations",
    ),
    (
        r"8 steps to 1e-4 in ([\d.]+) seconds", "reuse",
        "batch reused, labels kept, T = 8, to 1e-4",
    ),
    (
        r"takes (\d+) times as many evaluations", "reuse",
        "substitution against Newton's method",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("said", "part", "what"), SPEEDS, ids=[what for *_, what in SPEEDS])
def test_speeds_are_those_of_the_benchmarks(said, part, what):
    measured = json.loads((ROOT / "docs" / "benchmarks.json").read_text("utf-8"))
    (line,) = (one for one in measured["parts"][part]["lines"] if one["what"] == what)
    (figure,) = re.findall(said, README)
    assert float(figure.replace(",", "")) == pytest.approx(line["figure"], rel=0.05)


def test_the_animation_is_small():
    film = ROOT / "docs" / "images" / "self-training.gif"
    assert "docs/images/self-training.gif" in README
    assert 20_000 < film.stat().st_size < 1_500_000


def test_links_lead_to_files():
    targets = [one for one in re.findall(r"\]\(([^)]+)\)", README) if "://" not in one]
    assert "docs/images/headline.png" in targets
    assert all((ROOT / target).is_file() for target in targets)
