"""What the numbers of a plan assume, what the rows say of it, and what a breach does.

Gaussian clusters are assumed by the theory and the surrogate alone. The answer itself assumes
that labelled rows were drawn like the others, and it counts on the classes being clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import binom, kstwobign

from ...arrays import Array
from ..prepared import Prepared
from .evidence import Evidence
from .posterior import Interval
from .sources import Errors

RARE = 0.01
"""A finding that is rarer than this by chance is a breach."""

CHOICES = 499
"""Random choices of rows that the labelled ones are compared with."""

HEAVY, SKEWED = 0.5, 0.1
"""Radial kurtosis beyond the Gaussian one, and distance of the scores' law from two Gaussians, that
count as breaches.
"""


class Assumption(NamedTuple):
    """One assumption.

    Attributes:
        name: what is assumed.
        holds: whether the rows bear it out.
        found: what was found, in words with numbers.
        effect: what a breach does to the numbers.
    """

    name: str
    holds: bool
    found: str
    effect: str

    def __str__(self) -> str:
        mark = "holds" if self.holds else "BROKEN"
        tail = "" if self.holds else f" {self.effect}"
        return f"{mark}: {self.name}. {self.found}{tail}"


@dataclass(frozen=True, repr=False)
class Assumptions:
    """All of them; printed, one per line.

    Attributes:
        items: one entry per assumption.
        kurtosis: excess of the fourth power of the distance from the centre, 0 for Gaussian rows.
    """

    items: tuple[Assumption, ...]
    kurtosis: float

    def __iter__(self) -> Iterator[Assumption]:
        return iter(self.items)

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.items)

    __repr__ = __str__

    @property
    def broken(self) -> list[Assumption]:
        """Those the rows do not bear out."""
        return [each for each in self.items if not each.holds]


def check(prepared: Prepared, evidence: Evidence, errors: Mapping[str, Errors]) -> Assumptions:
    """All assumptions, judged; `errors` has those of every source."""
    measured, promised = errors["left-out rows"], errors["surrogate"]
    kurtosis = radial_kurtosis(prepared.unlabeled.coordinates.take(slice(None)))
    return Assumptions(
        (
            _same_rows(prepared),
            _same_shares(evidence),
            _clusters_are_classes(promised.self_training, measured.self_training),
            _theory_agrees(errors["theory"].labels_only, measured.labels_only),
            _gaussian(kurtosis),
            _two_gaussians(evidence),
        ),
        kurtosis,
    )


def _same_rows(prepared: Prepared) -> Assumption:
    """The distance of the labelled rows' mean from that of all rows, against random choices of as
    many: heavy tails make a formula for it wrong.
    """
    labels = len(prepared.labeled)
    rows = np.vstack([prepared.labeled, prepared.unlabeled.coordinates.take(slice(None))])
    spread = rows.var(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.sqrt(np.maximum(spread, 1e-9 * spread.max()))
    random = np.random.default_rng(0)

    def distance(chosen: Any) -> float:
        return float((rows[chosen].mean(axis=0) ** 2).sum())

    own = distance(slice(labels))
    choices = (random.choice(len(rows), labels, replace=False) for _ in range(CHOICES))
    chance = (1 + sum(distance(chosen) >= own for chosen in choices)) / (1 + CHOICES)
    return Assumption(
        "labelled rows are drawn like the others",
        chance > RARE,
        f"Of random choices of as many rows, {chance:.1%} have a mean as far from that of all.",
        "Every error is then that of rows like the labelled ones, and the advice may not carry"
        " over.",
    )


def _same_shares(evidence: Evidence) -> Assumption:
    """The positive class among labelled rows against the share that self-training found."""
    count, rows = float(evidence.weights @ evidence.classes), float(evidence.weights.sum())
    lower = float(binom.cdf(count, rows, evidence.share))
    upper = float(binom.sf(count - 1, rows, evidence.share))
    chance = min(1.0, 2 * min(lower, upper))
    return Assumption(
        "classes are as common among labelled rows as among the others",
        chance > RARE,
        f"{count / rows:.0%} of the labelled rows are positive, self-training finds "
        f"{evidence.share:.0%} (probability {chance:.2g}).",
        "If classes were chosen when labelling, shares and errors of the plan are off; "
        'fit with share="unlabeled". If not, self-training drifts to one class.',
    )


def _clusters_are_classes(promised: Interval, measured: Interval) -> Assumption:
    """Self-training trusts clusters: do left-out rows confirm as few mistakes as clusters
    promise?
    """
    return Assumption(
        "the clusters are the classes",
        promised.high >= measured.low,
        f"Gaussian clusters of this shape promise {promised}, left-out rows show {measured}.",
        "The rows have clusters that are not the classes: self-training may follow the wrong ones.",
    )


def _theory_agrees(predicted: Interval, measured: Interval) -> Assumption:
    """The supervised error at the ridge that left-out rows chose: the one number both sources
    know.
    """
    return Assumption(
        "the theory agrees with left-out rows",
        measured.low <= predicted.estimate <= measured.high,
        f"For labels only the theory has {predicted.estimate:.3f}, left-out rows show {measured}.",
        "Do not use the recipe of the theory, nor its errors, on these rows.",
    )


def _gaussian(kurtosis: float) -> Assumption:
    kind = "heavier" if kurtosis > 0 else "lighter"
    return Assumption(
        "rows are Gaussian around their class means",
        abs(kurtosis) < HEAVY,
        f"Fourth powers of the distance are {1 + kurtosis:.2f} times those of Gaussian rows.",
        f"Tails are {kind}: read theory and surrogate as a rough guide. "
        "Left-out rows do not assume this.",
    )


def radial_kurtosis(rows: Array) -> float:
    r"""Mardia's kurtosis of all rows over that of a Gaussian, less 1."""
    centred = rows - rows.mean(axis=0)
    covariance = centred.T @ centred / len(centred)
    size = len(covariance)
    covariance += 1e-9 * np.trace(covariance) / size * np.eye(size)
    squares = np.einsum("ij,ji->i", centred, np.linalg.solve(covariance, centred.T))
    return float(np.mean(squares**2) / (size * (size + 2))) - 1


def _two_gaussians(evidence: Evidence) -> Assumption:
    """Distance (Kolmogorov) of the scores of unlabelled rows from two Gaussians of the shares
    found.
    """
    distance = score_distance(evidence)
    rows = len(evidence.unlabeled.trained)
    chance = float(kstwobign.sf(distance * np.sqrt(rows)))
    return Assumption(
        "scores are two Gaussians",
        distance < SKEWED,
        f"Their law differs by at most {distance:.3f} (probability {chance:.2g}).",
        "Soft labels are then less calibrated; the anchor of labelled rows has to correct them.",
    )


def score_distance(evidence: Evidence) -> float:
    """Largest difference of the distribution function of scores from that of the fitted mixture."""
    scores = np.sort(evidence.unlabeled.trained)
    odds = float(np.log(evidence.share / (1 - evidence.share)))
    soft = expit(scores + odds)
    law = np.zeros(len(scores))
    for weights in (soft, 1 - soft):
        law += weights.mean() * _normal(scores, weights)
    ranks = np.arange(1, len(scores) + 1) / len(scores)
    return float(np.max(np.abs(law - ranks)))


def _normal(scores: Array, weights: Array) -> Array:
    total = max(float(weights.sum()), 1e-12)
    center = float(weights @ scores) / total
    spread = np.sqrt(max(float(weights @ (scores - center) ** 2) / total, 1e-12))
    return np.asarray(ndtr((scores - center) / spread))
