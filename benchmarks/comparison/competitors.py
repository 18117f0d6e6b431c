"""Linear competitors, each a function from a split to predictions for the test rows (`Verdict`).

Competitors get the usual preprocessing: tables are standardised; images are centred, scaled by one
number and projected on their 100 leading principal directions (which helps all of them); text is
unchanged. Their ridge is chosen by cross-validated log loss on the labelled rows; those named
"default C" use scikit-learn's default C = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

from selftrain.arrays import Array

from .tasks import Split

DIRECTIONS = 100
"""Number of principal directions of images, and of text if a method needs a covariance or
distances."""

RIDGES = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Values of scikit-learn's C among which cross-validation on the labelled rows chooses."""


@dataclass(frozen=True)
class Verdict:
    """The predictions of a method for the test rows.

    Attributes:
        decision: predicted class of every row.
        score: a number per row that grows with the evidence for class 1.
        probability: probability of class 1; None if the method gives none.
        share: estimated proportion of class 1; NaN if the method gives none.
    """

    decision: Array
    score: Array
    probability: Array | None
    share: float = float("nan")


@dataclass(frozen=True)
class Prepared:
    """A split after preprocessing; `ridge` is the C chosen by cross-validation on the labelled
    rows, by class weight (None or "balanced").
    """

    train: Any
    test: Any
    ridge: dict[str | None, float]


Method = Callable[[Split, Prepared], Verdict]


def prepared(split: Split, kind: str) -> Prepared:
    """Return a split with the usual preprocessing for its kind of data."""
    train, test = split.train, split.test
    if kind == "table":
        center, spread = train.mean(axis=0), train.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        train, test = (train - center) / spread, (test - center) / spread
    if kind == "image":
        directions = PCA(min(DIRECTIONS, *train.shape), random_state=0).fit(train)
        train, test = directions.transform(train), directions.transform(test)
        scale = train.std(axis=0).mean() * np.sqrt(train.shape[1] / DIRECTIONS)
        train, test = train / scale, test / scale
    known = split.target >= 0
    choices = {w: _chosen_ridge(train[known], split.target[known], w) for w in (None, "balanced")}
    return Prepared(train, test, choices)


def _chosen_ridge(rows: Any, classes: Array, weight: str | None) -> float:
    folds = StratifiedKFold(min(5, int(np.bincount(classes).min())), shuffle=True, random_state=0)
    search = LogisticRegressionCV(
        Cs=RIDGES,
        cv=folds,
        scoring="neg_log_loss",
        class_weight=weight,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )
    return float(search.fit(rows, classes).C_)


def logistic(rows: Prepared, weight: str | None, tuned: bool = True) -> LogisticRegression:
    """Return ridge logistic regression, its C chosen by cross-validation or 1."""
    solver = "lbfgs" if issparse(rows.train) or rows.train.shape[1] > 150 else "newton-cholesky"
    ridge = rows.ridge[weight] if tuned else 1.0
    return LogisticRegression(C=ridge, class_weight=weight, solver=solver, max_iter=1000)


def _judged(model: Any, rows: Any) -> Verdict:
    probability = model.predict_proba(rows)[:, 1]
    return Verdict(model.predict(rows), probability, probability)


def supervised(weight: str | None, tuned: bool = True) -> Method:
    """Fit ridge logistic regression on the labelled rows."""

    def method(split: Split, rows: Prepared) -> Verdict:
        known = split.target >= 0
        model = logistic(rows, weight, tuned).fit(rows.train[known], split.target[known])
        return _judged(model, rows.test)

    return method


def fully_supervised(weight: str | None) -> Method:
    """Fit ridge logistic regression on all training rows with their true labels: the oracle."""

    def method(split: Split, rows: Prepared) -> Verdict:
        ridge = {weight: _chosen_ridge(rows.train, split.hidden, weight)}
        model = logistic(Prepared(rows.train, rows.test, ridge), weight)
        return _judged(model.fit(rows.train, split.hidden), rows.test)

    return method


def classic(weight: str | None, threshold: float, tuned: bool = True) -> Method:
    """Fit scikit-learn's `SelfTrainingClassifier`."""

    def method(split: Split, rows: Prepared) -> Verdict:
        model = SelfTrainingClassifier(logistic(rows, weight, tuned), threshold=threshold)
        return _judged(model.fit(rows.train, split.target), rows.test)

    return method


def spreading(split: Split, rows: Prepared) -> Verdict:
    """Fit scikit-learn's `LabelSpreading` on ten nearest neighbours."""
    train, test = dense(rows)
    model = LabelSpreading(kernel="knn", n_neighbors=10).fit(train, split.target)
    found = np.nan_to_num(model.predict_proba(test), nan=0.5)
    return Verdict((found[:, 1] > found[:, 0]).astype(int), found[:, 1], found[:, 1])


def mixture_em(split: Split, rows: Prepared) -> Verdict:
    """Fit two Gaussians with one covariance by EM; the classes of labelled rows are fixed.

    Decisions are made as if the classes were equally frequent.
    """
    train, test = dense(rows)
    known = split.target >= 0
    share = np.where(known, split.target, split.target[known].mean()).astype(float)
    share[~known] = supervised(None)(split, Prepared(train, train[~known], rows.ridge)).score
    previous = np.inf
    for _ in range(100):
        direction, bias, odds = discriminant(train, share)
        share[~known] = expit(train[~known] @ direction + bias + odds)
        value = float(share.sum())
        if abs(value - previous) < 1e-6 * len(share):
            break
        previous = value
    score = test @ direction + bias
    return Verdict((score > 0).astype(int), score, expit(score + odds), float(expit(odds)))


def discriminant(rows: Array, share: Array) -> tuple[Array, float, float]:
    """Return the linear discriminant of soft classes, with a shrunk covariance.

    Returns:
        Direction, bias for equally frequent classes, and log-odds of the class proportion.
    """
    mass = np.array([(1 - share).sum(), share.sum()])
    means = np.array([(1 - share) @ rows, share @ rows]) / mass[:, None]
    within = rows - np.outer(1 - share, means[0]) - np.outer(share, means[1])
    covariance = ledoit_wolf(within, assume_centered=True)[0]
    direction = scipy.linalg.solve(covariance, means[1] - means[0], assume_a="pos")
    return direction, -float(direction @ means.mean(axis=0)), float(np.log(mass[1] / mass[0]))


def transductive_svm(split: Split, rows: Prepared) -> Verdict:
    """Fit a transductive linear SVM (Joachims), with labels switched for all rows at once.

    The weight of the pseudo-labelled rows grows from fit to fit; their class proportions are those
    of the labelled rows.
    """
    known = split.target >= 0
    share = float(split.target[known].mean())
    classes = split.target.copy()
    machine = LinearSVC(C=rows.ridge[None], dual=False, tol=1e-3)
    model = machine.fit(rows.train[known], split.target[known])
    ranked = round(share * int((~known).sum()))
    for weight in (0.01, 0.1, 0.3, 1.0):
        score = model.decision_function(rows.train[~known])
        own = np.zeros(len(score), dtype=int)
        own[np.argsort(score)[::-1][:ranked]] = 1
        classes[~known] = own
        weights = np.where(known, 1.0, weight * known.sum() / (~known).sum())
        model = machine.fit(rows.train, classes, sample_weight=weights)
    score = model.decision_function(rows.test)
    return Verdict((score > 0).astype(int), score, None, share)


def dense(rows: Prepared) -> tuple[Array, Array]:
    """Return dense training and test rows; text is projected on its leading directions."""
    if not issparse(rows.train):
        return rows.train, rows.test
    directions = TruncatedSVD(DIRECTIONS, random_state=0).fit(rows.train)
    return directions.transform(rows.train), directions.transform(rows.test)
