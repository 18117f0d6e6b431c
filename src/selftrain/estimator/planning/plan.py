"""`plan`: is self-training worth it on these rows, and how sure can one be?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from ...errors import InvalidInput
from ...recipe import Recipe
from ...runtime.parallel import one_thread
from ...runtime.progress import Progress, ProgressOption, checked_progress
from ..normality import departure
from ..prepared import Prepared, prepare
from ..setting import TABLE
from . import text
from .advice import Answer, answer, labels_needed, odds_of
from .assumptions import Assumptions, check
from .csv_rows import read_csv_rows
from .evidence import FOLDS, Evidence, gather, in_coordinates
from .inputs import Input, read_input
from .posterior import DRAWS, Interval, cells_of, interval, positive_shares, posterior
from .sources import SURROGATES, Errors, headline, predict, worth_labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Plan", "plan", "plan_file"]

LABELS_ALONE: dict[str, Any] = {"steps": 0, "metrics": 0.0}
"""Parameters with which the classifier is the supervised fit of a plan."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Advice before self-training, with what it rests on. All errors are balanced: the mean of the
    two class errors.

    Attributes:
        advice: "do", "do not" or "cannot tell".
        reason: why, in a sentence.
        error: of labels only, self-training and every label, each with a 90 % interval: the first
            two from left-out labelled rows, the third as far below as the surrogate has it.
        gain: by how much self-training errs less than labels only.
        harm: probability that it errs more by over 0.02.
        worth_labels: how many further labels it is worth.
        more_labels: about how many labels would decide; None if decided already, or if none would.
        share: of the positive class.
        separation: half the distance of the class means in units of the noise.
        effective_dimension: how many directions carry the noise.
        kurtosis: excess of the fourth power of the distance, 0 for Gaussian rows.
        sources: errors by "left-out rows", "surrogate" and "theory", apart.
        parameters: for `SelfTrainingLinearClassifier`, to make the fit that was planned; after "do
            not", that of the labels alone.
        recipe: a `Recipe` for the method "paper", its first ridge chosen on left-out rows.
        rows: what was given.
        assumptions: see `check_assumptions`.
        evidence: scores of both fits.
    """

    advice: Answer
    reason: str
    error: Errors
    gain: Interval
    harm: float
    worth_labels: Interval
    more_labels: int | None
    share: Interval
    separation: float
    effective_dimension: float
    kurtosis: float
    sources: dict[str, Errors]
    parameters: dict[str, Any]
    recipe: Recipe
    rows: Input
    assumptions: Assumptions
    evidence: Evidence

    def check_assumptions(self) -> Assumptions:
        """What the numbers assume, whether the rows bear it out, and what a breach does."""
        return self.assumptions

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return text.as_dict(self)

    def to_frame(self) -> pd.DataFrame:
        """Errors of every source, one row each."""
        return text.as_frame(self)

    def plot(self, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
        """Errors by source, and the scores of the rows; one `panel` of them on `ax`."""
        from ...plots.plan import plot_plan

        return plot_plan(self, panel=panel, ax=ax)

    def __str__(self) -> str:
        return text.as_text(self)

    def __repr__(self) -> str:
        return (
            f"Plan({self.advice!r}, self-training {self.error.self_training}, labels only"
            f" {self.error.labels_only})"
        )

    def _repr_html_(self) -> str:
        from ...plots.plan import plan_card

        return plan_card(self)


def plan(
    X: Any,
    y: Any,
    *,
    unlabeled: Any = -1,
    positive: Any = None,
    encode: bool = False,
    random_state: Any = 0,
    progress: ProgressOption = None,
) -> Plan:
    """Say whether self-training is worth it on these rows.

    Arguments:
        X: rows by columns: an array, a DataFrame, a sparse matrix or a Dask array.
        y: the class of each row, `unlabeled` where it is not known.
        unlabeled: the marker of a row without a label.
        positive: the class to plan against all others; needed with more than two.
        encode: make columns of 0 and 1 out of columns of text.
        random_state: for folds, samples and draws.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(n_class=2, return_X_y=True)
    >>> advice = plan(X, np.where(np.arange(len(digit)) < 40, digit, -1))
    >>> advice.error.self_training.high < 0.2
    True
    """
    if not isinstance(encode, bool):
        raise InvalidInput("encode", encode, "True or False is accepted")
    random = check_random_state(random_state)
    return plan_rows(read_input(X, y, unlabeled, positive, encode, random), random, progress)


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
    """The plan of a CSV file, which is read in pieces; `target` is the column of the classes."""
    random = check_random_state(seed)
    table = read_csv_rows(path, target, unlabeled, seed, progress)
    marker = unlabeled.strip()  # in place of empty cells too, so that messages name it
    y = np.array([name if isinstance(name, str) else marker for name in table.y], dtype=object)
    read = read_input(table.X, y, marker, positive, encode, random)
    return plan_rows(table.complete(read), random, progress)


def plan_rows(rows: Input, random: np.random.RandomState, progress: ProgressOption = None) -> Plan:
    """The plan of rows that were read and checked."""
    ones = np.ones(len(rows.codes))
    fits = FOLDS + SURROGATES + 3
    with Progress(fits, "fits", checked_progress(progress)) as bar, one_thread():
        prepared = in_coordinates(
            prepare(rows.matrix, rows.codes, ones, "auto", 8.0, TABLE.directions, random)
        )
        parameters, rows = _planned(prepared, rows)
        bar.advance()
        evidence = gather(prepared, TABLE, random, bar.advance)
        sizes = (rows.labeled, rows.unlabeled)
        predictions = predict(prepared, evidence, TABLE, sizes, random, bar.advance)
    draw = np.random.default_rng(random.randint(2**31))
    cells = cells_of(evidence, prepared.unlabeled.weights, rows.unlabeled)
    found = posterior(cells.sizes, positive_shares(cells, draw, (DRAWS,)))
    odds = odds_of(found)
    error = headline(found, predictions.distances, draw)
    sources = {
        "left-out rows": Errors(error.labels_only, error.self_training),
        "surrogate": predictions.surrogate,
        "theory": predictions.theory,
    }
    judged = check(prepared, evidence, sources)
    advice = answer(odds)
    if advice == "do not":
        parameters = {**parameters, **LABELS_ALONE}
    more = labels_needed(cells, rows.unlabeled, draw) if advice == "cannot tell" else None
    clusters = predictions.shape.clusters
    return Plan(
        advice=advice,
        reason=text.reason(advice, odds, cells, more),
        error=error,
        gain=interval(found.gain),
        harm=float(odds.harm),
        worth_labels=worth_labels(
            found, predictions.shape, sizes, float(np.mean(evidence.classes))
        ),
        more_labels=more,
        share=interval(found.share),
        separation=clusters.separation,
        effective_dimension=clusters.effective_dimension,
        kurtosis=judged.kurtosis,
        sources=sources,
        parameters=parameters,
        recipe=predictions.recipe,
        rows=rows,
        assumptions=judged,
        evidence=evidence,
    )


def _planned(prepared: Prepared, rows: Input) -> tuple[dict[str, Any], Input]:
    """Parameters that make the classifier what is planned here, and the rows with a remark if that
    matters.

    On rows that pass for Gaussian clusters the classifier may change its method by itself, unless a
    constant of the anchored one is given. That other method is not planned: its many steps are too
    long for a dozen fits.
    """
    parameters: dict[str, Any] = {"class_weight": "balanced"}
    if not departure(prepared.unlabeled, prepared.basis.variances).small:
        return parameters, rows
    remark = (
        f"The rows pass for Gaussian clusters. This plan is about anchor={TABLE.anchor:g}; "
        'without it the classifier may take its method "gaussian", which was not tried here.'
    )
    parameters["anchor"] = TABLE.anchor
    return parameters, replace(rows, remarks=(*rows.remarks, remark))
