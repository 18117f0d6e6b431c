"""Processor time of the classifiers and the planner; `SelfTrainingLinearClassifier` is compared
with scikit-learn's self-training with its default threshold of 0.75.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from selftrain.arrays import Array
from selftrain.estimator.classifier import SelfTrainingLinearClassifier
from selftrain.estimator.few_labels.classifier import FewLabelClassifier
from selftrain.estimator.planning.plan import plan
from selftrain.runtime.parallel import one_thread

from .measure import Line, seconds

LABELS = 2_000
"""Number of labels; with a few hundred labelled texts, no row passes scikit-learn's threshold, and
it stops at once."""

FEW = 60
"""Labels of a plan: the largest number with ten folds."""


def measurements() -> Iterator[Line]:
    """Measure all lines with one thread of linear algebra: with more, the processor time of
    scikit-learn would include waiting threads.
    """
    with one_thread():
        yield from _lines()


def _lines() -> Iterator[Line]:
    SelfTrainingLinearClassifier(random_state=0).fit(*_dense(4_000, 50)[:2])
    rows, target, _ = _dense(5_000, 1_000)
    taken = seconds(lambda: SelfTrainingLinearClassifier(random_state=0).fit(rows, target), 2)
    yield Line("fit of 5,000 x 1,000", taken, "s", 3.0, False)
    even = _gaussian(5_000, 1_000)
    taken = seconds(lambda: SelfTrainingLinearClassifier(random_state=0).fit(*even), 2)
    yield Line("fit of 5,000 x 1,000, Gaussian", taken, "s", 3.0, False)
    for name, given in (
        ("Gaussian", _gaussian(5_000, 1_000, FEW)),
        ("heavy tails", _heavy_tailed(5_000, 1_000, FEW)),
    ):
        taken = seconds(partial(FewLabelClassifier(random_state=0).fit, *given))
        yield Line(f"few labels, fit of 5,000 x 1,000, {name}", taken, "s", 5.0, False)
        taken = seconds(partial(plan, *given, progress=False))
        yield Line(f"plan of 5,000 x 1,000, {name}", taken, "s", 15.0, False)
    for name, table in (
        ("20,000 x 1,000 dense", _dense(20_000, 1_000)),
        ("50,000 x 20,000 sparse", _sparse(50_000, 20_000)),
    ):
        yield from _against_scikit_learn(name, *table)


def _against_scikit_learn(name: str, rows: Any, target: Any, classes: Any) -> Iterator[Line]:
    ours = SelfTrainingLinearClassifier(random_state=0)
    theirs = SelfTrainingClassifier(LogisticRegression(max_iter=200))
    fast = seconds(lambda: ours.fit(rows, target))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slow = seconds(lambda: theirs.fit(rows, target))
    wrong = [100 * float((model.predict(rows) != classes).mean()) for model in (ours, theirs)]
    yield Line(f"{name}, ours", fast, "s", note=f"error on all rows {wrong[0]:.1f} %")
    yield Line(f"{name}, scikit-learn", slow, "s", note=f"error on all rows {wrong[1]:.1f} %")
    yield Line(f"{name}, scikit-learn / ours", slow / fast, "x", 1.0)


def _dense(rows: int, columns: int) -> tuple[Array, Any, Any]:
    """Return two clusters whose means differ in a tenth of the columns; the noise of each row has
    its own scale.
    """
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, rows)
    table = random.normal(size=(rows, columns)) * random.uniform(0.5, 2.0, (rows, 1))
    table[:, : columns // 10] += 0.2 * (2 * classes - 1)[:, None]
    return table, _hidden(classes), classes


def _gaussian(rows: int, columns: int, labels: int = 100) -> tuple[Array, Any]:
    """Return two Gaussian clusters whose means differ in 20 columns: every metric of the Gaussian
    method is tried on them.
    """
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, rows)
    table = random.normal(size=(rows, columns))
    table[:, :20] += 0.25 * (2 * classes - 1)[:, None]
    return table, np.where(np.arange(rows) < labels, classes, -1)


def _heavy_tailed(rows: int, columns: int, labels: int) -> tuple[Array, Any]:
    """Return two classes whose means differ in 20 columns, all of infinite variance: every column
    becomes ranks.
    """
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, rows)
    table = random.standard_t(2, size=(rows, columns))
    table[:, :20] += 0.5 * (2 * classes - 1)[:, None]
    return table, np.where(np.arange(rows) < labels, classes, -1)


def _sparse(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Return tf-idf vectors of random texts of 60 words; each word is slightly more frequent in one
    class.
    """
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, rows)
    common, taste = 1 / (10 + np.arange(columns)), 0.5 * random.normal(size=columns)
    words = np.empty((rows, 60), dtype=int)
    for label in (0, 1):
        chance = np.cumsum(common * np.exp((2 * label - 1) * taste))
        members = np.flatnonzero(classes == label)
        drawn = random.random((len(members), 60)) * chance[-1]
        words[members] = np.searchsorted(chance, drawn)
    lines = np.repeat(np.arange(rows), 60)
    counts = scipy.sparse.csr_array(
        (np.ones(words.size), (lines, words.ravel())), shape=(rows, columns)
    )
    counts.sum_duplicates()
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    return scipy.sparse.csr_array(weighted), _hidden(classes), classes


def _hidden(classes: Any) -> Any:
    return np.where(np.arange(len(classes)) < LABELS, classes, -1)
