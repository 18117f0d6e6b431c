"""Nonlinear competitors, and a safe one: forest, boosting, SVM, implicit constraints.

Forest, boosting and SVM use the labelled rows only. Forest and boosting predict class 1 if its
probability exceeds its proportion among the labelled rows, which is a balanced decision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC

from .competitors import Method, Prepared, Verdict, dense
from .tasks import Split

TREES = 300
FEWER_TREES = 100
"""Number of trees in self-training, which fits up to ten forests."""

RIDGE = 1.0
"""Ridge of the least-squares fit, relative to the mean square of a column: the best of 0.1 to 3 on
seven development tasks."""


def on_labels(model: Any) -> Method:
    """Fit a classifier with probabilities to the labelled rows."""

    def method(split: Split, rows: Prepared) -> Verdict:
        train, test = dense(rows)
        known = split.target >= 0
        model.fit(train[known], split.target[known])
        probability = model.predict_proba(test)[:, 1]
        share = float(split.target[known].mean())
        return Verdict((probability > share).astype(int), probability, probability)

    return method


def forest() -> Method:
    """Fit a random forest to the labelled rows."""
    return on_labels(RandomForestClassifier(TREES, random_state=0))


def boosting() -> Method:
    """Fit gradient boosting to the labelled rows."""
    return on_labels(GradientBoostingClassifier(random_state=0))


def machine(split: Split, rows: Prepared) -> Verdict:
    """Fit a balanced SVM with a Gaussian kernel, its C chosen by balanced cross-validation."""
    train, test = dense(rows)
    known = split.target >= 0
    search = tuned_machine(int(np.bincount(split.target[known]).min()))
    score = search.fit(train[known], split.target[known]).decision_function(test)
    return Verdict((score > 0).astype(int), score, None)


def tuned_machine(rarest: int) -> GridSearchCV:
    """Return an SVM whose C is searched, for so many labelled rows of the rarest class."""
    return GridSearchCV(
        SVC(class_weight="balanced"),
        {"C": [0.1, 1.0, 10.0, 100.0]},
        cv=StratifiedKFold(min(5, rarest), shuffle=True, random_state=0),
        scoring="balanced_accuracy",
    )


def self_trained_forest(split: Split, rows: Prepared) -> Verdict:
    """Fit scikit-learn's self-training over a balanced forest."""
    train, test = dense(rows)
    base = RandomForestClassifier(FEWER_TREES, class_weight="balanced", random_state=0)
    model = SelfTrainingClassifier(base, threshold=0.75).fit(train, split.target)
    probability = model.predict_proba(test)[:, 1]
    return Verdict((probability > 0.5).astype(int), probability, probability)


def implicitly_constrained(split: Split, rows: Prepared) -> Verdict:
    """Fit implicitly constrained least squares (Krijthe and Loog, 2017), a safe method.

    The unlabelled rows get those labels between 0 and 1 for which the least-squares fit to all rows
    has the smallest squared error on the labelled rows.
    """
    train, test = (np.column_stack([part, np.ones(len(part))]) for part in dense(rows))
    known = split.target >= 0
    labeled, others, classes = train[known], train[~known], split.target[known].astype(float)
    second = train.T @ train
    free = np.append(np.ones(len(second) - 1), 0.0)  # the bias is not penalised
    second += RIDGE * np.trace(second) / len(second) * np.diag(free)
    projected = np.linalg.solve(second, labeled.T).T
    residual = classes - projected @ (labeled.T @ classes)
    labels = lsq_linear(projected @ others.T, residual, bounds=(0.0, 1.0), lsq_solver="lsmr").x
    weights = np.linalg.solve(second, labeled.T @ classes + others.T @ labels)
    score = np.asarray(test @ weights)
    return Verdict((score > float(classes.mean())).astype(int), score, np.clip(score, 0.0, 1.0))
