"""Which samples to label next: disputed ones, uncertain ones, or any? (A minute of processor time.)

Starting with 20 random labels, 20 more are queried in three ways; then self-training is fitted
again, and its balanced error is measured on the samples that none of the ways queried. "Disputed"
is what a plan could offer: samples on which the supervised fit and self-training disagree, those
with the largest disagreement first.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain import SelfTrainingLinearClassifier
from selftrain.estimator import Settings

from ..markdown import table
from ..options import parser
from .measures import balanced_error
from .plan import CONFIRMATION, DEVELOPMENT, labeled_rows

TASKS = {**DEVELOPMENT, **CONFIRMATION}
START, MORE, SEEDS = 20, 20, 2
WAYS = ("random", "uncertain", "disputed")


def one_run(X: np.ndarray, classes: np.ndarray, seed: int) -> list[float]:
    """Return the balanced error after querying labels in each of the `WAYS`."""
    labeled = labeled_rows(classes, START, seed)
    y = np.full(len(classes), -1)
    y[labeled] = classes[labeled]
    others = np.flatnonzero(y < 0)
    model = _fit(X, y)
    trained = model.decision_function(X[others])
    supervised = _supervised(X[labeled], classes[labeled]).decision_function(X[others])
    supervised *= np.std(trained) / np.std(supervised)
    dispute = np.where(np.sign(trained) == np.sign(supervised), 0.0, np.abs(trained - supervised))
    orders = {
        "random": np.random.RandomState(seed).permutation(len(others)),
        "uncertain": np.argsort(np.abs(trained)),
        "disputed": np.lexsort((np.abs(trained), -dispute)),
    }
    asked = {way: others[orders[way][:MORE]] for way in WAYS}
    left = np.setdiff1d(others, np.concatenate(list(asked.values())))
    errors = []
    for way in WAYS:
        more = y.copy()
        more[asked[way]] = classes[asked[way]]
        errors.append(balanced_error(_fit(X, more).predict(X[left]), classes[left]))
    return errors


def _supervised(X: np.ndarray, classes: np.ndarray) -> GridSearchCV:
    """Fit balanced logistic regression, its ridge by cross-validation."""
    linear = LogisticRegression(class_weight="balanced", max_iter=2000)
    grid = {"logisticregression__C": 10.0 ** np.arange(-3, 1.1, 0.5)}
    folds = min(5, int(np.bincount(classes).min()))
    model = make_pipeline(StandardScaler(), linear)
    return GridSearchCV(model, grid, scoring="neg_log_loss", cv=folds).fit(X, classes)


def _fit(X: np.ndarray, y: np.ndarray) -> SelfTrainingLinearClassifier:
    settings = Settings(anchor=10.0)
    model = SelfTrainingLinearClassifier(class_weight="balanced", settings=settings, random_state=0)
    return model.fit(X, y)


def main(command: str, arguments: Sequence[str]) -> int:
    """Run the study and print the errors."""
    parser(command, __doc__).parse_args(arguments)
    warnings.simplefilter("ignore")
    found = []
    for name, make in TASKS.items():
        runs = [one_run(*make(), seed) for seed in range(SEEDS)]
        found.append(np.mean(runs, axis=0))
        print(name, *(f"{error:.3f}" for error in found[-1]), file=sys.stderr, flush=True)
    errors = np.array(found)
    lines = {**dict(zip(TASKS, errors, strict=True)), "mean": errors.mean(axis=0)}
    rows = [(name, *(f"{error:.3f}" for error in line)) for name, line in lines.items()]
    print(table(("task", *WAYS), rows))
    for column, way in ((0, "random"), (1, "uncertain")):
        gap = errors[:, column] - errors[:, 2]
        spread = gap.std(ddof=1) / np.sqrt(len(gap))
        print(f"disputed better than {way} by {gap.mean():+.4f} ± {spread:.4f}")
    return 0
