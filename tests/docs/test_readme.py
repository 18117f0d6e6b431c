"""The README shows real output: its Python and its commands are run and compared."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def ran(command, folder=ROOT):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout


def lines_of(code):
    return [line for line in code.splitlines() if line.strip()]


def test_ten_lines_lead_from_a_csv_to_plan_fit_and_plot(tmp_path):
    assert len(lines_of(PYTHON[0])) <= 10
    X, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    known = np.isin(np.arange(len(X)), np.random.default_rng(2).choice(len(X), 40, replace=False))
    X.assign(y=np.where(known, classes, -1)).to_csv(tmp_path / "rows.csv", index=False)
    check = f"\nprint('right', (model.predict(X) == {classes.tolist()}).mean() > 0.9)\n"
    out = ran(["-c", PYTHON[0] + check], tmp_path)
    assert "Advice:" in out
    assert out.endswith("right True\n")
    assert (tmp_path / "plan.png").stat().st_size > 10_000


def test_the_theory_prints_what_the_readme_says():
    (text,) = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    assert len(lines_of(PYTHON[1])) <= 10
    assert ran(["-c", PYTHON[1]]) == text


def test_the_commands_run(tmp_path):
    commands = re.findall(r"^    (selftrain (?:solve|optimize) .*)$", README, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert "error" in ran(["-m", *shlex.split(command)], tmp_path)


def test_links_lead_to_files():
    targets = [one for one in re.findall(r"\]\(([^)]+)\)", README) if "://" not in one]
    assert "docs/images/headline.png" in targets
    assert all((ROOT / target).is_file() for target in targets)
