r"""The result of `solve` for clusters with a shape: a `Trajectory` whose quantities mean what they
mean for rows.

The names of the sphere keep their meaning: m is the mean logit of a class without the bias,
$\mu\cdot\beta$; q is $|\beta|^2$; overlap is $\beta\cdot\beta'$ and chi the mean response of a
weight, tr G/N. What a sphere gets from q alone, the variance of the logits, is here
`logit_variances`, one for each class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from ... import observables
from ...arrays import Array
from ...errors import InvalidInput
from ..state import unit_changes
from ..trajectory import Trajectory

if TYPE_CHECKING:
    import xarray as xr

    from ...problem import Problem
    from ..laws.logits import StepFields

_STORED = {
    "logit_variances": ("t", "class"),
    "strengths": ("t", "class"),
    "off_best": ("t",),
    "unknowns": ("t", "unknown"),
    "gammas": ("t",),
}
"""Fields of a run on clusters that a file has as they are, with their dimensions."""


class ShapedWeights:
    r"""The law of the weights $\beta$ of every step: $N(b, V)$."""

    def __init__(self, run: ShapedTrajectory):
        self.run = run

    def mean(self, t: int = -1) -> Array:
        """The mean of the weights of step t, one entry per feature."""
        run = self.run
        mean = run.space.mean_of(run.history[t], run.problem.test_clusters)
        unit = float(self._units[range(len(self._units))[t]])
        return np.asarray(unit * np.asarray(mean, dtype=float))

    @property
    def _units(self) -> Array:
        """The units of the history of each step."""
        fading = self.run.fading
        return np.ones(len(self.run.m)) if fading is None else np.ldexp(1.0, -fading.exponents)

    def along(self, direction: Any) -> tuple[Array, Array]:
        r"""Mean and standard deviation of $u\cdot\beta$ over the steps, for a direction u of the
        rows.
        """
        u = np.asarray(direction, dtype=float)
        run, steps = self.run, self.run.problem.steps + 1
        if u.shape != (run.space.features,):
            accepted = f"a vector with {run.space.features} entries is accepted"
            raise InvalidInput("direction", direction, accepted)
        means, spreads = np.full((2, steps), np.nan)
        for t, weights in enumerate(run.history):
            means[t] = self.mean(t) @ u
            spreads[t] = np.sqrt(run.space.variance_along(weights, u)) * self._units[t]
        return means, spreads


@dataclass(frozen=True, eq=False, repr=False)
class ShapedTrajectory(Trajectory):
    r"""Large-system limit of a self-training run on clusters with a shape; every array runs over t
    = 0..T.

    Attributes:
        m: $\mu\cdot\beta$ on the test clusters.
        v: $|\beta|^2$ off the direction of their mean.
        logit_variances: $\beta^T\Sigma_s\beta$ on the test clusters, columns (negative, positive).
        strengths: $c_s$, how far a training point moves its own logit, columns (negative,
            positive).
        off_best: $\beta^T\bar\Sigma\beta$ off the best direction, in the metric of the noise.
        unknowns: the conjugates of each step, as `shapes.modes` orders them.
        gammas: the sharpness that they are measured from.
        history: the law of the weights of each step, in the coordinates of `space`.
        q_hat, chi_hat, r_hat: the conjugates times the mean variance of a feature, summed over the
            groups.
    """

    logit_variances: Array = field(kw_only=True)
    strengths: Array = field(kw_only=True)
    off_best: Array = field(kw_only=True)
    unknowns: Array = field(kw_only=True)
    gammas: Array = field(kw_only=True)
    history: tuple[Any, ...] = field(kw_only=True)
    space: Any = field(kw_only=True)

    @property
    def q(self) -> Array:
        r"""$|\beta|^2$."""
        q: Array = (self.m / self.problem.test_clusters.length) ** 2 + self.v
        return q

    @property
    def _scaled_q(self) -> Array:
        along = self.scaled("m") / self.problem.test_clusters.length
        q: Array = along**2 + self.scaled("v")
        return q

    def model_before(self, t: int) -> tuple[Any, float]:
        """Weights and bias that step t starts from, in the units of the step."""
        if t == 0:
            return self.space.no_weights(), 0.0
        (mean, variance), factor = self.history[t - 1], float(unit_changes(self)[t])
        kind, bias = type(self.history[t - 1]), float(self.scaled("bias")[t - 1])
        return kind(mean * factor, variance * factor**2), bias * factor

    @cached_property
    def error(self) -> Array:
        r"""$\rho H((m+B)/\sqrt{q_+}) + (1-\rho) H((m-B)/\sqrt{q_-})$ on the test mixture."""
        rho = self.problem.test_mixture.rho
        negative, positive = self.class_errors.T
        error: Array = rho * positive + (1 - rho) * negative
        return error

    @cached_property
    def class_errors(self) -> Array:
        """The error within each class of the test clusters, columns (negative, positive)."""
        negative, positive = np.sqrt(self.scaled("logit_variances").T)
        m, bias = self.scaled("m"), self.scaled("bias")
        errors = np.column_stack([ndtr(-(m - bias) / negative), ndtr(-(m + bias) / positive)])
        if self.collapsed_at is not None:
            errors[self.collapsed_at :] = [1.0, 0.0] if self.predicts_positive else [0.0, 1.0]
        return errors

    @property
    def predicts_positive(self) -> bool | None:
        """Whether the labels that ended a collapsed run are positive: the side on which the batch
        lies.
        """
        if self.collapsed_at is None:
            return None
        last = self.collapsed_at - 1
        m, negative, positive = self.on_batch(last)
        limit, rho = self._limits[last], float(self.problem.unlabeled.rho[last])
        bias = float(self.scaled("bias")[last])
        sides = [
            np.logaddexp(
                np.log(rho) + log_ndtr((side * (m + bias) - limit) / np.sqrt(positive)),
                np.log1p(-rho) + log_ndtr((side * (bias - m) - limit) / np.sqrt(negative)),
            )
            for side in (1.0, -1.0)
        ]
        return bool(sides[0] > sides[1])

    def on_batch(self, t: int) -> tuple[float, float, float]:
        r"""m, $q_-$ and $q_+$ of the model of step t on the batch of step t + 1, in the units of
        step t.
        """
        m, *squares = self.space.projections(self.history[t], self.problem.batch_clusters[t])
        return float(m), float(squares[0]), float(squares[-1])

    @cached_property
    def thresholds(self) -> Array:
        r"""What $|\tilde h|$ is compared with in steps 1..T: $\Gamma|\beta'||\mu|$."""
        return self._thresholds_at(self.q)

    @property
    def _limits(self) -> Array:
        """`thresholds` in the units of the labelling step."""
        return self._thresholds_at(self._scaled_q)

    def _thresholds_at(self, q: Array) -> Array:
        assert self.problem.clusters is not None
        limits: Array = self._thresholds * np.sqrt(q[:-1]) * self.problem.clusters.length
        return limits

    @property
    def fraction_selected(self) -> Array:
        """Share of the batch that the threshold keeps (NaN at t = 0)."""
        right, wrong = self._selected(self._limits)
        return np.where(np.append(1.0, self._thresholds) == 0, 0 * right + 1.0, right + wrong)

    @property
    def pseudo_label_accuracy(self) -> Array:
        """Agreement of all pseudo-labels of step t with the truth (NaN at t = 0)."""
        return self._selected(np.zeros(self.problem.steps))[0]

    @property
    def selected_label_accuracy(self) -> Array:
        """Agreement of the selected pseudo-labels of step t with the truth (NaN at t = 0)."""
        right, wrong = self._selected(self._limits)
        accuracy: Array = right / (right + wrong)
        return accuracy

    def _selected(self, limits: Array) -> tuple[Array, Array]:
        """Shares of the batch of step t that are selected on the right and on the wrong side of the
        plane.
        """
        right, wrong = np.full((2, self.problem.steps + 1), np.nan)
        biases = self.scaled("bias")
        for t in range(1, self.good_steps):
            m, negative, positive = self.on_batch(t - 1)
            rho, bias = float(self.problem.unlabeled.rho[t - 1]), float(biases[t - 1])
            right[t] = wrong[t] = 0.0
            for sign, share, q in ((1.0, rho, positive), (-1.0, 1 - rho, negative)):
                right[t] += share * ndtr((m + sign * bias - limits[t - 1]) / np.sqrt(q))
                wrong[t] += share * ndtr((-m - sign * bias - limits[t - 1]) / np.sqrt(q))
        return right, wrong

    @cached_property
    def train_loss(self) -> Array:
        """Mean loss of a training point that was selected, at the minimum."""
        from .engine import train_loss

        return train_loss(self)

    @property
    def balanced_error(self) -> Array:
        """The mean of the two class errors."""
        balanced: Array = self.class_errors.mean(axis=1)
        return balanced

    @property
    def auc(self) -> Array:
        r"""P(a positive row has the larger logit): $\Phi(2m/\sqrt{q_- + q_+})$."""
        variances = self.scaled("logit_variances")
        auc: Array = ndtr(2 * self.scaled("m") / np.sqrt(variances.sum(axis=1)))
        return auc

    @property
    def weights(self) -> ShapedWeights:  # type: ignore[override]
        """The law of the weights: Gaussian, with a mean and a covariance in the space of the
        rows.
        """
        return ShapedWeights(self)

    def _step_fields(self, t: int) -> StepFields:
        """The Gaussian fields of the training points of a solved step, from its conjugates."""
        from ..laws.logits import NO_PREVIOUS, StepFields

        problem, recipe, gamma = self.problem, self.recipe, float(self.gammas[t])
        shape = problem.clusters if t == 0 else problem.batch_clusters[t - 1]
        old = self.space.no_weights() if t == 0 else self.history[t - 1]
        values = recipe.at_steps(problem.steps)
        ridge = recipe.lambda_l if t == 0 else float(values.lambda_u[t - 1])
        # measured from the sharpened old weights, as the step itself is: the change does not cancel
        found = self.space.step(old, shape).fields(self.unknowns[t], ridge, gamma, gamma)[:, 0]
        groups, bias = self.space.groups, float(self.bias[t])
        tilts, across, strengths = (
            _pair(found[1 + k * groups : 1 + (k + 1) * groups]) for k in range(3)
        )
        if t == 0:
            m = float(found[0])
            return StepFields(
                float(problem.rho), 0.0, 1.0, NO_PREVIOUS, NO_PREVIOUS, (bias - m, bias + m),
                (0.0, 0.0), across, strengths,
            )  # fmt: skip
        last_m, *squares = (float(value) for value in self.on_batch(t - 1))
        last_bias, last_scales = float(self.bias[t - 1]), _pair(np.sqrt(squares))
        m = float(found[0]) + gamma * last_m
        along = [(tilt + gamma) * scale for tilt, scale in zip(tilts, last_scales, strict=True)]
        return StepFields(
            float(problem.unlabeled.rho[t - 1]), float(self.thresholds[t - 1]),
            float(values.sharpness[t - 1]), (last_bias - last_m, last_bias + last_m), last_scales,
            (bias - m, bias + m), (along[0], along[1]), across, strengths,
        )  # fmt: skip

    def _test_spreads(self, t: int) -> tuple[float, float]:
        return _pair(np.sqrt(self.logit_variances[t]))

    def parts(self) -> list[xr.Dataset]:
        """What a file of this run has beyond its quantities over t: the laws of the weights."""
        import xarray as xr

        data = {f"shape_{name}": (dims, getattr(self, name)) for name, dims in _STORED.items()}
        variances = np.array([weights.variance for weights in self.history])
        data["shape_means"] = (
            ("solved", "mode"),
            np.array([weights.mean for weights in self.history]),
        )
        data["shape_spreads"] = (("solved", "mode", "other")[: variances.ndim], variances)
        return [*super().parts(), xr.Dataset(data)]

    @classmethod
    def from_parts(cls, data: xr.Dataset, problem: Problem) -> dict[str, Any]:
        """The fields that `parts` stored."""
        from .engine import law_of, space_of_problem

        fields: dict[str, Any] = {
            name: data[f"shape_{name}"].values.astype(float) for name in _STORED
        }
        space = space_of_problem(problem)
        laws = zip(data["shape_means"].values, data["shape_spreads"].values, strict=True)
        made = (law_of(space, mean.astype(float), spread.astype(float)) for mean, spread in laws)
        return super().from_parts(data, problem) | fields | {"history": tuple(made), "space": space}

    @property
    def cosine(self) -> Array:
        r"""$m/\sqrt{\bar q\,\mu^T\bar\Sigma^{-1}\mu}$, the cosine to the best direction in the
        metric of the average noise.

        NaN if the means differ where the noise has no variance: there is no best direction then.
        """
        return 1.0 - self.one_minus_cosine

    @property
    def one_minus_cosine(self) -> Array:
        """1 - cosine, without cancellation."""
        best = self.problem.test_clusters.separation
        if not np.isfinite(best):
            return np.full(self.m.shape, np.nan)
        return observables.one_minus_cosine(self.scaled("m") / best, self.scaled("off_best"))


def _pair(values: Array) -> tuple[float, float]:
    """One value for both classes, or one for each (negative, positive)."""
    return float(values[0]), float(values[-1])
