r"""The Bayes-optimal error with the direction v unknown: a lower bound for every method.

With known $\rho$ and $\Delta$, the posterior of v given $\alpha_L$ labelled samples and unlabelled
batches $(\alpha_t, \rho_t, \Delta_t)$ has the squared cosine M with the truth that solves

$$\frac{M}{1-M} = \kappa(M), \qquad
  \kappa(M) = \frac{\alpha_L}{\Delta_L} + \sum_t \frac{\alpha_t}{\Delta_t}
  M_s\!\left(\frac{M}{\Delta_t}; \rho_t\right),$$

where $M_s(y; \rho) = E[s \tanh(s y + \sqrt y g + \frac12\log\frac{\rho}{1-\rho})]$ is the expected
squared posterior mean of a hidden label s = ±1 at signal-to-noise ratio y. An unlabelled sample is
worth $M_s$ labelled ones. Every distinct sample counts once; at step t the batches up to t count.
No recipe can have a lower error, so this is the reference line of every error plot.

If given labels are wrong with known probabilities, a labelled sample counts as an unlabelled one
whose class has the posterior probability given its label. The samples with either given label thus
form a batch with a proportion $\rho_t$ of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit, ndtr

from ..arrays import Array
from ..batches import new_samples
from ..confusion import confusion_matrix
from ..errors import InvalidInput
from ..fields import whole
from ..problem import Mixture, Problem

__all__ = ["BayesLimits", "bayes_error", "bayes_path", "best_linear_error", "label_overlap"]

NO_BAYES_LIMIT = (
    "The Bayes limit with an unknown direction has no meaning for general covariances: "
    "it would need a law of means and covariances."
)

_TOLERANCE = 1e-17
_SETTLED = 1e-14


@dataclass(frozen=True)
class BayesLimits:
    """Lowest possible errors on the test mixture, and the squared cosines M they follow from.

    Attributes:
        semi_supervised: error from the labelled samples and the unlabelled batches.
        all_labeled: error if every sample were labelled, with the label noise of the labelled ones.
        labeled_only: error from the labelled samples alone.
        overlap_semi_supervised, overlap_all_labeled, overlap_labeled_only: M of each.
    """

    semi_supervised: float
    all_labeled: float
    labeled_only: float
    overlap_semi_supervised: float
    overlap_all_labeled: float
    overlap_labeled_only: float

    def _repr_html_(self) -> str:
        from ..plots.notebook import limits_card

        return limits_card(self)


def bayes_error(problem: Problem, upto: int | None = None) -> BayesLimits:
    """Return the Bayes-optimal errors of a problem with three sets of labels.

    Arguments:
        upto: count only the batches of steps 1..`upto`; default: all.

    >>> limits = bayes_error(Problem(alpha_l=0.5, alpha_u=2.0, rho=0.5, delta=0.75**2, steps=16))
    >>> round(limits.semi_supervised, 13)
    0.0937829670464
    """
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem")
    asked = problem.steps if upto is None else upto
    accepted = f"must be a step from 0 to {problem.steps}"
    steps = whole("upto", asked, lambda n: 0 <= n <= problem.steps, accepted)
    log_odds = np.concatenate([
        _Batches(problem, np.array([steps])).solve(),
        _Batches(problem, np.array([steps]), all_labeled=True).solve(),
        _Batches(problem, np.array([0])).solve(),
    ])  # fmt: skip
    errors = _optimal_error(log_odds, problem.test_mixture)
    return BayesLimits(*errors.tolist(), *expit(log_odds).tolist())


def bayes_path(problem: Problem) -> Array:
    """Return the semi-supervised limit at every step t = 0..T, from the batches up to t.

    >>> bayes_path(Problem(0.5, 2.0, 0.5, 0.75**2, steps=3)).round(6).tolist()
    [0.180185, 0.122326, 0.109239, 0.103851]
    """
    batches = _Batches(problem, np.arange(problem.steps + 1))
    return _optimal_error(batches.solve(), problem.test_mixture)


def best_linear_error(problem: Problem) -> float:
    """Return the error of the best linear rule on the test mixture of a problem with clusters; its
    means and covariances are assumed known.

    (The Bayes error with unknown parameters would depend on a prior over means and covariances.)

    >>> from selftrain import Clusters
    >>> clusters = Clusters(mean=[1.0, 0.0], covariance=[1.0, 4.0])
    >>> problem = Problem(alpha_l=2.0, alpha_u=4.0, rho=0.5, clusters=clusters, steps=1)
    >>> round(best_linear_error(problem), 6)
    0.158655
    """
    clusters, rho = problem.test_clusters, problem.test_mixture.rho
    if math.isinf(clusters.separation):
        return 0.0
    if clusters.classes == 2:
        return clusters.best_rule(rho).error
    # The classes have one covariance, so the log posterior probabilities are linear scores.
    modes = clusters.class_modes
    alive = modes.variances > 0
    gram = (modes.means[alive].T / modes.variances[alive]) @ modes.means[alive]
    scores = gram - 0.5 * np.diag(gram) + np.log(rho)
    return float(1 - np.diagonal(confusion_matrix(scores, gram)) @ rho)


def _optimal_error(log_odds: Array, test: Mixture) -> Array:
    r"""Return the Bayes error $\rho H(k + \tau) + (1-\rho) H(k - \tau)$ at squared cosine M, with
    $k = \sqrt{M/\Delta}$ and $\tau = \log(\rho/(1-\rho))/(2k)$; `log_odds` is $\log(M/(1-M))$.
    """
    k = np.exp(0.5 * log_expit(log_odds)) / math.sqrt(test.delta)
    tau = 0.5 * float(logit(test.rho)) / k
    return test.rho * ndtr(-k - tau) + (1 - test.rho) * ndtr(tau - k)


def label_overlap(snr: Array, rho: float) -> tuple[Array, Array]:
    r"""Return $M_s(y; \rho)$ and its derivative in y.

    $E[s\tanh] = E[\tanh^2]$, whose terms do not cancel, and the derivative is
    $E[\mathrm{sech}^4]$. The trapezoidal rule of step h has an error of $e^{-2\pi^2/h^2}$ from the
    Gaussian, and of $e^{d^2/2 - 2\pi d/h}$ from the poles of tanh at distance $d =
    \pi/(2\sqrt y)$.

    >>> value, slope = label_overlap(np.array([0.0, 1e6]), 0.2)
    >>> value.round(12).tolist()
    [0.36, 1.0]
    """
    digits = -math.log(_TOLERANCE)
    # At larger signals tanh^2 is 1 wherever the Gaussian has mass: the rule need not grow further.
    reach = math.sqrt(2 * digits)
    clear = 0.25 * (reach + math.sqrt(reach**2 + 2 * digits + 4 * abs(float(logit(rho))))) ** 2
    snr = np.minimum(np.asarray(snr, dtype=float), clear)
    root = np.sqrt(snr)[..., None]
    pole = 0.5 * math.pi / max(float(root.max(initial=0.0)), 1e-3)
    step = min(math.pi * math.sqrt(2 / digits), 2 * math.pi * pole / (digits + 0.5 * pole**2))
    count = math.ceil(math.sqrt(2 * digits) / step)
    g = step * np.arange(-count, count + 1)
    weight = np.exp(-0.5 * g**2)
    weight /= weight.sum()
    value, slope = np.zeros(root.shape[:-1]), np.zeros(root.shape[:-1])
    for sign, share in ((1.0, rho), (-1.0, 1 - rho)):
        mean_square = np.tanh(root * (sign * root + g) + 0.5 * float(logit(rho))) ** 2
        value += share * (mean_square @ weight)
        slope += share * ((1 - mean_square) ** 2 @ weight)
    return value, slope


def _labeled(rows: Array, wrong: Array) -> Array:
    """Return labelled batches split by their given labels; rho becomes the posterior probability of
    the positive class given the label.

    Arguments:
        rows: step, worth (samples per feature over delta), rho and delta of every batch (columns).
        wrong: proportions of wrong labels in the negative and the positive class. If both are zero,
            batches are not split: rho = 1 stands for "the class is known".
    """
    step, worth, rho, delta = rows
    if not wrong.any():
        return np.array([step, worth, np.ones(step.size), delta])
    parts = []
    for flipped, kept in ((wrong[0], 1.0 - wrong[1]), (1.0 - wrong[0], wrong[1])):
        share = (1.0 - rho) * flipped + rho * kept
        parts.append([step, worth * share, rho * kept / share, delta])
    both = np.concatenate(parts, axis=1)
    return np.asarray(both[:, np.argsort(both[0], kind="stable")])


class _Batches:
    """The samples of a problem used up to each of the steps in `upto`; batches with the same rho
    and delta are merged.
    """

    def __init__(self, problem: Problem, upto: NDArray[np.int_], all_labeled: bool = False) -> None:
        problem.needs_sphere("the Bayes limit with an unknown direction")
        rho, delta = problem.labeled
        first = np.array([[0.0], [problem.alpha_l / delta], [rho], [delta]])
        steps, (_, rhos, deltas) = np.arange(1, problem.steps + 1), problem.unlabeled
        batches = np.array([steps, new_samples(problem) / deltas, rhos, deltas])
        rows = [_labeled(first, problem.wrong_labels), batches]
        if all_labeled:
            rows[1] = _labeled(batches, problem.wrong_labels)
        step, worth, rhos, deltas = np.concatenate(rows, axis=1)
        known = (rhos == 0.0) | (rhos == 1.0)
        total = np.append(0.0, np.cumsum(np.where(known, worth, 0.0)))
        self.least = total[np.searchsorted(step, upto, side="right")]
        step, self.worth, rhos, deltas = (x[~known] for x in (step, worth, rhos, deltas))
        # kappa without the features of the samples: a lower bound, from the labels of step 0 alone
        self.floor = self.least + self.worth[step == 0] @ (2.0 * rhos[step == 0] - 1.0) ** 2
        kinds, kind = np.unique(np.stack([rhos, deltas], axis=1), axis=0, return_inverse=True)
        self.kinds = [Mixture(float(rho), float(delta)) for rho, delta in kinds]
        self.kind, self.upto = kind.ravel(), np.searchsorted(step, upto, side="right")
        self.most = self.least + np.append(0.0, np.cumsum(self.worth))[self.upto]
        self.series = self._series() if len(self.kinds) > 1 and upto.size > 1 else None

    def _series(self) -> tuple[Array, Array] | None:
        r"""Return the ends of an interval of $\log(M/(1-M))$, and on it $\kappa$ of every step as a
        Chebyshev series (one column per step); None if the series do not converge.
        """
        ends = np.log([float(self.floor.min()), float(self.most.max())])
        for size in (24, 48, 96, 192):
            angle = math.pi * (np.arange(size) + 0.5) / size
            overlap = expit(ends.mean() + 0.5 * (ends[1] - ends[0]) * np.cos(angle))
            rows = [label_overlap(overlap / mix.delta, mix.rho)[0] for mix in self.kinds]
            terms = (2.0 / size) * np.array(rows) @ np.cos(angle[:, None] * np.arange(size))
            terms[:, 0] *= 0.5
            if np.abs(terms[:, -4:]).max() < _SETTLED:
                sums = np.vstack([np.zeros(size), (self.worth[:, None] * terms[self.kind])])
                return ends, np.cumsum(sums, axis=0)[self.upto].T
        return None

    def kappa(self, log_odds: Array) -> tuple[Array, Array]:
        r"""Return $\kappa$ and its derivative in $\log(M/(1-M))$, at one M for each step."""
        if self.series is not None:
            (low, high), terms = self.series
            half = 0.5 * (high - low)
            x = np.clip((log_odds - low) / half - 1.0, -1.0, 1.0)
            value = chebyshev.chebval(x, terms, tensor=False)
            slope = chebyshev.chebval(x, chebyshev.chebder(terms) / half, tensor=False)
            return self.least + value, slope
        overlap = expit(log_odds)
        value, slope = self.least.copy(), np.zeros(overlap.shape)
        for i, mixture in enumerate(self.kinds):
            of_kind = np.where(self.kind == i, self.worth, 0.0)
            amount = np.append(0.0, np.cumsum(of_kind))[self.upto]
            used = amount > 0
            worth, change = label_overlap(overlap[used] / mixture.delta, mixture.rho)
            value[used] += amount[used] * worth
            slope[used] += amount[used] / mixture.delta * change
        return value, slope * overlap * expit(-log_odds)

    def solve(self) -> Array:
        r"""Return the root of $\omega - \log\kappa(M)$ in $\omega = \log(M/(1-M))$, one for each of
        the steps.

        The root is bracketed by the values of $\kappa$ without unlabelled samples ($M_s = 0$) and
        with all labels known ($M_s = 1$), and is unique because $M_s(y)/y$ decreases. Newton's
        method stays inside the bracket.
        """
        low, high = np.log(self.floor), np.log(self.most)
        root: Array = high.copy()
        for _ in range(200):
            value, slope = self.kappa(root)
            gap = root - np.log(value)
            low, high = np.where(gap < 0, root, low), np.where(gap > 0, root, high)
            moved = root - gap / (1 - slope / value)
            moved = np.where((low <= moved) & (moved <= high), moved, 0.5 * (low + high))
            done = np.abs(moved - root) <= 2e-15 * (1 + np.abs(root))
            root = moved
            if done.all():
                break
        return root
