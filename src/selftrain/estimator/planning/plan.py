"""`plan`: is a candidate better than a baseline on this data, and how certain is that?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from ...errors import InvalidInput
from ...runtime.parallel import one_thread
from ...runtime.progress import Progress, ProgressOption, checked_progress
from ..checks import check_finite, identifiers, text_columns
from . import text
from .assumptions import Assumptions, check
from .csv_rows import read_csv_rows
from .inputs import Input, read_input
from .models import (
    Evidence,
    Pair,
    checked,
    default_baseline,
    default_candidate,
    encoded,
    fit,
    gather,
    last_step,
    name_of,
    number_of_folds,
    safe_mode,
)
from .posterior import (
    Answer,
    Cells,
    Interval,
    Posterior,
    answer,
    by_cells,
    by_labels,
    error_interval,
    interval,
    labels_needed,
    odds_of,
    widened,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Plan", "plan", "plan_file"]

SUPERVISED = "supervised baseline"
"""Name of the default baseline in words."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Advice whether a candidate is better than a baseline, and its basis.

    Errors are balanced: the mean of the errors of the two classes.

    Attributes:
        advice: "do", "do not" or "cannot tell".
        reason: why, in two sentences.
        next_step: what to do now, in a sentence.
        names: of baseline and candidate.
        error: of baseline and candidate on the unlabelled samples, with 90 % intervals.
        gain: error of the baseline minus that of the candidate.
        degradation: probability that the candidate's error is larger by over 0.02.
        worthwhile: probability that it is smaller by over 0.01.
        more_labels: about how many labels would decide; None if decided already, or if none would.
        share: proportion of the positive class.
        sources: errors by "cells" and by "cross-validation", separately.
        cells: counts of samples by the classes of both models.
        models: the two models, not fitted.
        rows: what was given.
        assumptions: see `check_assumptions`.
        evidence: predictions of both models, and their fits.
        draws: of errors and gain.
    """

    advice: Answer
    reason: str
    next_step: str
    names: Pair
    error: Pair
    gain: Interval
    degradation: float
    worthwhile: float
    more_labels: int | None
    share: Interval
    sources: dict[str, Pair]
    cells: Cells
    models: Pair
    rows: Input
    assumptions: Assumptions
    evidence: Evidence
    draws: Posterior

    def model(self) -> Any:
        """Return the fitted model to use.

        After "do" the candidate, after "do not" the baseline, after "cannot tell" the candidate in
        its safe mode, or the baseline if it has none (no parameter `safe`).
        """
        if self.advice == "do":
            return self.evidence.fitted.candidate
        safe = safe_mode(self.models.candidate) if self.advice == "cannot tell" else None
        if safe is None:
            return self.evidence.fitted.baseline
        with one_thread():
            return fit(safe, self.rows, self.rows.codes >= 0)

    def details(self) -> str:
        """Return what the advice is made of: samples, cells, sources and assumptions."""
        return text.details(self)

    def check_assumptions(self) -> Assumptions:
        """Return what the numbers assume, whether it holds, and what a violation does."""
        return self.assumptions

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return text.as_dict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return errors of every source, one row each."""
        return text.as_frame(self)

    def plot(self, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
        """Draw errors and the law of the gain, or one `panel` of them on `ax`."""
        from ...plots.plan_card import plot_plan

        return plot_plan(self, panel=panel, ax=ax)

    def __str__(self) -> str:
        return text.as_text(self)

    def __repr__(self) -> str:
        return f"Plan({self.advice!r}, gain {self.gain})"

    def _repr_html_(self) -> str:
        from ...plots.plan_card import plan_card

        return plan_card(self)


def plan(
    X: Any,
    y: Any,
    *,
    baseline: Any = None,
    candidate: Any = None,
    unlabeled: Any = -1,
    positive: Any = None,
    encode: bool = False,
    random_state: Any = 0,
    progress: ProgressOption = None,
) -> Plan:
    """Say whether a candidate is better than a baseline on this data.

    Arguments:
        X: samples by columns: an array, a DataFrame, a sparse matrix or a Dask array; whatever
            both models take.
        y: the class of each sample; `unlabeled`, NaN, None or an empty string if unlabelled.
        baseline: any classifier of scikit-learn's conventions; by default a supervised linear
            model, its ridge chosen by cross-validation.
        candidate: another one; by default the package's classifier for few labels. Models of
            `sklearn.semi_supervised`, and those with a parameter `unlabeled`, are fitted to all
            samples, any other to the labelled ones.
        unlabeled: the marker of unlabelled samples in `y`.
        positive: the class to plan against all others; needed with more than two. The model then
            predicts strings, also of classes that are numbers: `"5"` and `"the rest"`.
        encode: one-hot encode columns of text.
        random_state: seed of folds, draws and default models.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(n_class=2, return_X_y=True)
    >>> advice = plan(X, np.where(np.arange(len(digit)) < 40, digit, -1))
    >>> advice.advice, advice.error.baseline.high < 0.2
    ('do not', True)
    """
    random = check_random_state(random_state)
    rows = read_input(X, y, unlabeled, positive, random)
    return plan_rows(rows, _models(rows.X, baseline, candidate, encode, random), random, progress)


def _models(
    X: Any, baseline: Any, candidate: Any, encode: bool, random: np.random.RandomState
) -> Pair:
    """Return both models, the defaults where none is given."""
    if not isinstance(encode, bool):
        raise InvalidInput("encode", encode, "must be True or False")
    seed, texts = random.randint(2**31 - 1), text_columns(X)
    if baseline is None or candidate is None:
        if texts and not encode:
            accepted = (
                "columns must be numbers; encode=True (on the command line --encode) makes a column"
                " of 0 and 1 for each value of a text column"
            )
            if counting := identifiers(X[texts]):
                names = ", ".join(map(repr, counting))
                accepted += f"; drop {names} first if it is an identifier"
            raise InvalidInput("X", texts, accepted)
        if texts:  # a model would name the columns of the encoded table
            numbers = X.drop(columns=texts)
            check_finite(numbers, numbers.to_numpy(dtype=float, na_value=np.nan), allow_nan=True)
        if isinstance(X, np.ndarray) and X.dtype.kind in "US":
            accepted = "must be numbers; pass a DataFrame and encode=True for columns of text"
            raise InvalidInput("X", "text", accepted)
    models = Pair(
        default_baseline(seed) if baseline is None else checked("baseline", baseline),
        default_candidate(seed) if candidate is None else checked("candidate", candidate),
    )
    return Pair(*(encoded(model, texts) for model in models)) if encode and texts else models


def plan_file(
    path: Path,
    target: str,
    *,
    unlabeled: str = "-1",
    positive: Any = None,
    encode: bool = False,
    seed: int = 0,
    progress: ProgressOption = None,
) -> Plan:
    """Plan for a CSV file, which is read in chunks; `target` is the column of the classes."""
    random = check_random_state(seed)
    table = read_csv_rows(path, target, unlabeled, seed, progress)
    marker = unlabeled.strip()  # also for empty cells, so that messages name it
    y = np.array([name if isinstance(name, str) else marker for name in table.y], dtype=object)
    rows = table.complete(read_input(table.X, y, marker, positive, random))
    return plan_rows(rows, _models(rows.X, None, None, encode, random), random, progress)


def plan_rows(
    rows: Input, models: Pair, random: np.random.RandomState, progress: ProgressOption = None
) -> Plan:
    """Plan for samples that were read and checked."""
    labels = int((rows.codes >= 0).sum())
    fits = 1 + number_of_folds(labels)
    with Progress(fits, "fits", checked_progress(progress)) as bar, one_thread():
        evidence = gather(rows, models, random, bar.advance)
    draw = np.random.default_rng(random.randint(2**31))
    cells = evidence.cells(rows.unlabeled)
    main, other = by_cells(cells, draw), by_labels(cells, draw)
    found = widened(main, other, draw)
    odds = odds_of(found)
    advice = answer(odds)
    more = labels_needed(cells, draw) if advice == "cannot tell" else None
    names = _names(models)
    safe = safe_mode(models.candidate) is not None
    use = f"{names.candidate} in safe mode" if safe else "that of the baseline"
    return Plan(
        advice=advice,
        reason=text.reason(advice, odds, cells, names),
        next_step=text.next_step(advice, more, rows.unlabeled, names, use),
        names=names,
        error=_intervals(found),
        gain=interval(found.gain),
        degradation=float(odds.degradation),
        worthwhile=float(odds.worthwhile),
        more_labels=more,
        share=interval(found.share),
        sources={"cells": _intervals(main), "cross-validation": _intervals(other)},
        cells=cells,
        models=models,
        rows=rows,
        assumptions=check(rows, cells),
        evidence=evidence,
        draws=found,
    )


def _intervals(found: Posterior) -> Pair:
    return Pair(error_interval(found.baseline), error_interval(found.candidate))


def _names(models: Pair) -> Pair:
    """Return the names of both models; the same class twice is told apart."""
    names = Pair(*map(name_of, models))
    if getattr(getattr(last_step(models.baseline), "settings", None), "steps", None) == 0:
        return names._replace(baseline=SUPERVISED)
    if names.baseline == names.candidate:
        return Pair(*(f"{name} ({role})" for role, name in names._asdict().items()))
    return names
