"""The page on plans: its ten lines run from a CSV to a plan, a fit and a picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

PAGE = (Path(__file__).parents[2] / "docs" / "plan.md").read_text()
(LINES,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_ten_lines_lead_from_a_csv_to_plan_fit_and_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len([line for line in LINES.splitlines() if line.strip()]) <= 10
    X, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    labeled = np.random.default_rng(2).choice(len(X), 40, replace=False)
    known = np.isin(np.arange(len(X)), labeled)
    X.assign(y=np.where(known, classes, -1)).to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(LINES, "docs/plan.md", "exec"), names)
    assert "The two models disagree on" in capsys.readouterr().out
    assert np.mean(names["rows"]["found"] == classes) > 0.9
    assert (tmp_path / "plan.png").stat().st_size > 10_000


def test_every_name_of_the_page_is_one_of_a_plan() -> None:
    from selftrain.results import Plan

    table = PAGE.split("## What it reports")[1].split("## ")[0]
    named = set(re.findall(r"`(\w+)", table.replace("`class_weight", "")))
    known = set(Plan.__dataclass_fields__) | set(dir(Plan)) | {"estimate", "low", "high"}
    assert named <= known, named - known
