"""Compare the classifier with TabPFN, and with what people use for ten classes.

    python -m benchmarks competitors --parts tasks tables
    python -m benchmarks competitors --parts classes --seeds 5
    python -m benchmarks competitors --stored --page docs/competitors.md

Three parts, each with the splits and the preprocessing of the comparison: the tasks for
confirmation and the check tables within TabPFN's limits (100 columns), and ten digits with 100
labels. TabPFN is left out, with a sentence, if it cannot be imported. Every draw of the labels is
stored in `--out`; the same command resumes, and `--stored` reports what there is.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from selftrain.arrays import Array
from selftrain.estimator.few_labels.classifier import FewLabelClassifier
from selftrain.runtime.progress import Progress

from ..json_lines import JsonLines
from ..markdown import between, table
from ..options import parser
from ..speed.measure import timed
from . import tables
from .competitors import Prepared, Verdict, logistic, prepared
from .measures import DEGRADATION, SMALLEST, measured
from .methods import METHODS, run
from .nonlinear import TREES, tuned_machine
from .run import LABELS, large_enough
from .summary import SUPERVISED
from .tabpfn import MOST_COLUMNS, TabPFN, fits, why_not
from .tasks import CONFIRMATION, TEN_CLASSES, RealTask, Split, split

MARKS = ("<!-- tables of the competitors -->", "<!-- end of the tables -->")
TABPFN = "TabPFN"
COMPARED = (
    *SUPERVISED,
    "self-training .9, balanced",
    "random forest",
    "boosting",
    "few labels",
)
"""The methods beside TabPFN."""

TEN_LABELS = 100


def by_tabpfn(parts: Split, rows: Prepared) -> Verdict:
    """Predict class 1 if its probability exceeds its proportion among the labelled rows, which is a
    balanced decision, as for the forest.
    """
    known = parts.target >= 0
    model = TabPFN().fit(parts.train[known], parts.target[known])
    probability = model.predict_proba(parts.test)[:, 1]
    share = float(parts.target[known].mean())
    return Verdict((probability > share).astype(int), probability, probability)


Model = Callable[[Prepared], Any]


def _multinomial(rows: Prepared) -> Any:
    """Return logistic regression by the solver that is fast for many classes."""
    return logistic(rows, None).set_params(solver="lbfgs")


ON_LABELS: dict[str, Model] = {
    "supervised": _multinomial,
    "random forest": lambda rows: RandomForestClassifier(TREES, random_state=0),
    "SVM": lambda rows: tuned_machine(5),
    TABPFN: lambda rows: TabPFN(),
}
"""Competitors for ten classes that are fitted to the labelled rows."""

ON_ALL: dict[str, Model] = {
    "self-training .9": lambda rows: SelfTrainingClassifier(_multinomial(rows), threshold=0.9),
    "label spreading": lambda rows: LabelSpreading("knn", n_neighbors=10),
    "label propagation": lambda rows: LabelPropagation("knn", n_neighbors=10),
    "few labels": lambda rows: FewLabelClassifier(random_state=0),
}
"""Those that are fitted to all rows."""

RAW = (TABPFN, "few labels")
"""Methods that get raw columns."""


def measured_on_two(task: RealTask, parts: Split) -> dict[str, Any]:
    """Return balanced error and log loss of all methods for two classes."""
    rows = prepared(parts, task.kind)
    methods = {name: METHODS[name] for name in COMPARED}
    if why_not() is None:
        methods[TABPFN] = by_tabpfn
    found = {}
    for name, method in methods.items():
        verdict, seconds = run(method, parts, rows)
        values = measured(verdict, parts.truth, float(parts.hidden.mean()))
        found[name] = _entry(values["balanced_error"], values["log_loss"], seconds)
    return found


def measured_on_ten(task: RealTask, parts: Split) -> dict[str, Any]:
    """Return error and log loss of all methods for ten classes."""
    rows = prepared(parts, task.kind)
    known = parts.target >= 0
    found = {}
    for name, model in {**ON_LABELS, **ON_ALL}.items():
        if name == TABPFN and not (why_not() is None and fits(parts.train, parts.target[known])):
            continue
        train, test = (parts.train, parts.test) if name in RAW else (rows.train, rows.test)
        used = known if name in ON_LABELS else np.full(len(known), True)
        taken, (wrong, probability) = timed(
            partial(_fitted, model(rows), train[used], parts.target[used], test, parts.truth)
        )
        found[name] = _entry(wrong, log_loss(probability, parts.truth), taken)
    return found


def _fitted(model: Any, rows: Any, target: Array, test: Any, truth: Array) -> tuple[float, Any]:
    """Return the error on test rows, and the class probabilities if the model has any."""
    model.fit(rows, target)
    if not hasattr(model, "predict_proba"):
        return float(np.mean(model.predict(test) != truth)), None
    probability = np.nan_to_num(model.predict_proba(test), nan=0.1)
    found = model.predict(test) if hasattr(model, "predict") else probability.argmax(axis=1)
    return float(np.mean(found != truth)), probability


def log_loss(probability: Any, truth: Array) -> float:
    """Return the log loss of class probabilities; NaN if there are none."""
    if probability is None:
        return float("nan")
    clipped = np.clip(probability, SMALLEST, None)
    own = clipped[np.arange(len(truth)), truth] / clipped.sum(axis=1)
    return float(-np.mean(np.log(own)))


def _entry(error: float, loss: float, seconds: float) -> dict[str, float]:
    return {"error": error, "log_loss": loss, "seconds": seconds}


def wanted(part: str, seeds: int) -> list[tuple[RealTask, int, int]]:
    """Return task, number of labels and seed of every run of a part: whole draws, one by one."""
    if part == "classes":
        return [(task, TEN_LABELS, seed) for seed in range(seeds) for task in TEN_CLASSES]
    tasks = CONFIRMATION if part == "tasks" else tables.tasks("check")
    small = [task for task in tasks if task.load().matrix.shape[1] <= MOST_COLUMNS]
    return [
        (task, labels, seed)
        for seed in range(seeds)
        for task in small
        for labels in LABELS
        if large_enough(task, labels)
    ]


def compute(part: str, store: JsonLines, seeds: int) -> None:
    """Compute the runs that are not in the store."""
    measure = measured_on_ten if part == "classes" else measured_on_two
    known = store.known("task", "labels", "seed")
    runs = wanted(part, seeds)
    with Progress(len(runs), part) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task, labels, seed in runs:
            if (task.name, labels, seed) not in known:
                found = measure(task, split(task, labels, seed))
                cell = {"task": task.name, "labels": labels, "seed": seed}
                store.add({**cell, "methods": found})
            progress.advance()


def report(part: str, runs: list[dict[str, Any]]) -> str:
    """Return the table of a part."""
    return ten_class_table(runs) if part == "classes" else two_class_table(runs)


def two_class_table(runs: list[dict[str, Any]]) -> str:
    """Return one line per method: balanced errors by number of labels, the difference to `few
    labels` with its standard error over tasks, degradation, log loss, processor seconds.
    """
    tasks = np.array([one["task"] for one in runs])
    labels = np.array([one["labels"] for one in runs])
    base = np.minimum(*(_column(runs, name) for name in SUPERVISED))
    lines = []
    for name in (*COMPARED, TABPFN):
        if not all(name in one["methods"] for one in runs):
            lines.append([name, "not run", *["–"] * 6])
            continue
        error = _column(runs, name)
        gaps = error - _column(runs, "few labels")
        by_task = np.array([gaps[tasks == each].mean() for each in sorted(set(tasks))])
        better = f"better on {np.sum(by_task < 0)}"
        degraded = 100 * np.mean(error > base + 100 * DEGRADATION)
        lines.append(
            [
                name,
                *(_mean(error[labels == size]) for size in LABELS),
                "" if name == "few labels" else f"{_with_error(by_task, '+.1f')}, {better}",
                "–" if name in SUPERVISED else f"{degraded:.1f}",
                f"{_column(runs, name, 'log_loss').mean() / 100:.3f}",
                f"{_column(runs, name, 'seconds').mean() / 100:.2f}",
            ]
        )
    head = ["", *map(str, LABELS), "less few labels", "degraded, %", "log loss", "s"]
    return f"{len(set(tasks))} tasks, {len(runs)} runs.\n\n{table(head, lines)}"


def _mean(values: Array) -> str:
    return f"{values.mean():.1f}" if len(values) else "–"


def _with_error(values: Array, form: str) -> str:
    """Return the mean and its standard error, of several values."""
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{values.mean():{form}}{error}"


def ten_class_table(runs: list[dict[str, Any]]) -> str:
    """Return one line per method: error and log loss on every data set."""
    lines = []
    for name in (*ON_LABELS, *ON_ALL):
        line = [name]
        for task in TEN_CLASSES:
            own = [one for one in runs if one["task"] == task.name and name in one["methods"]]
            if not own:
                line += ["not run", "–", "–"]
                continue
            error, loss = _column(own, name), _column(own, name, "log_loss") / 100
            line.append(_with_error(error, ".1f"))
            line.append("–" if np.isnan(loss).any() else f"{loss.mean():.3f}")
            line.append(f"{_column(own, name, 'seconds').mean() / 100:.1f}")
        lines.append(line)
    draws = [sum(one["task"] == task.name for one in runs) for task in TEN_CLASSES]
    heads = [
        head
        for task, drawn in zip(TEN_CLASSES, draws, strict=True)
        for head in (f"{task.name}, {drawn} draws", "log loss", "s")
    ]
    return table(["", *heads], lines)


def _column(runs: list[dict[str, Any]], name: str, measure: str = "error") -> Array:
    """Return a measure of a method in every run, in percent."""
    return 100 * np.array([one["methods"][name][measure] for one in runs])


HEADINGS = {
    "tasks": "Tasks for confirmation with at most 100 columns, balanced error in %",
    "tables": "Check tables with at most 100 columns, balanced error in %",
    "classes": "Ten digits, 100 labels, error in %",
}


def main(command: str, arguments: Sequence[str]) -> int:
    """Parse, compute, report."""
    options = parser(command, __doc__)
    options.add_argument("--parts", nargs="*", choices=HEADINGS, default=list(HEADINGS))
    options.add_argument("--seeds", type=int, default=1, help="draws of labels per task")
    options.add_argument("--out", type=Path, default=Path("out/competitors"), help="stored runs")
    options.add_argument("--stored", action="store_true", help="report stored runs only")
    options.add_argument("--page", type=Path, help="a page whose tables are replaced")
    asked = options.parse_args(arguments)
    reason = why_not()
    if reason is not None:
        print(f"{reason}.", file=sys.stderr)
    found = []
    for part in asked.parts:
        store = JsonLines(asked.out / f"{part}.jsonl")
        if not asked.stored:
            compute(part, store, asked.seeds)
        if store.rows:
            found.append(f"**{HEADINGS[part]}**\n\n{report(part, store.rows)}")
    text = "\n\n".join(found)
    print(text)
    if asked.page is not None:
        asked.page.write_text(between(asked.page.read_text(), MARKS, text))
    return 0
