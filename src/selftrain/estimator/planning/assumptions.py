"""Assumptions of a plan, whether the data support them, and what a violation does.

Gaussian clusters are assumed by the theory and the synthetic data alone. The advice itself assumes
that labelled samples were drawn like the others, and relies on the classes being clusters.
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
"""Significance level: what is rarer by chance is a violation."""

CHOICES = 499
"""Random subsets of the samples that the labelled ones are compared with."""

HEAVY, SKEWED = 0.5, 0.1
"""Excess radial kurtosis, and distance of the law of the scores from two Gaussians, that count as
violations."""


class Assumption(NamedTuple):
    """One assumption.

    Attributes:
        name: what is assumed.
        holds: whether the data support it.
        found: what was found, in words with numbers.
        effect: what a violation does to the numbers.
    """

    name: str
    holds: bool
    found: str
    effect: str

    def __str__(self) -> str:
        mark = "holds" if self.holds else "VIOLATED"
        tail = "" if self.holds else f" {self.effect}"
        return f"{mark}: {self.name}. {self.found}{tail}"


@dataclass(frozen=True, repr=False)
class Assumptions:
    """All assumptions; printed, one per line.

    Attributes:
        items: one entry per assumption.
        kurtosis: excess of the fourth power of the distance from the centre, 0 if Gaussian.
    """

    items: tuple[Assumption, ...]
    kurtosis: float

    def __iter__(self) -> Iterator[Assumption]:
        return iter(self.items)

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.items)

    __repr__ = __str__

    @property
    def violated(self) -> list[Assumption]:
        """Those that the data do not support."""
        return [each for each in self.items if not each.holds]


def check(prepared: Prepared, evidence: Evidence, errors: Mapping[str, Errors]) -> Assumptions:
    """Judge all assumptions; `errors` has those of every source."""
    measured, promised = errors["cross-validation"], errors["synthetic data"]
    kurtosis = radial_kurtosis(prepared.unlabeled.coordinates.take(slice(None)))
    return Assumptions(
        (
            _same_rows(prepared),
            _same_shares(evidence),
            _clusters_are_classes(promised.self_training, measured.self_training),
            _theory_agrees(errors["theory"].supervised, measured.supervised),
            _gaussian(kurtosis),
            _two_gaussians(evidence),
        ),
        kurtosis,
    )


def _same_rows(prepared: Prepared) -> Assumption:
    """Compare the distance of the labelled mean from that of all samples with random subsets of the
    same size: with heavy tails a formula for it is wrong.
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
        "labelled samples are drawn like the others",
        chance > RARE,
        f"Of random subsets of this size, {chance:.1%} have a mean as far from that of all.",
        "All errors are then for samples like the labelled ones; the advice may not carry over.",
    )


def _same_shares(evidence: Evidence) -> Assumption:
    """Compare the labelled class proportion with the one that self-training found."""
    count, rows = float(evidence.weights @ evidence.classes), float(evidence.weights.sum())
    lower = float(binom.cdf(count, rows, evidence.share))
    upper = float(binom.sf(count - 1, rows, evidence.share))
    chance = min(1.0, 2 * min(lower, upper))
    return Assumption(
        "class proportions are the same among labelled and unlabelled samples",
        chance > RARE,
        f"{count / rows:.0%} of the labelled samples are positive, self-training finds "
        f"{evidence.share:.0%} (probability {chance:.2g}).",
        "If classes were chosen when labelling, proportions and errors of the plan are wrong; "
        'fit with share="unlabeled". If not, self-training drifts to one class.',
    )


def _clusters_are_classes(promised: Interval, measured: Interval) -> Assumption:
    """Self-training trusts clusters: is its cross-validated error as small as they promise?"""
    return Assumption(
        "the clusters are the classes",
        promised.high >= measured.low,
        f"Gaussian clusters predict {promised}, cross-validation gives {measured}.",
        "The clusters are not the classes: self-training may follow the wrong ones.",
    )


def _theory_agrees(predicted: Interval, measured: Interval) -> Assumption:
    """Compare the supervised error at the cross-validated ridge, which both sources know."""
    return Assumption(
        "the theory agrees with cross-validation",
        measured.low <= predicted.estimate <= measured.high,
        f"Supervised error: theory {predicted.estimate:.3f}, cross-validation {measured}.",
        "Do not use the recipe of the theory, nor its errors, on this data.",
    )


def _gaussian(kurtosis: float) -> Assumption:
    kind = "heavier" if kurtosis > 0 else "lighter"
    return Assumption(
        "classes are Gaussian",
        abs(kurtosis) < HEAVY,
        f"Fourth powers of the distance are {1 + kurtosis:.2f} times those of Gaussian samples.",
        f"Tails are {kind}: theory and synthetic data are a rough guide. "
        "Cross-validation does not assume this.",
    )


def radial_kurtosis(rows: Array) -> float:
    """Return Mardia's kurtosis of all samples over that of a Gaussian, minus 1."""
    centred = rows - rows.mean(axis=0)
    covariance = centred.T @ centred / len(centred)
    size = len(covariance)
    covariance += 1e-9 * np.trace(covariance) / size * np.eye(size)
    squares = np.einsum("ij,ji->i", centred, np.linalg.solve(covariance, centred.T))
    return float(np.mean(squares**2) / (size * (size + 2))) - 1


def _two_gaussians(evidence: Evidence) -> Assumption:
    """Measure the Kolmogorov distance of the unlabelled scores from two Gaussians."""
    distance = score_distance(evidence)
    rows = len(evidence.unlabeled.trained)
    chance = float(kstwobign.sf(distance * np.sqrt(rows)))
    return Assumption(
        "scores are two Gaussians",
        distance < SKEWED,
        f"Their law differs by at most {distance:.3f} (probability {chance:.2g}).",
        "Soft labels are then less calibrated; the labelled samples have to correct them.",
    )


def score_distance(evidence: Evidence) -> float:
    """Return the largest difference of the distribution functions of scores and fitted mixture."""
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
