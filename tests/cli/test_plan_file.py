"""`selftrain plan` on CSV files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from selftrain import FewLabelClassifier, SelfTrainingLinearClassifier, plan
from selftrain.cli.main import app
from selftrain.errors import InvalidInput
from selftrain.estimator.planning import csv_rows
from selftrain.estimator.planning.csv_rows import read_csv_rows
from selftrain.estimator.planning.plan import plan_file


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 rows of two classes, 30 of them labelled, with a column of text."""
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 300)
    frame = pd.DataFrame(random.normal(size=(300, 4)) + classes[:, None], columns=list("abcd"))
    frame["label"] = np.where(np.arange(300) < 30, np.where(classes, "spam", "ham"), "")
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def test_json_has_the_plan_and_nothing_else(file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    call = ["plan", str(file), "--target", "label", "--json", "--plot", str(picture)]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert plan["advice"] in ("do", "do not", "cannot tell")
    assert plan["rows"]["classes"] == ["ham", "spam"]
    assert (plan["rows"]["labeled"], plan["rows"]["unlabeled"]) == (30, 270)
    assert set(plan["error"]) == {"baseline", "candidate"}
    assert "version" in plan
    assert picture.stat().st_size > 10_000


def test_a_missing_target_is_named_with_the_near_one(file: Path) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'label'"):
        read_csv_rows(file, "labels")


def test_another_separator_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a;label\n1,5;ham\n2,5;spam\n")
    with pytest.raises(InvalidInput, match="separated by ';': convert it to commas"):
        read_csv_rows(path, "label")


def test_text_columns_are_refused_by_name(file: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(file).assign(town="x")
    frame.to_csv(tmp_path / "town.csv", index=False)
    call = ["plan", str(tmp_path / "town.csv"), "--target", "label"]
    result = CliRunner().invoke(app, call)
    assert isinstance(result.exception, InvalidInput)
    assert "town" in str(result.exception)
    assert "--encode" in str(result.exception)


def test_a_file_without_labels_is_refused_with_its_marker(file: Path, tmp_path: Path) -> None:
    pd.read_csv(file).assign(label="?").to_csv(tmp_path / "none.csv", index=False)
    call = ["plan", str(tmp_path / "none.csv"), "--target", "label", "--unlabeled", "?"]
    result = CliRunner().invoke(app, call)
    assert "unlabelled: '?', NaN, None or empty" in str(result.exception)


@pytest.mark.parametrize("marker", ["-1", "-1.0", "", " "])
def test_markers_and_empty_cells_are_not_classes(tmp_path: Path, marker: str) -> None:
    path = tmp_path / "rows.csv"
    cells = ["0", "1", marker, "1.0", "0"]
    path.write_text("x,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    rows = read_csv_rows(path, "y")
    assert (rows.labeled, rows.unlabeled) == (4, 1)
    assert list(rows.y[:4]) == ["0", "1", "1.0", "0"]


def test_long_files_are_read_in_pieces_and_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "PIECE", 100)
    monkeypatch.setattr(csv_rows, "MOST_UNLABELED", 50)
    path = tmp_path / "long.csv"
    rows = [f"{i},{i % 2 if i % 100 == 0 or i % 100 == 51 else -1}" for i in range(1000)]
    path.write_text("x,y\n" + "\n".join(rows))
    read = read_csv_rows(path, "y")
    assert (read.labeled, read.unlabeled) == (20, 980)
    unlabeled = read.X["x"].to_numpy()[20:]
    assert len(unlabeled) == 50
    assert len(set(unlabeled)) == 50
    # A sample of the whole file, not of its beginning: the mean of 50 of 1000 rows within 4 errors.
    assert abs(unlabeled.mean() - 499.5) < 4 * 289 / np.sqrt(50)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(InvalidInput, match="CSV file with a line of names"):
        read_csv_rows(empty, "y")
    (tmp_path / "head.csv").write_text("x,y\n")
    with pytest.raises(InvalidInput, match="must have rows"):
        read_csv_rows(tmp_path / "head.csv", "y")
    (tmp_path / "alone.csv").write_text("y\n1\n-1\n")
    with pytest.raises(InvalidInput, match="must have a column besides"):
        read_csv_rows(tmp_path / "alone.csv", "y")


def test_a_latin_1_byte_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"x,city,y\n1,Z\xfcrich,0\n2,Bern,1\n")
    result = CliRunner().invoke(app, ["plan", str(file), "--target", "y"])
    assert isinstance(result.exception, InvalidInput)
    assert "0xFC in line 2 is not UTF-8" in str(result.exception)


def test_missing_numbers_are_replaced_by_medians_everywhere(tmp_path: Path) -> None:
    """The command, the function and the classifiers have one policy."""
    X, classes = load_breast_cancer(return_X_y=True)
    X, y = X[:200, :6], np.where(np.arange(200) < 40, classes[:200], -1)
    gaps = pd.DataFrame(X, columns=list("abcdef"))
    gaps.loc[[3, 50, 120], "b"] = np.nan
    gaps.loc[7, "e"] = np.nan
    whole = gaps.fillna(gaps.median())
    for name, table in {"gaps": gaps, "whole": whole}.items():
        table.assign(y=y).to_csv(tmp_path / f"{name}.csv", index=False)
    with_gaps, filled = (plan_file(tmp_path / f"{name}.csv", "y") for name in ("gaps", "whole"))
    assert with_gaps.error == filled.error
    remark = "4 missing entries in b, e: the default models take the median of the column."
    assert with_gaps.rows.remarks == (remark,)
    assert remark.split(":")[0] in with_gaps.details()
    assert plan(gaps, y).error == plan(whole, y).error == plan(gaps.to_numpy(), y).error
    for model in (FewLabelClassifier(random_state=0), SelfTrainingLinearClassifier(random_state=0)):
        with pytest.warns(UserWarning, match=r"median of their column: b \(3\), e \(1\)"):
            found = clone(model).fit(gaps, y)
        expected = clone(model).fit(whole, y)
        np.testing.assert_array_equal(found.predict_proba(gaps), expected.predict_proba(whole))
        assert len(found.predict(gaps[:1].assign(a=np.nan))) == 1


def test_a_column_that_numbers_the_rows_is_named(tmp_path: Path) -> None:
    X, classes = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X[:200, :4], columns=list("abcd"))
    frame["y"] = np.where(np.random.default_rng(0).random(200) < 0.3, classes[:200], -1)
    frame.insert(0, "id", np.arange(200) + 1)
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    advice = plan_file(path, "y")
    assert advice.rows.identifiers == ("id",)
    assert "Caution: column 'id' numbers the samples" in str(advice)
    assert advice.rows.X.shape[1] == 5  # it is used all the same
    assert advice.to_dict()["rows"]["identifiers"] == ["id"]
    frame.drop(columns="id").to_csv(path, index=False)
    assert "numbers the samples" not in str(plan_file(path, "y"))
