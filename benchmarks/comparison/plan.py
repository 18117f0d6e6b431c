"""How far a plan can be trusted: its intervals and its advice against what really came out.

    python -m benchmarks plan                         run what is missing, then print the tables
    python -m benchmarks plan --part development      only the tasks for development
    python -m benchmarks plan --counted 1             intervals if a held-out row counted as this

Every run draws labels from a task whose classes are all known, asks `plan`, fits with and without
self-training, and measures both balanced errors on all rows that were not labelled. One line per
run is stored in out/plan.jsonl, with the counts in the cells of the plan; the same command resumes.
Degradation is also judged against scikit-learn's balanced logistic regression, which shares no code
with the plan.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain import SelfTrainingLinearClassifier, plan
from selftrain.estimator.planning.plan import SUPERVISED
from selftrain.estimator.planning.posterior import (
    DRAWS,
    Cells,
    cells_of,
    interval,
    positive_shares,
    posterior,
)

from ..json_lines import JsonLines
from ..markdown import table as as_table
from ..options import parser
from .measures import DEGRADATION, balanced_error
from .run import LABELS as SIZES

ROUNDING = 1e-12  # an end may be exactly what came out, from other sums of the same counts
FITS = ("supervised", "self_training", "fully_supervised")

Task = tuple[np.ndarray, np.ndarray]


def digits(first: int, second: int | None = None) -> Task:
    """Return a pair of digits, or one against the rest."""
    X, digit = load_digits(return_X_y=True)
    if second is None:
        return X, (digit == first) * 1
    chosen = np.isin(digit, (first, second))
    return X[chosen], (digit[chosen] == second) * 1


def wine(kind: int) -> Task:
    """Return one cultivar against the rest."""
    X, cultivar = load_wine(return_X_y=True)
    return X, (cultivar == kind) * 1


def table(kind: str, seed: int) -> Task:
    """Return 2,000 synthetic samples with 30 features of different units.

    `kind` names what is special about them.
    """
    random = np.random.default_rng(seed)
    rows, columns = 2000, 30
    classes = (random.random(rows) < (0.2 if kind == "rare" else 0.5)) * 1
    side = (2 * classes - 1)[:, None]
    X = random.normal(size=(rows, columns)) * np.exp(0.5 * random.normal(size=columns))
    if kind == "blobs":
        blobs: Task = make_classification(
            rows, columns, n_informative=8, n_redundant=4, class_sep=1.2, random_state=seed
        )
        return blobs
    if kind == "heavy tails":
        X *= np.sqrt(3 / random.chisquare(3, size=rows))[:, None]
        X[:, :10] += 0.45 * side
    elif kind == "other clusters":
        X[:, 0] += 4 * random.choice([-1, 1], rows)
        X[:, 1:9] += 0.5 * side * X[:, 1:9].std(axis=0)
    elif kind != "noise":
        X[:, :10] += (0.25 if kind == "weak" else 0.5) * side * X[:, :10].std(axis=0)
    return X, classes


DEVELOPMENT: dict[str, Callable[[], Task]] = {
    **{
        f"digits {a}-{b}": partial(digits, a, b)
        for a, b in ((4, 9), (3, 8), (1, 7), (5, 8), (2, 3))
    },
    **{f"digit {a}": partial(digits, a) for a in (8, 3, 0)},
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine 1": lambda: wine(1),
    "wine 2": lambda: wine(2),
    **{
        f"table, {kind}": partial(table, kind, 0)
        for kind in ("Gaussian", "rare", "heavy tails", "other clusters", "blobs", "noise", "weak")
    },
}

CONFIRMATION: dict[str, Callable[[], Task]] = {
    "digits 7-9": lambda: digits(7, 9),
    "digits 5-6": lambda: digits(5, 6),
    "digit 9": lambda: digits(9),
    "digit 2": lambda: digits(2),
    "wine 0": lambda: wine(0),
    **{f"table 2, {kind}": partial(table, kind, 7) for kind in ("Gaussian", "rare", "blobs")},
}

Parts = dict[str, dict[str, Callable[[], Task]]]
PARTS: Parts = {"development": DEVELOPMENT, "confirmation": CONFIRMATION}


def one_run(task: Task, labels: int, seed: int) -> dict[str, Any]:
    """Return a plan and what came out."""
    X, classes = task
    labeled = labeled_rows(classes, labels, seed)
    y = np.full(len(classes), -1)
    y[labeled] = classes[labeled]
    advice = plan(X, y, random_state=seed, progress=False)
    hidden = y < 0
    own = advice.evidence.unlabeled.supervised > 0  # scores of the hidden rows, in their order
    planned = {k: v for k, v in advice.parameters.items() if k not in SUPERVISED}
    model = SelfTrainingLinearClassifier(**planned, random_state=seed).fit(X, y)
    trained = balanced_error(model.predict(X[hidden]), classes[hidden])
    supervised = supervised_baseline(X[labeled], classes[labeled])
    every = _fully_supervised(X, classes)
    rows = int(hidden.sum())
    cells = cells_of(advice.evidence, np.ones(rows), rows)
    return {
        "plan": advice.to_dict(),
        "cells": {name: np.asarray(value).tolist() for name, value in cells._asdict().items()},
        "real": {
            "supervised": balanced_error(own.astype(float), classes[hidden]),
            "scikit_learn": balanced_error(supervised.predict(X[hidden]), classes[hidden]),
            "self_training": trained,
            "fully_supervised": every,
        },
    }


def labeled_rows(classes: np.ndarray, labels: int, seed: int) -> np.ndarray:
    """Return rows to label, at random, with two or more of each class."""
    random = np.random.RandomState(seed)
    while True:
        chosen = random.choice(len(classes), labels, replace=False)
        if np.bincount(classes[chosen], minlength=2).min() >= 2:
            return chosen


def _logistic(inverse_ridge: float = 1.0) -> Any:
    return make_pipeline(
        StandardScaler(),
        LogisticRegression(C=inverse_ridge, class_weight="balanced", max_iter=2000),
    )


def supervised_baseline(X: np.ndarray, classes: np.ndarray) -> Any:
    """Fit balanced logistic regression, its ridge by cross-validation: what people would do without
    self-training.
    """
    folds = min(5, int(np.bincount(classes).min()))
    grid = {"logisticregression__C": 10.0 ** np.arange(-3, 1.1, 0.5)}
    search = GridSearchCV(_logistic(), grid, scoring="neg_log_loss", cv=folds)
    return search.fit(X, classes)


def _fully_supervised(X: np.ndarray, classes: np.ndarray) -> float:
    """Return the error of two halves, each judged by the fit to the other: what so many labels
    reach, on rows not fitted.
    """
    half = np.random.RandomState(0).permutation(len(classes)) % 2
    errors = [
        balanced_error(_logistic(0.1).fit(X[half == a], classes[half == a]).predict(X[half != a]),
                        classes[half != a])
        for a in (0, 1)
    ]  # fmt: skip
    return float(np.mean(errors))


def run_missing(path: Path, seeds: int, parts: Parts) -> list[dict[str, Any]]:
    """Return all runs of these parts; those of earlier calls are read from the file."""
    store = JsonLines(path)
    done = store.known("task", "labels", "seed")
    for seed in range(seeds):
        for part, tasks in parts.items():
            for name, make in tasks.items():
                task = make()
                for labels in SIZES:
                    if (name, labels, seed) in done or 3 * labels > len(task[1]):
                        continue
                    own = zlib.crc32(f"{name} {labels} {seed}".encode()) % 2**31
                    cell = {"task": name, "part": part, "labels": labels, "seed": seed}
                    run = {**cell, **one_run(task, labels, own)}
                    store.add(run)
                    print(name, labels, seed, run["plan"]["advice"], flush=True)
    return [run for run in store.rows if run["part"] in parts and run["seed"] < seeds]


def counted_as(run: dict[str, Any], counted: float) -> dict[str, Any]:
    """Return the run with the intervals it had if a held-out row counted as `counted` of a row; the
    error of the fully supervised fit and the advice stay.
    """
    found = run["cells"]
    sizes, positive, negative = (np.array(found[key]) for key in ("sizes", "positive", "negative"))
    cells = Cells(sizes, positive, negative, found["share"], found["rows"])
    shares = positive_shares(cells, np.random.default_rng(run["seed"]), (DRAWS,), counted)
    drawn = posterior(cells.sizes, shares)
    error = run["plan"]["error"] | {
        "supervised": interval(drawn.supervised)._asdict(),
        "self_training": interval(drawn.trained)._asdict(),
    }
    return run | {"plan": run["plan"] | {"error": error, "gain": interval(drawn.gain)._asdict()}}


def groups_of(runs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the runs by part and number of labels."""
    groups = {}
    for part in PARTS:
        own = [run for run in runs if run["part"] == part]
        for labels in SIZES:
            groups[f"{part}, {labels} labels"] = [r for r in own if r["labels"] == labels]
        groups[f"{part}, all"] = own
    return {name: group for name, group in groups.items() if group}


def intervals(groups: dict[str, list[dict[str, Any]]]) -> str:
    """Return how often 90 % intervals contained what came out, and the width of those of
    self-training, in Markdown.
    """
    head = "runs", "", "supervised", "self-training", "fully supervised", "gain", "width"
    rows = []
    for name, group in groups.items():
        shares = [_percent([_covered(r, fit) for r in group]) for fit in (*FITS, "gain")]
        told = [r["plan"]["error"]["self_training"] for r in group]
        width = np.mean([each["high"] - each["low"] for each in told])
        rows.append((name, str(len(group)), *shares, f"{width:.3f}"))
    return as_table(head, rows)


def advices(groups: dict[str, list[dict[str, Any]]]) -> str:
    """Return what followed each advice, in Markdown."""
    head = "runs", "advice", "given", "degraded", "against scikit-learn", "mean gain", "gain > 0.01"
    rows = []
    for name, group in groups.items():
        for advice in ("do", "do not", "cannot tell"):
            chosen = [r for r in group if r["plan"]["advice"] == advice]
            if chosen:
                gains = np.array([_gain(r) for r in chosen])
                others = np.array([_gain(r, "scikit_learn") for r in chosen])
                degraded = [_percent(found < -DEGRADATION) for found in (gains, others)]
                given = f"{len(chosen)} of {len(group)}"
                gained = f"{gains.mean():+.3f}", _percent(gains > 0.01)
                rows.append((name, advice, given, *degraded, *gained))
    return as_table(head, rows)


def _gain(run: dict[str, Any], baseline: str = "supervised") -> float:
    return float(run["real"][baseline] - run["real"]["self_training"])


def _covered(run: dict[str, Any], fit: str) -> bool:
    told = run["plan"]["gain"] if fit == "gain" else run["plan"]["error"][fit]
    truth = _gain(run) if fit == "gain" else run["real"][fit]
    return bool(told["low"] - ROUNDING <= truth <= told["high"] + ROUNDING)


def _percent(found: Any) -> str:
    return f"{100 * np.mean(found):.0f} %"


def main(command: str, arguments: Sequence[str]) -> int:
    """Run and print."""
    options = parser(command, __doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--out", type=Path, default=Path("out/plan.jsonl"))
    options.add_argument("--part", choices=PARTS, help="run these tasks only")
    options.add_argument("--counted", type=float, help="what a held-out row counts as")
    asked = options.parse_args(arguments)
    warnings.simplefilter("ignore")
    parts = {asked.part: PARTS[asked.part]} if asked.part else PARTS
    runs = run_missing(asked.out, asked.seeds, parts)
    if asked.counted is not None:
        print(intervals(groups_of([counted_as(run, asked.counted) for run in runs])))
        return 0
    groups = groups_of(runs)
    print(intervals(groups), advices(groups), sep="\n\n")
    return 0
