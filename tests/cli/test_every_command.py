"""What all commands have in common: help with examples, tracebacks on demand, names of files."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from selftrain.cli.examples import EXAMPLES
from selftrain.cli.main import app

PROBLEM = ("--alpha-l", "0.5", "--alpha-u", "2", "--rho", "0.4", "--delta", "0.5625")


def every_command() -> list[str]:
    """The whole command line: the commands, and the commands of their groups."""
    root = typer.main.get_command(app)
    names = [""]
    for name, command in root.commands.items():
        names += [name, *(f"{name} {part}" for part in getattr(command, "commands", ()))]
    return names


def selftrain(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "selftrain", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", every_command())
def test_help_ends_with_examples_of_this_command(name):
    found = CliRunner().invoke(app, [*name.split(), "-h"], env={"COLUMNS": "200"})
    assert found.exit_code == 0
    _, title, examples = found.stdout.partition("Examples:")
    assert title
    assert all(line in examples for line in EXAMPLES[name])
    assert all(line.startswith(f"selftrain {name}".strip()) for line in EXAMPLES[name])


def test_examples_fit_on_a_line_of_80_columns():
    assert max(len(line) for lines in EXAMPLES.values() for line in lines) <= 78


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("paper run cos", ["cosine"]),
        ("optimize --over lambda_l,ann", ["lambda_l,annealing"]),
        ("solve --loss s", ["squared"]),
        ("sweep export runs.db --to n", ["netcdf"]),
        ("simulate --method d", ["dense"]),
    ],
)
def test_values_are_completed(typed, completed, selftrain, monkeypatch):
    words = f"selftrain {typed}"
    monkeypatch.setenv("_SELFTRAIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    done = selftrain()
    assert done.stdout.split() == completed, done.stderr


def test_there_are_no_examples_of_commands_that_are_gone():
    assert set(EXAMPLES) == set(every_command())


@pytest.mark.parametrize("where", [0, 1, 99])
def test_debug_shows_the_traceback_wherever_it_stands(where):
    arguments = ["solve", *PROBLEM, "--steps", "-1"]
    arguments.insert(where, "--debug")
    done = selftrain(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback")
    assert done.stderr.splitlines()[-1].endswith(", got -1")


@pytest.mark.parametrize("name", ["solve", "simulate", "optimize"])
def test_a_file_of_a_kind_that_cannot_be_read_back_is_refused(name, tmp_path):
    found = selftrain(
        name, *PROBLEM, "--steps", "1", "--save", str(tmp_path / "run.xyz"),
        *(("--features", "20", "--seeds", "1") if name == "simulate" else ()),
        *(("--over", "lambda-u") if name == "optimize" else ()),
    )  # fmt: skip
    assert found.returncode == 2
    assert "a name ending in one of: nc" in found.stderr


def test_verdicts_fit_a_narrow_terminal(monkeypatch):
    monkeypatch.setattr("selftrain.cli.output.TABLE_WIDTH", 60)
    asked = ["simulate", *PROBLEM, "--steps", "1", "--features", "40", "--seeds", "3", "--compare"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0
    start = found.stdout.index("deviation of")
    table = found.stdout[start : found.stdout.index("\n\n", start)]
    assert max(map(len, table.splitlines())) <= 60
    assert "Not shown for lack of width: detectable, at most" in found.stdout
