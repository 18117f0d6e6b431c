"""Small data sets: sizes as published, licences named, labels hidden at random."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from selftrain import datasets
from selftrain.errors import InvalidInput

PAGE = (Path(__file__).parents[1] / "docs" / "api" / "datasets.md").read_text("utf-8")

SIZES = {  # as their authors publish them
    "digits": ((1797, 64), {0: 178, 1: 182, 9: 180}),
    "breast_cancer": ((569, 30), {"malignant": 212, "benign": 357}),
    "penguins": ((344, 7), {"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_set_is_what_was_published(name: str) -> None:
    load = getattr(datasets, f"load_{name}")
    shape, counts = SIZES[name]
    X, y = load(return_X_y=True)
    assert X.shape == shape
    found = y.value_counts()
    assert all(found[kind] == count for kind, count in counts.items())
    whole = load()
    assert whole.feature_names == list(X.columns)
    assert whole.target_names == sorted(y.unique())
    assert whole.licence in whole.DESCR
    assert re.search(rf"^\| `load_{name}` \|.*\| {whole.licence} \|$", PAGE, re.MULTILINE)


def test_penguins_have_text_and_missing_values() -> None:
    X, species = datasets.load_penguins(return_X_y=True)
    assert set(X["island"]) == {"Biscoe", "Dream", "Torgersen"}
    assert X["sex"].isna().sum() == 11
    gentoo = X.loc[species == "Gentoo", "flipper_length_mm"]
    assert gentoo.mean() == pytest.approx(217, abs=0.5)  # 217 mm in its documentation


def test_files_are_small() -> None:
    files = Path(datasets.__file__).parent.glob("*.csv")
    assert 0 < sum(file.stat().st_size for file in files) < 300_000


def test_hidden_labels() -> None:
    _, kind = datasets.load_breast_cancer(return_X_y=True)
    y = datasets.hide_labels(kind, 60, random_state=1)
    known = y != -1
    assert known.sum() == 60
    assert (y[known] == kind[known]).all()
    again = datasets.hide_labels(kind.to_numpy(), 60, random_state=1, unlabeled="?")
    assert ((again == "?") == ~known).all()
    assert (datasets.hide_labels(kind, 60, random_state=2) != y).any()
    # Drawn at random: the proportion of a class among 4,000 known labels of 20,000 is that of all.
    many = datasets.hide_labels(np.repeat([0, 1], [15_000, 5_000]), 4_000)
    assert (many == 1).sum() == pytest.approx(1_000, abs=100)


@pytest.mark.parametrize("labels", [0, -1, 570, 2.0, True])
def test_how_many_labels_is_checked(labels: Any) -> None:
    _, kind = datasets.load_breast_cancer(return_X_y=True)
    with pytest.raises(InvalidInput, match="labels must be"):
        datasets.hide_labels(kind, labels)
