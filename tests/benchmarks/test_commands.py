"""The commands of `python -m benchmarks`: every one is there, and bad usage is said."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import COMMANDS, main
from benchmarks.speed.record import PARTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "explorer"])
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: python -m benchmarks {name}" in capsys.readouterr().out


def test_the_parts_of_the_page_are_commands():
    assert set(PARTS) < set(COMMANDS)


def test_an_unknown_command_or_part_is_named(capsys, tmp_path):
    assert main(["theroy"]) == 2
    assert "did you mean 'theory'" in capsys.readouterr().err
    assert main(["all", "shapes", "--out", str(tmp_path)]) == 2
    assert "unknown part" in capsys.readouterr().err
    assert main(["all", "--out", str(tmp_path / "missing")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_a_missing_or_damaged_record_is_named(capsys, tmp_path):
    file = tmp_path / "record.json"
    assert main(["check", "--against", str(file)]) == 2
    assert "no such file" in capsys.readouterr().err
    file.write_text("{")
    assert main(["check", "--against", str(file)]) == 2
    assert "not a record of benchmarks" in capsys.readouterr().err


def test_it_runs_from_the_root_of_a_clone():
    command = [sys.executable, "-m", "benchmarks"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "python -m benchmarks COMMAND" in done.stdout
    assert "theory" in done.stdout
