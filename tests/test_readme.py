"""The README shows real output: its Python and its command are run and compared."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")


def block(kind):
    (text,) = re.findall(rf"```{kind}\n(.*?)```", README, flags=re.DOTALL)
    return text


def ran(command):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return done.stdout


def test_python_example_prints_what_the_readme_says():
    assert ran(["-c", block("python")]) == block("text")


def test_command_prints_the_table_of_the_readme():
    asked, shown = block("console").split("\n", maxsplit=1)
    program, *arguments = shlex.split(asked.removeprefix("$ "))
    assert program == "selftrain"
    assert ran(["-m", "selftrain", *arguments]) == shown


def test_simulation_agrees_with_the_theory():
    (asked,) = re.findall(r"^    (selftrain simulate .*?[^\\])\n", README, re.DOTALL | re.MULTILINE)
    program, *arguments = shlex.split(asked.replace("\\\n", " "))
    assert program == "selftrain"
    assert "The runs agree with the theory" in ran(["-m", "selftrain", *arguments])


def test_links_lead_to_files():
    root = Path(__file__).parents[1]
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert "docs/images/headline.png" in targets
    assert all((root / target).is_file() for target in targets)
