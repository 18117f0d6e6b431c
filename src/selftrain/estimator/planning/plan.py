"""`plan`: is self-training worth it on this data, and how certain is that?"""

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
from ..settings import TABLE, Settings
from . import text
from .advice import Answer, answer, labels_needed, odds_of
from .assumptions import Assumptions, check
from .csv_rows import read_csv_rows
from .evidence import FOLDS, Evidence, gather, in_coordinates
from .inputs import Input, read_input
from .posterior import DRAWS, Interval, cells_of, interval, positive_shares, posterior
from .sources import SYNTHETIC, Errors, headline, predict, worth_labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Plan", "plan", "plan_file"]

SUPERVISED: dict[str, Any] = {"settings": Settings(steps=0, metrics=0.0)}
"""Parameters with which the classifier is the supervised baseline of a plan."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Advice before self-training, and its basis. Errors are the mean of the two class errors.

    Attributes:
        advice: "do", "do not" or "cannot tell".
        reason: why, in a sentence.
        error: of the supervised baseline, of self-training and of the fully supervised fit, each
            with a 90 % interval: the first two by cross-validation, the third by cross-validation
            minus a gap estimated on synthetic data.
        gain: error of the supervised baseline minus that of self-training.
        degradation: probability that self-training errs more by over 0.02.
        worth_labels: how many more labels it is worth.
        more_labels: about how many labels would decide; None if decided already, or if none would.
        share: proportion of the positive class.
        separation: half the distance of the class means in units of the noise.
        effective_dimension: how many directions carry the noise.
        kurtosis: excess of the fourth power of the distance, 0 for Gaussian samples.
        sources: errors by "cross-validation", "synthetic data" and "theory", separately.
        parameters: of the `SelfTrainingLinearClassifier` that was planned; after "do not", of the
            supervised baseline.
        recipe: a `Recipe` for the method "paper", its first ridge chosen by cross-validation.
        rows: what was given.
        assumptions: see `check_assumptions`.
        evidence: scores of both fits.
    """

    advice: Answer
    reason: str
    error: Errors
    gain: Interval
    degradation: float
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
        """Return what the numbers assume, whether it holds, and what a violation does."""
        return self.assumptions

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return text.as_dict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return errors of every source, one row each."""
        return text.as_frame(self)

    def plot(self, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
        """Draw errors by source and scores of the samples, or one `panel` of them on `ax`."""
        from ...plots.plan import plot_plan

        return plot_plan(self, panel=panel, ax=ax)

    def __str__(self) -> str:
        return text.as_text(self)

    def __repr__(self) -> str:
        return (
            f"Plan({self.advice!r}, self-training {self.error.self_training}, supervised"
            f" {self.error.supervised})"
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
    """Say whether self-training is worth it on this data.

    Arguments:
        X: samples by columns: an array, a DataFrame, a sparse matrix or a Dask array.
        y: the class of each sample; `unlabeled`, NaN or None if unlabelled.
        unlabeled: the marker of unlabelled samples.
        positive: the class to plan against all others; needed with more than two.
        encode: one-hot encode columns of text.
        random_state: seed of folds, samples and draws.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(n_class=2, return_X_y=True)
    >>> advice = plan(X, np.where(np.arange(len(digit)) < 40, digit, -1))
    >>> advice.error.self_training.high < 0.2
    True
    """
    if not isinstance(encode, bool):
        raise InvalidInput("encode", encode, "must be True or False")
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
    """Plan for a CSV file, which is read in chunks; `target` is the column of the classes."""
    random = check_random_state(seed)
    table = read_csv_rows(path, target, unlabeled, seed, progress)
    marker = unlabeled.strip()  # also for empty cells, so that messages name it
    y = np.array([name if isinstance(name, str) else marker for name in table.y], dtype=object)
    read = read_input(table.X, y, marker, positive, encode, random)
    return plan_rows(table.complete(read), random, progress)


def plan_rows(rows: Input, random: np.random.RandomState, progress: ProgressOption = None) -> Plan:
    """Plan for samples that were read and checked."""
    ones = np.ones(len(rows.codes))
    fits = FOLDS + SYNTHETIC + 3
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
        "cross-validation": Errors(error.supervised, error.self_training),
        "synthetic data": predictions.synthetic,
        "theory": predictions.theory,
    }
    judged = check(prepared, evidence, sources)
    advice = answer(odds)
    if advice == "do not":
        parameters = {**parameters, **SUPERVISED}
    more = labels_needed(cells, rows.unlabeled, draw) if advice == "cannot tell" else None
    clusters = predictions.shape.clusters
    return Plan(
        advice=advice,
        reason=text.reason(advice, odds, cells, more),
        error=error,
        gain=interval(found.gain),
        degradation=float(odds.degradation),
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
    """Return the parameters of the planned classifier, and the input with a remark if it matters.

    On samples that pass for Gaussian clusters the classifier may change its method, unless a
    constant of the anchored one is given. The Gaussian method is not planned: a dozen fits of its
    many steps take too long.
    """
    parameters: dict[str, Any] = {"class_weight": "balanced"}
    if not departure(prepared.unlabeled, prepared.basis.variances).small:
        return parameters, rows
    remark = (
        f"The samples pass for Gaussian clusters. This plan is for anchor={TABLE.anchor:g}; "
        'without it the classifier may use its method "gaussian", which was not tried here.'
    )
    parameters["settings"] = Settings(anchor=TABLE.anchor)
    return parameters, replace(rows, remarks=(*rows.remarks, remark))
