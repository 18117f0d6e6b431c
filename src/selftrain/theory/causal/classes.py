r"""`ClassTrajectory`: the result of `solve` for K classes, and for any protocol.

All quantities refer to the K scores $s = P u$, whose sum is zero, so that all classes are treated
alike. With two classes the scores are $\mp u/2$, with the logit u.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ...arrays import Array
from ...confusion import class_probabilities
from ...errors import StageError
from ...problem import Problem
from ...protocol import Protocol, class_basis
from ...recipe import Recipe
from ..solved_run import SolvedRun
from ..stats import SolverStats
from .laws import TrainedScores, chosen_samples, samples_of_fits
from .response import engine_loss
from .samples import FittedSamples

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class GaussianScores(NamedTuple):
    """The law of the scores of fresh samples: a Gaussian for each class.

    Attributes:
        proportions: class proportions.
        means: means of the scores, (class, score).
        covariances: covariances of the scores, (class, score, score).
    """

    proportions: Array
    means: Array
    covariances: Array

    def cdf(self, u: ArrayLike, score: int, y: int | None = None) -> Array:
        """Return P(score number `score` <= u) in class y, or over all classes if y is None."""
        u, chosen = np.asarray(u, dtype=float), range(len(self.means)) if y is None else [y]
        weight = self.proportions[list(chosen)]
        parts = [
            ndtr((u - self.means[k, score]) / np.sqrt(self.covariances[k, score, score]))
            for k in chosen
        ]
        return np.asarray(np.tensordot(weight / weight.sum(), parts, axes=1))

    def sample(self, size: int, seed: int | None = None) -> tuple[NDArray[np.intp], Array]:
        """Draw samples; return their classes and scores."""
        random = np.random.default_rng(seed)
        kinds = random.choice(len(self.means), size, p=self.proportions)
        scores = np.empty((size, len(self.means)))
        for k, mean in enumerate(self.means):
            values, vectors = np.linalg.eigh(self.covariances[k])
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            here = kinds == k
            scores[here] = mean + random.standard_normal((int(here.sum()), len(mean))) @ root.T
        return kinds, scores


@dataclass(frozen=True, eq=False)
class ClassTrajectory(SolvedRun):
    r"""Large-system limit of a protocol with K classes; arrays over the fits t = 0..T.

    Attributes:
        protocol: the protocol that was solved.
        problem, recipe: the problem and the recipe it was made from; None for a protocol.
        m: overlaps $w_c\cdot\mu_k$, shape (T+1, K, K): score c of the mean of class k on the test
            clusters, without the bias.
        bias: bias of each score, (T+1, K).
        q_matrix: products $w_c\cdot w_l$ of the class vectors, (T+1, K, K); `q` is its trace.
        covariances: covariances of the test scores in each class, (T+1, K, K, K).
        overlaps: $\sum_c w_c^{(t)}\cdot w_c^{(s)}$ of all pairs of fits.
        chi: mean response of a weight.
        label_shares: proportion of each class among the pseudo-labels that fit t is trained on
            (among its given labels if it has no pseudo-labels), (T+1, K); NaN with the squared loss
            and soft labels, which are not probabilities.
        fraction_selected, pseudo_label_accuracy, selected_label_accuracy: selected proportion of
            the pseudo-labelled samples of fit t, accuracy of all pseudo-labels and of the selected
            ones; NaN without pseudo-labels.
        train_loss: mean loss of the selected pseudo-labelled samples; without any, of those with
            given labels.
        kept_loss: mean loss of the samples with given labels in a fit that also has pseudo-labels.
        error_accuracy: absolute accuracy of `error`, from the spread of the replicates; on a grid
            or with exact averages, `stats.accuracy`.
        collapsed_at: first fit whose labels lack a class (`collapsed_class`), or None; quantities
            are NaN for it and all fits that take labels or a bias from it, directly or through
            others.
        failure: why the run ended early (`on_failure="partial"`), or None.
        stats: statistics of the solver; `stats.accuracy` is the relative accuracy of the state.

    >>> from selftrain import Clusters, Problem, Recipe, solve
    >>> clusters = Clusters.simplex(3, distance=2.0, delta=0.5)
    >>> problem = Problem(1.0, 2.0, (0.5, 0.3, 0.2), steps=1, loss="squared", clusters=clusters)
    >>> solve(problem, Recipe(lambda_l=0.2, lambda_u=0.1))
    ClassTrajectory(3 classes, 2 fits, error 0.272355 -> 0.25975)
    """

    protocol: Protocol
    m: Array
    bias: Array
    q_matrix: Array
    covariances: Array
    overlaps: Array
    chi: Array
    label_shares: Array
    fraction_selected: Array
    pseudo_label_accuracy: Array
    selected_label_accuracy: Array
    train_loss: Array
    kept_loss: Array
    error_accuracy: Array
    stats: SolverStats = field(repr=False)
    collapsed_at: int | None = None
    failure: StageError | None = None
    problem: Problem | None = None
    recipe: Recipe | None = None

    TABLE = (
        "error", "balanced_error", "class_errors", "q", "m", "bias", "confusion", "label_shares",
        "fraction_selected", "pseudo_label_accuracy", "selected_label_accuracy", "train_loss",
    )  # fmt: skip
    RECORDED = TABLE

    def __repr__(self) -> str:
        ended = "" if self.collapsed_at is None else (
            f", class {self.collapsed_class} lost at fit {self.collapsed_at}"
        )  # fmt: skip
        if self.failure is not None:
            ended = f", failed at fit {self.failure.step}"
        last = max(0, self.good_steps - 1)
        return (
            f"ClassTrajectory({self.classes} classes, {len(self.t)} fits, error "
            f"{self.error[0]:.6g} -> {self.error[last]:.6g}{ended})"
        )

    @property
    def classes(self) -> int:
        """The number K of classes."""
        return self.protocol.classes

    @property
    def proportions(self) -> tuple[float, ...]:
        """Class proportions of the test mixture."""
        proportions: tuple[float, ...] = self.protocol.test.proportions
        return proportions

    @property
    def steps(self) -> int:
        """The number of fits after fit 0."""
        return self.protocol.steps

    @property
    def q(self) -> Array:
        r"""The squared norm of all class vectors, $\sum_c |w_c|^2$."""
        return np.asarray(np.trace(self.q_matrix, axis1=1, axis2=2))

    @cached_property
    def confusion(self) -> Array:
        """P(predicted class | true class) on the test mixture, (T+1, K, K), rows by true class."""
        found = np.full((len(self.t), self.classes, self.classes), np.nan)
        for t in np.flatnonzero(np.isfinite(self.q)):
            for k in range(self.classes):
                mean = self.m[t, :, k] + self.bias[t]
                found[t, k] = largest_score(mean, self.covariances[t, k])
        return found

    @property
    def class_errors(self) -> Array:
        """The error within each class, (T+1, K)."""
        return np.asarray(1.0 - np.diagonal(self.confusion, axis1=1, axis2=2))

    def plot(self, *, panel: str | None = None, ax: Any = None, figure: Any = None) -> Figure:
        """Plot the errors, the recall and the label proportions of each class, and the last
        confusion matrix; or a single `panel` on `ax`.
        """
        from ...plots.classes import plot_classes

        return plot_classes(self, panel=panel, ax=ax, figure=figure)

    def test_logits(self, t: int = -1) -> GaussianScores:
        """Return the law of the scores of fresh test samples under fit t."""
        at = self.solved_step(t)
        means = (self.m[at] + self.bias[at][:, None]).T
        return GaussianScores(np.array(self.proportions), means, self.covariances[at])

    def training_logits(self, t: int = -1, samples: str | None = None) -> TrainedScores:
        """Return the law of the scores of the samples that fit t is fitted to.

        Arguments:
            t: the fit; a negative one counts from the end.
            samples: the name of a group; None for all samples with pseudo-labels, or all samples if
                there are no pseudo-labels.
        """
        at = self.solved_step(t)
        chosen = chosen_samples(self.protocol, self._samples[at], samples)
        basis = engine_loss(self.protocol.fits[at].loss, self.classes).basis
        return TrainedScores.of(chosen, basis)

    @cached_property
    def _samples(self) -> list[list[FittedSamples]]:
        """The samples of every solved fit."""
        lost = np.flatnonzero(np.isnan(self.q)).tolist()
        return samples_of_fits(self.protocol, self.good_steps, frozenset(lost))


def largest_score(mean: Array, covariance: Array) -> Array:
    """Return the probability that each of K scores of sum zero is the largest."""
    basis = class_basis(mean.size)
    return class_probabilities(basis, mean @ basis, basis.T @ covariance @ basis)
