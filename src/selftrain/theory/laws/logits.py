r"""The law of the training logits of a step: class, previous logit, trained logit.

Prediction `pred: u effective average`: a training sample of step t has a class y, s = 2y-1, the
previous logit $\tilde h$ of `eq:rs-saddle-local-field1`, and the trained logit $u = h + \hat u$,
the proximal map of the field h of `eq:rs-saddle-local-field2` (`eq:rs-saddle-uhat`). u grows with h
and $h = u + c\,\partial_2 l$, $c = \chi\Delta$; so

$$P(u \le U \mid y, \xi_1) = \Phi\!\left(\frac{U + c\,\partial_2 l(\hat y(\tilde h), U)
- E[h \mid y, \xi_1]}{\sqrt{\Delta (q - R^2/q')}}\right),$$

with $\partial_2 l = 0$ for samples that the threshold rejects. So the law needs one integral over
$\xi_1$ and no sampling. The integrand changes steeply near the root of the numerator (the smaller
the change of the weights, the steeper) and jumps at thresholds and hard labels: the integral is
split there.

A sample that no step has seen has a Gaussian logit in each class: $N(B + s m, q_s)$, with $q_s =
\Delta q$ on the sphere (`GaussianLogits`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from ...arrays import Array
from ...errors import InvalidInput
from ...labelers import Labeler
from ...losses import Loss, fixed_kinks
from ..averages.quadrature.adaptive import Index, graded, integrate
from ..averages.quadrature.prox import proximal
from ..step_inputs import StepInputs

if TYPE_CHECKING:
    from ..trajectory import Trajectory

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_BLOCK = 1000


class LogitSample(NamedTuple):
    """Training samples: class (0 or 1), previous logit, trained logit, whether selected."""

    y: NDArray[np.int_]
    previous: Array
    u: Array
    selected: NDArray[np.bool_]


class StepFields(NamedTuple):
    r"""The Gaussian fields of the training samples of a step; pairs are (negative, positive class).

    In the class s, with standard normal $g_1, g_2$: $\tilde h$ = `previous_means` +
    `previous_scales` $g_1$, and $h$ = `means` + `along` $g_1$ + `across` $g_2$; `strengths` is c.

    Attributes:
        rho: proportion of the positive class.
        threshold: samples with $|\tilde h|$ up to this are rejected.
        sharpness: $\gamma$ of the labels.
        wrong: proportions of wrong given labels (step 0).
    """

    rho: float
    threshold: float
    sharpness: float
    previous_means: tuple[float, float]
    previous_scales: tuple[float, float]
    means: tuple[float, float]
    along: tuple[float, float]
    across: tuple[float, float]
    strengths: tuple[float, float]
    wrong: tuple[float, float] = (0.0, 0.0)


NO_PREVIOUS = (math.nan, math.nan)
"""Means or scales of the previous logits at step 0, which has none."""


def training_logits(trajectory: Trajectory, t: int) -> LogitLaw:
    """Return the law of the training logits of a step in which every sample is used once."""
    step = trajectory.solved_step(t)
    loss, labeler = trajectory.problem.loss_at(step), trajectory.recipe.label_function
    return LogitLaw(step, fields_of(trajectory, step), loss, labeler)


def fields_of(trajectory: Trajectory, t: int) -> StepFields:
    """Return the Gaussian fields of the training samples of a solved step."""
    equations = StepInputs(trajectory.problem, trajectory.recipe).equations(
        t, *trajectory.model_before(t)
    )
    labels, gamma = equations.labels, float(trajectory.gammas[t])
    # Relative to gamma times the old weights, as in the equations, which avoids cancellation.
    found = equations.algebra.fields(trajectory.unknowns[t], equations.ridge, gamma, gamma)[:, 0]
    shift, tilts, across, strengths = found[0], *found[1:].reshape(3, -1)
    m, bias = float(shift) + gamma * labels.m, float(trajectory.bias[t])
    means, problem = (bias - m, bias + m), trajectory.problem
    if t == 0:
        return StepFields(
            problem.rho, 0.0, 1.0, NO_PREVIOUS, NO_PREVIOUS, means, (0.0, 0.0), _pair(across),
            _pair(strengths), _pair(problem.wrong_labels),
        )  # fmt: skip
    along = (tilts + gamma) * labels.roots
    sharpness = trajectory.recipe.at_steps(problem.steps).sharpness[t - 1]
    return StepFields(
        float(problem.unlabeled.rho[t - 1]), float(trajectory.thresholds[t - 1]), float(sharpness),
        (labels.bias - labels.m, labels.bias + labels.m), _pair(labels.roots), means, _pair(along),
        _pair(across), _pair(strengths),
    )  # fmt: skip


def _pair(values: Array) -> tuple[float, float]:
    """Return the values for (negative, positive) from one value for both, or one for each."""
    return float(values[0]), float(values[-1])


class LogitLaw:
    """Joint law of (y, previous logit, trained logit) on the training samples of step t.

    At t = 0 there is no previous logit (NaN in samples) and every sample counts as selected. In all
    methods `y` = 0 or 1 restricts to one class, and `selected` = True or False to the samples that
    the threshold selects or rejects; None means all. The fit does not use rejected samples: their
    logits are those of fresh samples.

    Arguments:
        t: the step.
        fields: the Gaussian fields of its samples.
        loss, labeler: loss and labeler of the step.

    >>> from selftrain import Problem, Recipe, solve
    >>> run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=2), Recipe(threshold=0.5))
    >>> law = run.training_logits(1)
    >>> bool(np.isclose(law.selected_probability, run.fraction_selected[1]))
    True
    >>> share = law.cdf(0.0, y=1, selected=True)
    >>> points = law.sample(100_000, seed=0)
    >>> chosen = points.u[(points.y == 1) & points.selected]
    >>> bool(abs(np.mean(chosen <= 0) - share) < 0.01)
    True
    """

    def __init__(self, t: int, fields: StepFields, loss: Loss, labeler: Labeler) -> None:
        self.t, self._loss, self._labeler = t, loss, labeler
        self._rho, self._edge, self._sharpness = fields[:3]
        self._fields = fields

    def __repr__(self) -> str:
        return f"LogitLaw(t={self.t})"

    @property
    def selected_probability(self) -> float:
        """Proportion of the samples that the threshold selects."""
        return float(np.exp(logsumexp(self._log_shares((0, 1), True))))

    def cdf(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """Return P(trained logit <= u), in the shape of u."""
        far = np.clip(np.asarray(u, dtype=float), -1e9, 1e9)  # u may be infinite
        return np.clip(self._law(far, y, selected, density=False), 0.0, 1.0)

    def density(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """Return the density of the trained logit at u, in the shape of u."""
        return self._law(u, y, selected, density=True)

    def joint_density(self, previous: ArrayLike, u: ArrayLike, y: int) -> Array:
        """Return the joint density of previous logit, trained logit and class y, for t >= 1.

        Integrated over both logits and summed over y it is 1.
        """
        if self.t == 0:
            raise InvalidInput("t", 0, "must be 1 or more: a previous logit exists from step 1 on")
        (y,) = _classes(y)
        field, logit = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (previous, u)))
        last_scale = self._fields.previous_scales[y]
        noise = (field - self._fields.previous_means[y]) / last_scale
        z, stretch = self._standardized(y, noise, logit)
        scales = last_scale * self._fields.across[y]
        share = self._rho if y == 1 else 1 - self._rho
        exponent = -0.5 * (noise**2 + z**2) - 2 * _LOG_ROOT_2PI
        return np.asarray(share * stretch * np.exp(exponent) / scales)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> LogitSample:
        """Draw independent training samples from the exact law: draw the fields, then apply the
        proximal map.
        """
        rng = np.random.default_rng(seed)
        y = (rng.random(size) < self._rho).astype(int)
        first, second = rng.standard_normal((2, size))
        pairs = np.array(self._fields[3:])[:, y]
        last_means, last_scales, means, along, across, strengths, wrong = pairs
        field = means + along * first + across * second
        if self.t == 0:
            flipped = rng.random(size) < wrong
            target = np.asarray(self._loss.classes, dtype=float)[np.where(flipped, 1 - y, y)]
            u = proximal(self._loss, target, field, strengths)
            return LogitSample(y, np.full(size, np.nan), u, np.full(size, True))
        previous = last_means + last_scales * first
        selected = np.abs(previous) > self._edge
        target = self._labeler.target(previous, self._sharpness, self._loss)
        u = proximal(self._loss, target, field, np.where(selected, strengths, 0.0))
        return LogitSample(y, previous, u, selected)

    def _law(self, u: ArrayLike, y: int | None, selected: bool | None, *, density: bool) -> Array:
        """Return the sum over classes of the integral over the previous logit."""
        classes = _classes(y)
        values = np.asarray(u, dtype=float)
        logit = values.ravel()
        log_shares = self._log_shares(classes, selected)
        total = float(logsumexp(log_shares))
        if math.isinf(total):
            raise InvalidInput("selected", selected, f"step {self.t} has no such sample")
        result = np.zeros(logit.shape)
        for label, log_share in zip(classes, log_shares, strict=True):
            if log_share == -math.inf:
                continue
            if self.t == 0:
                wrong, at_zero = self._fields.wrong[label], np.zeros(())
                for given, chance in ((label, 1.0 - wrong), (1 - label, wrong)):
                    z, stretch = self._standardized(label, at_zero, logit, given)
                    profile = self._profile(label, z, stretch, density)
                    result += chance * math.exp(log_share - total) * profile
                continue
            for start in range(0, logit.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                result[block] += self._integral(label, logit[block], selected, total, density)
        return result.reshape(values.shape)

    def _integral(
        self, y: int, logit: Array, selected: bool | None, log_total: float, density: bool
    ) -> Array:
        r"""Return the integral over $\xi_1$ of one class, for each logit."""
        prior = math.log(self._rho if y == 1 else 1 - self._rho) - log_total - _LOG_ROOT_2PI

        def integrand(row: Index, noise: Array) -> Array:
            z, stretch = self._standardized(y, noise, logit[row])
            exponent = prior - 0.5 * noise**2
            if selected is not None:
                exponent = np.where(self._chosen(y, noise) == selected, exponent, -np.inf)
            return np.exp(exponent) * self._profile(y, z, stretch, density)

        rows, edges = self._edges(y, logit, selected)
        # Rounding of the logits limits the accuracy, above all when the weights are tiny.
        size = np.abs(logit) + abs(self._fields.means[y]) + (1.0 if density else 0.0)
        rounding = 1e-15 * size / self._fields.across[y]
        if not density:
            rounding = np.minimum(rounding, 1.0)
        return integrate(integrand, rows, edges, np.full(logit.shape, 1e-14) + rounding)

    def _edges(self, y: int, logit: Array, selected: bool | None) -> tuple[Index, Array]:
        """Return the noises at which the integrand of each logit jumps or changes steeply; see
        `adaptive.graded` for the format.
        """
        breaks = [-self._edge, self._edge] if self._edge else []
        breaks += self._labeler.jumps(self._sharpness)
        if math.isfinite(self._sharpness):
            breaks += [0.0, *(kink / self._sharpness for kink in fixed_kinks(self._loss))]
        last_mean, last_scale = self._fields.previous_means[y], self._fields.previous_scales[y]
        noise_breaks = (np.array(breaks) - last_mean) / last_scale
        reach = self._reach(y, selected)
        inner = np.unique(noise_breaks[np.abs(noise_breaks) < reach])
        frame = np.concatenate([[-reach], inner, [reach]])
        root_rows, roots = self._roots(y, logit, frame)
        every = np.arange(logit.size)
        rows = np.concatenate([np.repeat(every, inner.size), root_rows])
        centers = np.concatenate([np.tile(inner, logit.size), roots])
        left, right = (self._layer(y, logit[rows], centers, side) for side in (-1, 1))
        layers = graded(centers, left, right, np.array([2 * reach]))
        all_rows = np.concatenate([np.repeat(every, 2), np.repeat(rows, layers.shape[1])])
        ends = np.tile([-reach, reach], logit.size)
        return all_rows, np.concatenate([ends, np.clip(layers.ravel(), -reach, reach)])

    def _roots(self, y: int, logit: Array, frame: Array) -> tuple[Index, Array]:
        """Return the noises at which the numerator changes sign, on a grid without the jumps."""
        cells = np.concatenate([[1e-9], np.arange(1, 12) / 12, [1 - 1e-9]])
        grid = (frame[:-1, None] + np.diff(frame)[:, None] * cells).ravel()
        positive = self._standardized(y, grid, logit[:, None])[0] > 0
        rows, places = np.nonzero(positive[:, 1:] != positive[:, :-1])
        low, high = grid[places], grid[places + 1]
        rising = positive[rows, places + 1]
        for _ in range(60):
            middle = 0.5 * (low + high)
            above = (self._standardized(y, middle, logit[rows])[0] > 0) == rising
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return rows, 0.5 * (low + high)

    def _layer(self, y: int, logit: Array, center: Array, side: int) -> Array:
        """Return the width over which the standardised field changes by one, on one side of
        `center`.
        """
        near, far = (self._standardized(y, center + side * h, logit)[0] for h in (1e-7, 1e-6))
        with np.errstate(divide="ignore"):
            return np.clip(9e-7 / np.abs(far - near), 1e-13, 1.0)

    def _standardized(
        self, y: int, noise: Array, logit: Array, given: int = 0
    ) -> tuple[Array, Array]:
        r"""Return $(U + c\,\partial_2 l - E[h \mid y, \xi_1])/\sqrt{\Delta(q - R^2/q')}$ and $1 +
        c\,\partial_2^2 l$; at step 0 for the label `given`.
        """
        fields = self._fields
        strength = np.asarray(fields.strengths[y])
        if self.t == 0:
            target = np.asarray(float(self._loss.classes[given]))
        else:
            previous = fields.previous_means[y] + fields.previous_scales[y] * noise
            target = self._labeler.target(previous, self._sharpness, self._loss)
            if self._edge:
                strength = np.where(np.abs(previous) > self._edge, strength, 0.0)
        with np.errstate(over="ignore"):
            pull = strength * self._loss.slope(target, logit)
            stretch = 1 + strength * self._loss.curvature(target, logit)
        mean = fields.means[y] + fields.along[y] * noise
        return (logit - mean + pull) / fields.across[y], stretch

    def _profile(self, y: int, z: Array, stretch: Array, density: bool) -> Array:
        if not density:
            return ndtr(z)
        return stretch * np.exp(-0.5 * z**2 - _LOG_ROOT_2PI) / self._fields.across[y]

    def _chosen(self, y: int, noise: Array) -> NDArray[np.bool_]:
        previous = self._fields.previous_means[y] + self._fields.previous_scales[y] * noise
        return np.asarray(np.abs(previous) > self._edge)

    def _thresholds(self, y: int) -> tuple[float, float]:
        mean, scale = self._fields.previous_means[y], self._fields.previous_scales[y]
        return (-self._edge - mean) / scale, (self._edge - mean) / scale

    def _reach(self, y: int, selected: bool | None) -> float:
        """Return the bound of |noise| in the integrals.

        Beyond it the density is below exp(-45) of its largest value on the (selected) samples.
        """
        nearest = 0.0
        if selected is not None and bool(self._chosen(y, np.zeros(()))) != selected:
            nearest = min(abs(edge) for edge in self._thresholds(y))
        return math.sqrt(nearest**2 + 90.0)

    def _log_shares(self, classes: tuple[int, ...], selected: bool | None) -> Array:
        """Return log P(y and selected) for each class."""
        shares = []
        for y in classes:
            share = math.log(self._rho if y == 1 else 1 - self._rho)
            if selected is not None and (self.t == 0 or not self._edge):
                share = share if selected else -math.inf
            elif selected is not None:
                low, high = self._thresholds(y)
                if selected:
                    share += float(np.logaddexp(log_ndtr(low), log_ndtr(-high)))
                else:
                    low, high = log_ndtr((low, high) if low + high < 0 else (-high, -low))
                    share += float(high + np.log1p(-np.exp(low - high)))
            shares.append(share)
        return np.array(shares)


def _classes(y: int | None) -> tuple[int, ...]:
    if y is None:
        return (0, 1)
    if y not in (0, 1):
        raise InvalidInput("y", y, "must be 0, 1, or None for both classes")
    return (int(y),)


class GaussianLogits(NamedTuple):
    """Law of the logits of fresh samples, a Gaussian in each class.

    Attributes:
        means, spreads: mean and standard deviation in the negative and the positive class.
        rho: proportion of the positive class.

    In the methods `y` = 0 or 1 restricts to one class.

    >>> from selftrain import Problem, Recipe, solve
    >>> run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=2), Recipe())
    >>> law = run.test_logits(2)
    >>> wrong = 0.4 * law.cdf(0.0, y=1) + 0.6 * (1 - law.cdf(0.0, y=0))
    >>> bool(np.isclose(wrong, run.error[2]))
    True
    """

    means: tuple[float, float]
    spreads: tuple[float, float]
    rho: float

    def cdf(self, u: ArrayLike, y: int | None = None) -> Array:
        """Return P(logit <= u), in the shape of u."""
        return self._mixed(y, [ndtr(z) for z in self._standard(u)])

    def density(self, u: ArrayLike, y: int | None = None) -> Array:
        """Return the density of the logit at u, in the shape of u."""
        bells = [np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) for z in self._standard(u)]
        return self._mixed(y, [bell / s for bell, s in zip(bells, self.spreads, strict=True)])

    def _standard(self, u: ArrayLike) -> list[Array]:
        pairs = zip(self.means, self.spreads, strict=True)
        return [(np.asarray(u, dtype=float) - mean) / spread for mean, spread in pairs]

    def _mixed(self, y: int | None, of_class: list[Array]) -> Array:
        if len(_classes(y)) == 1:
            return np.asarray(of_class[_classes(y)[0]])
        return np.asarray((1 - self.rho) * of_class[0] + self.rho * of_class[1])
