"""Reliability of plans: their intervals and advice compared with measured errors.

    python -m benchmarks plan                         compute missing runs, then print the tables
    python -m benchmarks plan --part development      only the tasks for development
    python -m benchmarks plan --pair forest           another pair of models
    python -m benchmarks plan --counted 1             intervals with this weight of held-out samples

Every run draws labels from a task whose classes are all known, makes a plan, and measures the
balanced errors of both models on all samples that were not labelled. One line per run is stored in
out/plan-PAIR.jsonl, with the counts in the cells of the plan; the same command resumes. Degradation
after following the advice is relative to the baseline of the plan.
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
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain import SelfTrainingLinearClassifier, plan
from selftrain.estimator.planning.posterior import (
    Cells,
    by_cells,
    by_labels,
    error_interval,
    interval,
    widened,
)

from ..json_lines import JsonLines
from ..markdown import table as as_table
from ..options import parser
from .measures import DEGRADATION, balanced_error
from .run import LABELS as SIZES

ROUNDING = 1e-12  # the end of an interval may equal the measured error up to rounding
TOLD = ("baseline", "candidate", "gain")

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

    `kind` is their special property, as in `DEVELOPMENT`: "rare", "heavy tails", "noise", ...
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


def forest(seed: int) -> dict[str, Any]:
    """Return two supervised models that are independent of the package."""
    linear = LogisticRegression(C=0.1, class_weight="balanced", max_iter=2000)
    trees = RandomForestClassifier(60, class_weight="balanced_subsample", random_state=seed)
    return {"baseline": make_pipeline(StandardScaler(), linear), "candidate": trees}


def self_training(seed: int) -> dict[str, Any]:
    """Return anchored self-training as the candidate, with the default baseline."""
    return {"candidate": SelfTrainingLinearClassifier(class_weight="balanced", random_state=seed)}


PAIRS: dict[str, Callable[[int], dict[str, Any]]] = {
    "default": lambda seed: {},
    "self-training": self_training,
    "forest": forest,
}


def one_run(task: Task, labels: int, seed: int, pair: str) -> dict[str, Any]:
    """Return a plan and the measured errors of its models."""
    X, classes = task
    labeled = labeled_rows(classes, labels, seed)
    y = np.full(len(classes), -1)
    y[labeled] = classes[labeled]
    advice = plan(X, y, **PAIRS[pair](seed), random_state=seed, progress=False)
    hidden = y < 0
    called = advice.evidence.unlabeled  # of the hidden samples, in their order
    used = advice.model().predict(X[hidden])
    return {
        "plan": advice.to_dict(),
        "real": {
            "baseline": balanced_error(called.baseline.astype(int), classes[hidden]),
            "candidate": balanced_error(called.candidate.astype(int), classes[hidden]),
            "model": balanced_error(used, classes[hidden]),
        },
    }


def labeled_rows(classes: np.ndarray, labels: int, seed: int) -> np.ndarray:
    """Return random rows to label, with two or more of each class."""
    random = np.random.RandomState(seed)
    while True:
        chosen = random.choice(len(classes), labels, replace=False)
        if np.bincount(classes[chosen], minlength=2).min() >= 2:
            return chosen


def run_missing(path: Path, seeds: int, parts: Parts, pair: str) -> list[dict[str, Any]]:
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
                    run = {**cell, **one_run(task, labels, own, pair)}
                    store.add(run)
                    print(name, labels, seed, run["plan"]["advice"], flush=True)
    return [run for run in store.rows if run["part"] in parts and run["seed"] < seeds]


def counted_as(run: dict[str, Any], counted: float) -> dict[str, Any]:
    """Return the run with the intervals recomputed with the weight `counted` of a held-out sample;
    the advice is unchanged.
    """
    found = run["plan"]["cells"]
    sizes, positive, negative = (np.array(found[key]) for key in ("sizes", "positive", "negative"))
    cells = Cells(sizes, positive, negative, run["plan"]["rows"]["unlabeled"])
    draw = np.random.default_rng(run["seed"])
    drawn = widened(by_cells(cells, draw, counted), by_labels(cells, draw, counted), draw)
    error = {name: error_interval(getattr(drawn, name))._asdict() for name in TOLD[:2]}
    gain = interval(drawn.gain)._asdict()
    return run | {"plan": run["plan"] | {"error": error, "gain": gain}}


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
    """Return a Markdown table: how often the 90 % intervals contained the measured values, with
    standard errors over tasks, and the mean width of the candidate's intervals.
    """
    rows = []
    for name, group in groups.items():
        shares = [_covered_share(group, told) for told in TOLD]
        widths = [r["plan"]["error"]["candidate"] for r in group]
        width = np.mean([each["high"] - each["low"] for each in widths])
        rows.append((name, str(len(group)), *shares, f"{width:.3f}"))
    return as_table(("runs", "", *TOLD, "width"), rows)


def _covered_share(group: list[dict[str, Any]], told: str) -> str:
    """Return the percentage of intervals that cover the measured value, with its standard error
    over tasks, because runs of one task are not independent.
    """
    tasks = sorted({run["task"] for run in group})
    per_task = np.array(
        [
            [sum(found), len(found)]
            for found in ([_covered(r, told) for r in group if r["task"] == t] for t in tasks)
        ]
    )
    share = per_task[:, 0].sum() / per_task[:, 1].sum()
    apart = per_task[:, 0] - share * per_task[:, 1]
    error = np.sqrt((apart**2).sum() * len(tasks) / max(len(tasks) - 1, 1)) / per_task[:, 1].sum()
    return f"{100 * share:.0f} ± {100 * error:.0f} %"


def advices(groups: dict[str, list[dict[str, Any]]]) -> str:
    """Return a Markdown table of degradation and gain after each advice."""
    head = (
        *("runs", "advice", "given", "candidate degraded", "model() degraded"),
        *("mean gain of the candidate", "of model()"),
    )
    rows = []
    for name, group in groups.items():
        for advice in ("do", "do not", "cannot tell"):
            chosen = [r for r in group if r["plan"]["advice"] == advice]
            if chosen:
                gains = [np.array([_gain(r, of) for r in chosen]) for of in ("candidate", "model")]
                degraded = [_percent(found < -DEGRADATION) for found in gains]
                means = [f"{found.mean():+.3f}" for found in gains]
                rows.append((name, advice, f"{len(chosen)} of {len(group)}", *degraded, *means))
    return as_table(head, rows)


def _gain(run: dict[str, Any], of: str = "candidate") -> float:
    return float(run["real"]["baseline"] - run["real"][of])


def _covered(run: dict[str, Any], name: str) -> bool:
    told = run["plan"]["gain"] if name == "gain" else run["plan"]["error"][name]
    truth = _gain(run) if name == "gain" else run["real"][name]
    return bool(told["low"] - ROUNDING <= truth <= told["high"] + ROUNDING)


def _percent(found: Any) -> str:
    return f"{100 * np.mean(found):.0f} %"


def main(command: str, arguments: Sequence[str]) -> int:
    """Compute missing runs and print the tables."""
    options = parser(command, __doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--pair", choices=PAIRS, default="default", help="the two models")
    options.add_argument("--out", type=Path, help="by default out/plan-PAIR.jsonl")
    options.add_argument("--part", choices=PARTS, help="run these tasks only")
    options.add_argument("--counted", type=float, help="what a held-out sample counts as")
    asked = options.parse_args(arguments)
    warnings.simplefilter("ignore")
    parts = {asked.part: PARTS[asked.part]} if asked.part else PARTS
    path = asked.out or Path(f"out/plan-{asked.pair}.jsonl")
    runs = run_missing(path, asked.seeds, parts, asked.pair)
    if asked.counted is not None:
        print(intervals(groups_of([counted_as(run, asked.counted) for run in runs])))
        return 0
    groups = groups_of(runs)
    print(intervals(groups), advices(groups), sep="\n\n")
    return 0
