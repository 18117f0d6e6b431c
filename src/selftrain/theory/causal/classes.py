r"""`ClassTrajectory`: the result of `solve` for K classes, and for any protocol.

Everything is in the K scores of sum zero, $s = P u$, so classes are alike; two classes have the
scores $\mp u/2$ of their logit u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ...arrays import Array
from ...confusion import class_probabilities
from ...errors import InvalidInput, StageError
from ...problem import Problem
from ...protocol import Protocol, class_basis
from ...recipe import Recipe
from ..stats import SolverStats
from .agreement import accuracy_of_mean
from .replicate import MEASURED, CausalRun, Outcome, PointSource, Replicate, Setting

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

LAW_POINTS = 2**12
"""Points of the law of training logits, for each class and group."""


class Observed(NamedTuple):
    """What samples see of the fits of a replicate, arrays over t, in components of the logit: means
    of the classes (d, K), bias (d), products of the weights (d, d), covariances of the logits of
    each class (K, d, d), products of the weights of all pairs of fits, responses.
    """

    m: Array
    bias: Array
    square: Array
    covariance: Array
    pairs: Array
    chi: Array


def observe(run: Replicate, setting: Setting) -> Observed:
    """Return what test samples see of a replicate; NaN where it was not solved."""
    space, history, fits = setting.space, run.history, len(setting.protocol.fits)
    w = np.array(history.fits)
    solved, test = len(w), space.sets[setting.test]
    flat = w.reshape(*w.shape[:2], -1)
    square = flat @ flat.transpose(0, 2, 1)
    pairs = np.full((fits, fits), np.nan)
    pairs[:solved, :solved] = np.einsum("tjx,sjx->ts", flat, flat)
    seen = {}
    for a in dict.fromkeys(test.sources):
        image = space.sigma(a, w).reshape(flat.shape)
        seen[a] = flat @ image.transpose(0, 2, 1)
    covariance = np.stack([seen[a] for a in test.sources], axis=1)
    return Observed(
        padded(history.means(setting.test, w), fits), run.bias, padded(square, fits),
        padded(covariance, fits), pairs, run.gains,
    )  # fmt: skip


def padded(values: Array, fits: int) -> Array:
    """Values of the solved fits, with NaN for the others."""
    missing = np.full((fits - len(values), *values.shape[1:]), np.nan)
    return np.concatenate([values, missing])


class GaussianScores(NamedTuple):
    """The law of the scores of fresh samples: a Gaussian for each class.

    Attributes:
        proportions: of the classes.
        means: (class, score).
        covariances: (class, score, score).
    """

    proportions: Array
    means: Array
    covariances: Array

    def cdf(self, u: ArrayLike, score: int, y: int | None = None) -> Array:
        """P(a score <= u), in class y or in all."""
        u, chosen = np.asarray(u, dtype=float), range(len(self.means)) if y is None else [y]
        weight = self.proportions[list(chosen)]
        parts = [
            ndtr((u - self.means[k, score]) / np.sqrt(self.covariances[k, score, score]))
            for k in chosen
        ]
        return np.asarray(np.tensordot(weight / weight.sum(), parts, axes=1))

    def sample(self, size: int, seed: int | None = None) -> tuple[NDArray[np.intp], Array]:
        """Classes and scores of samples."""
        random = np.random.default_rng(seed)
        kinds = random.choice(len(self.means), size, p=self.proportions)
        scores = np.empty((size, len(self.means)))
        for k, mean in enumerate(self.means):
            values, vectors = np.linalg.eigh(self.covariances[k])
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            here = kinds == k
            scores[here] = mean + random.standard_normal((int(here.sum()), len(mean))) @ root.T
        return kinds, scores


class TrainedScores(NamedTuple):
    """The law of the scores of samples that a fit is fitted to, as weighted points.

    Attributes:
        weights: of the points, of sum one.
        true, given: class and given label.
        previous: scores under the teacher of pseudo-labels (NaN for given labels).
        scores: trained scores.
        selected: whether the fit uses the pseudo-label, or any label.
    """

    weights: Array
    true: NDArray[np.intp]
    given: NDArray[np.intp]
    previous: Array
    scores: Array
    selected: NDArray[np.bool_]

    def cdf(self, u: ArrayLike, score: int, y: int | None = None) -> Array:
        """P(a trained score <= u), in class y or in all."""
        chosen = np.full(self.true.size, True) if y is None else self.true == y
        weight, values = self.weights[chosen], self.scores[chosen, score]
        order = np.argsort(values)
        below = np.concatenate([[0.0], np.cumsum(weight[order])])
        return np.asarray(below[np.searchsorted(values[order], u, side="right")] / below[-1])

    def sample(self, size: int, seed: int | None = None) -> TrainedScores:
        """Samples drawn from the points, of equal weight."""
        at = np.random.default_rng(seed).choice(self.true.size, size, p=self.weights)
        drawn = [np.asarray(values)[at] for values in self[1:]]
        return TrainedScores(np.full(size, 1.0 / size), *drawn)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class ClassTrajectory:
    r"""Large-system limit of a protocol with K classes; arrays over the fits t = 0..T.

    Attributes:
        protocol: what was solved; `problem` and `recipe` if it came from these.
        m: overlaps $w_c\cdot\mu_k$, shape (T+1, K, K): score c of the mean of class k on the test
            clusters, without the bias.
        bias: of each score, (T+1, K).
        q_matrix: products $w_c\cdot w_l$ of the class vectors, (T+1, K, K); `q` is its trace.
        covariances: of the test scores of each class, (T+1, K, K, K).
        overlaps: $\sum_c w_c^{(t)}\cdot w_c^{(s)}$ of all pairs of fits.
        chi: mean response of a weight.
        label_shares: share of each class among the pseudo-labels that fit t is trained on (among
            the given labels where there are no others), (T+1, K); NaN in runs of the squared
            loss with soft labels, which are no shares.
        fraction_selected, pseudo_label_accuracy, selected_label_accuracy: of the pseudo-labelled
            samples of fit t; NaN where there are none.
        train_loss: mean loss of the selected pseudo-labelled samples, else of those with given
            labels.
        kept_loss: mean loss with given labels next to pseudo-labels.
        error_accuracy: how well `error` is known, from the replicates.
        collapsed_at: first fit whose labels lack a class (`collapsed_class`), or None; NaN from
            there on.
        failure: why the run ended early (`on_failure="partial"`), or None.
        stats: how it was obtained; `stats.accuracy` is the relative accuracy of the state.

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
    moves: dict[int, Array] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        ended = "" if self.collapsed_at is None else (
            f", class {self.collapsed_class} lost at fit {self.collapsed_at}"
        )  # fmt: skip
        if self.failure is not None:
            ended = f", failed at fit {self.failure.step}"
        last = max(0, self.good_steps - 1)
        return (
            f"ClassTrajectory({self.protocol.classes} classes, {len(self.t)} fits, error "
            f"{self.error[0]:.6g} -> {self.error[last]:.6g}{ended})"
        )

    @property
    def t(self) -> NDArray[np.int64]:
        """Indices of the fits 0..T."""
        return np.arange(len(self.m), dtype=np.int64)

    @property
    def good_steps(self) -> int:
        """How many fits, counted from 0, are solved."""
        return int(np.isfinite(self.q).sum())

    @property
    def q(self) -> Array:
        r"""$\sum_c |w_c|^2$, the squared norm of all class vectors."""
        return np.asarray(np.trace(self.q_matrix, axis1=1, axis2=2))

    @cached_property
    def confusion(self) -> Array:
        """P(predicted class | true class) on the test mixture, (T+1, K, K), rows by true class."""
        classes = self.protocol.classes
        found = np.full((len(self.t), classes, classes), np.nan)
        for t in range(self.good_steps):
            for k in range(classes):
                mean = self.m[t, :, k] + self.bias[t]
                found[t, k] = largest_score(mean, self.covariances[t, k])
        return found

    @property
    def class_errors(self) -> Array:
        """The error within each class, (T+1, K)."""
        return np.asarray(1.0 - np.diagonal(self.confusion, axis1=1, axis2=2))

    @property
    def error(self) -> Array:
        """P(predicted class is wrong) on the test mixture."""
        return np.asarray(self.class_errors @ np.array(self.protocol.test.proportions))

    @property
    def balanced_error(self) -> Array:
        """The mean of the errors within the classes."""
        return np.asarray(self.class_errors.mean(axis=1))

    def plot(self, *, panel: str | None = None, ax: Any = None, figure: Any = None) -> Figure:
        """Draw errors, recall and labels of each class, and the last confusion."""
        from ...plots.classes import plot_classes

        return plot_classes(self, panel=panel, ax=ax, figure=figure)

    @property
    def predicted_shares(self) -> Array:
        """Share of each class among the predictions on the test mixture, (T+1, K)."""
        shares = np.array(self.protocol.test.proportions)
        return np.asarray(np.einsum("k,tkc->tc", shares, self.confusion))

    @property
    def collapsed_class(self) -> int | None:
        """The class that the labels of a collapsed run lack."""
        if self.collapsed_at is None:
            return None
        return int(np.argmin(self.label_shares[self.collapsed_at]))

    def test_logits(self, t: int = -1) -> GaussianScores:
        """The law of the scores of fresh test samples under fit t."""
        at = self._solved(t)
        means = (self.m[at] + self.bias[at][:, None]).T
        proportions = np.array(self.protocol.test.proportions)
        return GaussianScores(proportions, means, self.covariances[at])

    def training_logits(self, t: int = -1, samples: str | None = None) -> TrainedScores:
        """The law of the scores of the samples that fit t is fitted to.

        Arguments:
            t: the fit; a negative one counts from the end.
            samples: the name of a group; None: those with pseudo-labels, or all if there are none.
        """
        at = self._solved(t)
        setting = Setting.of(self.protocol)._replace(last=at)
        source = PointSource(LAW_POINTS, np.random.SeedSequence(LAW_POINTS))
        run = CausalRun(setting, source, self.moves)
        run.solve()
        basis, names = setting.losses[at].basis, [group.name for group in self.protocol.groups]
        uses = self.protocol.fits[at].uses
        chosen = [use for use in uses if use.labels is not None] or list(uses)
        if samples is not None:
            chosen = [use for use in uses if names[use.group] == samples]
            if not chosen:
                accepted = "must be a group that the fit uses: " + ", ".join(
                    names[use.group] for use in uses
                )
                raise InvalidInput("samples", samples, accepted)
        parts: list[tuple[Any, ...]] = []
        for use in chosen:
            for member in run.fitted[use.group]:
                cell, ones = member.cell, np.ones(member.cell.points, dtype=np.intp)
                previous = np.full(cell.u.shape, np.nan)
                if use.labels is not None:
                    previous = run.taught[use.group, cell.kind, cell.given]
                selected = cell.weight > 0 if use.given == 0 else cell.selected
                parts.append((
                    cell.share * cell.weights, cell.kind * ones, cell.given * ones,
                    previous @ basis.T, cell.u @ basis.T, selected,
                ))  # fmt: skip
        weights, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        return TrainedScores(weights / weights.sum(), *columns)

    def to_frame(self) -> pd.DataFrame:
        """What is measured, one row per fit: errors, norm, accuracy of labels, shares by class."""
        import pandas as pd

        names = (
            "error", "balanced_error", "q", "fraction_selected", "pseudo_label_accuracy",
            "selected_label_accuracy", "train_loss",
        )  # fmt: skip
        columns = {name: getattr(self, name) for name in names}
        for k in range(self.protocol.classes):
            columns[f"class_error_{k}"] = self.class_errors[:, k]
            columns[f"label_share_{k}"] = self.label_shares[:, k]
        return pd.DataFrame(columns, index=pd.Index(self.t, name="t"))

    def to_xarray(self) -> xr.Dataset:
        """Errors, overlaps, biases, confusion and shares with named dimensions."""
        import xarray as xr

        dims = {
            "error": ("t",), "balanced_error": ("t",), "q": ("t",), "bias": ("t", "score"),
            "m": ("t", "score", "true"), "confusion": ("t", "true", "predicted"),
            "class_errors": ("t", "true"), "label_shares": ("t", "score"),
            "fraction_selected": ("t",), "pseudo_label_accuracy": ("t",), "train_loss": ("t",),
        }  # fmt: skip
        data = {name: (axes, getattr(self, name)) for name, axes in dims.items()}
        return xr.Dataset(data, coords={"t": self.t})

    def summary(self) -> dict[str, Any]:
        """How the run was obtained, as plain values."""
        return self.stats.summary()

    def _solved(self, t: int) -> int:
        size = len(self.t)
        at = t + size if t < 0 else t
        if not 0 <= at < size or not np.isfinite(self.q[at]):
            accepted = f"must be a solved fit, from 0 to {self.good_steps - 1}"
            raise InvalidInput("t", t, accepted)
        return at


def largest_score(mean: Array, covariance: Array) -> Array:
    """Return the probability that each of K scores of sum zero is the largest."""
    basis = class_basis(mean.size)
    return class_probabilities(basis, mean @ basis, basis.T @ covariance @ basis)


def class_trajectory(
    origin: tuple[Problem | None, Recipe | None], setting: Setting, runs: Sequence[Replicate],
    outcome: Outcome,
) -> ClassTrajectory:  # fmt: skip
    """Return the mean over replicates, in scores; `origin` is what the protocol was written for."""
    basis, end = setting.losses[0].basis, outcome.end
    each = [observe(run, setting) for run in runs]
    seen = Observed(*(np.mean(values, axis=0) for values in zip(*each, strict=True)))
    measured = np.mean([run.measured for run in runs], axis=0)
    shares = np.mean([run.shares for run in runs], axis=0)
    steps = np.arange(len(setting.protocol.fits))
    accuracy = np.where(steps < end, outcome.accuracy, np.nan)
    points = np.where(steps < end, float(outcome.points), 0.0)
    starts = tuple("no update" if t < end else "" for t in steps)
    spent = outcome.evaluations.astype(float)
    stats = SolverStats(outcome.tolerance, spent, points, accuracy, starts)
    arrays = {
        "m": basis @ seen.m,
        "bias": seen.bias @ basis.T,
        "q_matrix": basis @ seen.square @ basis.T,
        "covariances": basis @ seen.covariance @ basis.T,
        "overlaps": seen.pairs * float(basis[:, 0] @ basis[:, 0]),
        "chi": seen.chi,
        **dict(zip(MEASURED, measured, strict=True)),
    }
    for values in arrays.values():
        values[end:] = np.nan
    result = ClassTrajectory(
        setting.protocol, **arrays, label_shares=shares, error_accuracy=np.zeros(len(steps)),
        stats=stats, collapsed_at=outcome.collapsed_at, failure=outcome.failure,
        problem=origin[0], recipe=origin[1], moves=runs[-1].moves,
    )  # fmt: skip
    object.__setattr__(result, "error_accuracy", _error_accuracy(result, each, basis))
    return result


def _error_accuracy(run: ClassTrajectory, each: Sequence[Observed], basis: Array) -> Array:
    """How well the error is known: from those of all replicates, or from the state's accuracy."""
    if len(each) == 1:
        return np.asarray(run.stats.accuracy)
    shares, errors = np.array(run.protocol.test.proportions), []
    for seen in each:
        error = np.full(len(run.t), np.nan)
        for t in range(run.good_steps):
            chances = [
                class_probabilities(basis, seen.m[t, :, k] + seen.bias[t], seen.covariance[t, k])[k]
                for k in range(len(shares))
            ]
            error[t] = 1.0 - shares @ chances
        errors.append(error)
    return accuracy_of_mean(np.array(errors), np.ones(len(run.t)))
