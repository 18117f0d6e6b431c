"""TabPFN and ten classes: a small run of the command, its page, and what it leaves out."""

import json

import numpy as np
import pytest
from sklearn.metrics import log_loss

from benchmarks.__main__ import main
from benchmarks.comparison import other_competitors, tabpfn
from benchmarks.comparison.other_competitors import MARKS, TABPFN, two_class_table
from benchmarks.comparison.tasks import TEN_CLASSES, named


@pytest.fixture
def small(monkeypatch):
    """One task and one data set of ten classes, without the slow methods, and without TabPFN."""
    monkeypatch.setattr(other_competitors, "CONFIRMATION", (named("wine 2 or other"),))
    monkeypatch.setattr(other_competitors, "TEN_CLASSES", TEN_CLASSES[:1])
    for methods in (other_competitors.ON_LABELS, other_competitors.ON_ALL):
        for name in set(methods) - {"supervised", "label spreading", TABPFN}:
            monkeypatch.delitem(methods, name)
    monkeypatch.setattr(tabpfn, "find_spec", lambda name: None)


def test_the_command_leaves_tabpfn_out_and_writes_its_page(small, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARKS[0]}\n{MARKS[1]}\nafter\n")
    given = ["competitors", "--out", str(tmp_path), "--page", str(page)]
    assert main([*given, "--parts", "tasks", "classes"]) == 0
    said = capsys.readouterr()
    assert "TabPFN is left out: the package torch is not installed." in said.err
    text = page.read_text()
    assert "1 tasks, 2 runs." in text
    assert "| TabPFN | not run |" in text
    assert "digits, 1 draws" in text
    assert said.out.strip() in text
    runs = [json.loads(line) for line in (tmp_path / "classes.jsonl").read_text().splitlines()]
    spreading = runs[0]["methods"]["label spreading"]
    assert spreading["error"] < 0.1
    assert 0 < spreading["log_loss"] < 0.5
    before = (tmp_path / "tasks.jsonl").read_text()
    assert main([*given, "--parts", "tasks"]) == 0
    assert (tmp_path / "tasks.jsonl").read_text() == before


def test_the_log_loss_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    probability = random.dirichlet(np.ones(3), 50)
    truth = random.integers(0, 3, 50)
    found = other_competitors.log_loss(probability, truth)
    assert found == pytest.approx(log_loss(truth, probability))


def test_only_methods_that_were_run_have_a_line():
    runs = [
        {
            "task": "one",
            "labels": size,
            "methods": {
                name: {"error": 0.2, "log_loss": 0.5, "seconds": 1.0}
                for name in (*other_competitors.COMPARED, TABPFN)
            },
        }
        for size in (20, 40, 100)
    ]
    assert "| TabPFN | 20.0 | 20.0 | 20.0 |" in two_class_table(runs)


def test_limits_of_tabpfn():
    assert tabpfn.fits(np.zeros((1000, 100)), np.arange(1000) % 10)
    assert not tabpfn.fits(np.zeros((40, 101)), np.arange(40) % 2)
    assert not tabpfn.fits(np.zeros((1001, 3)), np.arange(1001) % 2)
    assert not tabpfn.fits(np.zeros((40, 3)), np.arange(40) % 11)
