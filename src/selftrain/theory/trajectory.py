r"""`Trajectory`, the result of `solve` for two classes: order parameters over the steps, derived
quantities, and statistics of the solver.

A `Trajectory` stores $m, v = q - m^2, B, \chi, R$ and the conjugates $\hat Q, \hat\chi, \hat m,
\hat R$ of Definition `def: self-consistent equations`; everything else (errors, laws, frames,
plots) is derived from these on demand.

With general covariances the names keep their meaning: m is the mean logit of a class without the
bias, $\mu\cdot\beta$; q is $|\beta|^2$; overlap is $\beta\cdot\beta'$ and chi the mean response
of a weight, tr G/N. The variance of the logits, $\Delta q$ for a sphere, is `logit_variances`, one
for each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .. import observables
from ..arrays import Array
from ..batches import pseudo_labeled
from ..errors import InvalidInput, StageError
from ..fields import expand
from ..observables import SYMBOLS
from ..problem import Problem
from ..protocol import Protocol, protocol_of
from ..recipe import Recipe
from .solved_run import SolvedRun
from .stats import SolverStats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from .causal.laws import TrainingLogits
    from .causal.reuse_record import Reuse
    from .causal.samples import FittedSamples
    from .fading import Fading
    from .geometry.space import Space
    from .laws import GaussianLogits, LogitLaw, WeightLaw
    from .run_file import Kinds

    AnyLogitLaw: TypeAlias = LogitLaw | TrainingLogits

__all__ = ["Trajectory"]

AVERAGED = ("train_loss", "objective")
"""Quantities that cost an extra evaluation of the averages of each step."""


@dataclass(frozen=True, eq=False)
class Trajectory(SolvedRun):
    r"""Large-system limit of a self-training run; every array runs over t = 0..T.

    Attributes:
        m: overlap with the cluster direction, $v \cdot w / N$ (`eq: meaning of m`, `eq:macro
            quantities`); $\mu\cdot\beta$ of the test clusters.
        v: squared norm of the weights orthogonal to that direction, $q - m^2$.
        bias: $B$ (`eq: meaning of B`).
        chi: linear susceptibility $\chi$ (`eq: meaning of chi`; minus the response to $+\epsilon
            w$).
        overlap: $R$, overlap with the weights of the previous step (`eq: meaning of R`; NaN at t =
            0).
        q_hat, chi_hat, m_hat, r_hat: the conjugates: confidence, noise, signal and propagation of
            the effective process of a weight (`eq: effective w intuitive`; r_hat is NaN at t = 0).
            With general covariances they are multiplied by the mean variance of a feature.
        collapsed_at: first step whose pseudo-labels are all of one class, or None. From there on
            `error` is that of predicting one class and every other quantity is NaN.
        failure: why the run ended early (only with `on_failure="partial"`), or None. From
            that step on everything is NaN.
        stats: statistics of the solver.
        logit_variances: $\beta^T\Sigma_s\beta$ on the test clusters, columns (negative, positive);
            $\Delta q$ for a sphere.
        off_best: $\beta^T\bar\Sigma\beta$ of the part of the weights that is orthogonal, in this
            metric, to the best direction $\bar\Sigma^{-1}\mu$.
        reuse: results specific to data reuse; None if every sample is used once.
        fading: the state of steps whose weights underflow (`theory.fading`); None if none do.
            Error, cosine and other quantities that do not depend on the scale of the weights are
            exact there; m, v, ... may be zero, and `log_q` is finite.
        space: the coordinates of the weights (`geometry`).
        weight_means, weight_spreads: the law of the weights, in the units of each step.
        unknowns: the unknowns of each step, in the order of `geometry.modes`; None with data reuse.
        gammas: the sharpness $\gamma_0$ that the unknowns refer to; None with data reuse.
    """

    problem: Problem
    recipe: Recipe
    m: Array
    v: Array
    bias: Array
    chi: Array
    overlap: Array
    q_hat: Array
    chi_hat: Array
    m_hat: Array
    r_hat: Array
    stats: SolverStats = field(repr=False)
    collapsed_at: int | None = None
    failure: StageError | None = None
    reuse: Reuse | None = field(default=None, repr=False)
    fading: Fading | None = field(default=None, repr=False)
    logit_variances: Array = field(default=None, repr=False)  # type: ignore[arg-type]
    off_best: Array = field(default=None, repr=False)  # type: ignore[arg-type]
    space: Space = field(default=None, repr=False)  # type: ignore[assignment]
    unknowns: Array = field(default=None, repr=False)  # type: ignore[arg-type]
    gammas: Array = field(default=None, repr=False)  # type: ignore[arg-type]
    weight_means: Array = field(default=None, repr=False)  # type: ignore[arg-type]
    weight_spreads: Array = field(default=None, repr=False)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if self.logit_variances is None:
            delta = self.problem.test_mixture.delta
            both = np.repeat((delta * self.q)[:, None], 2, axis=1)
            object.__setattr__(self, "logit_variances", both)
            object.__setattr__(self, "off_best", delta * self.v)

    def __repr__(self) -> str:
        last = self.good_steps - 1
        ended = "" if self.collapsed_at is None else f", collapsed at step {self.collapsed_at}"
        if self.failure is not None:
            ended = f", failed at step {self.failure.step}"
        return (
            f"Trajectory(steps={self.problem.steps}, error {self.error[0]:.6g} -> "
            f"{self.error[-1]:.6g}, cosine {self.cosine[0]:.6g} -> {self.cosine[last]:.6g}{ended})"
        )

    TABLE = tuple(SYMBOLS)
    RECORDED = (*SYMBOLS, "balanced_error", "auc")

    @property
    def classes(self) -> int:
        """The number of classes."""
        return 2

    @property
    def proportions(self) -> tuple[float, ...]:
        """Proportions of the negative and the positive class in the test mixture."""
        rho = self.problem.test_mixture.rho
        return (1 - rho, rho)

    @property
    def steps(self) -> int:
        """The number T of self-training steps."""
        return self.problem.steps

    @property
    def good_steps(self) -> int:
        """The number of steps, step 0 included, that have a solved state."""
        return int(np.isfinite(self.m).sum())

    @property
    def q(self) -> Array:
        r"""Squared norm of the weights, $q$ (`eq: meaning of q`); $|\beta|^2$."""
        q: Array = (self.m / self.problem.test_clusters.length) ** 2 + self.v
        return q

    @property
    def log_q(self) -> Array:
        """Natural logarithm of q, also where q underflows."""
        with np.errstate(divide="ignore"):
            log_q: Array = np.log(self.scaled_q)
        return log_q if self.fading is None else log_q - 2 * np.log(2.0) * self.fading.exponents

    def scaled(self, name: str) -> Array:
        """Return a quantity in the units of each step, in which it does not underflow
        (`theory.fading`).
        """
        if self.fading is not None and name in self.fading.scaled:
            return self.fading.scaled[name]
        return np.asarray(getattr(self, name))

    @property
    def scaled_q(self) -> Array:
        """The squared norm q in the units of each step (`theory.fading`)."""
        along = self.scaled("m") / self.problem.test_clusters.length
        q: Array = along**2 + self.scaled("v")
        return q

    def law(self, t: int) -> Any:
        """Return the law of the weights of a solved step in the coordinates of `space`, in the
        units of the step.
        """
        return self.space.law(self.weight_means[t], self.weight_spreads[t])

    def model_before(self, t: int) -> tuple[Any, float]:
        """Return the weights and the bias that step t starts from, in the units of step t."""
        if t == 0:
            return self.space.no_weights(), 0.0
        (mean, variance), factor = self.law(t - 1), float(self.unit_changes[t])
        bias = float(self.scaled("bias")[t - 1])
        return self.space.law(mean * factor, variance * factor**2), bias * factor

    @property
    def unit_changes(self) -> Array:
        """Factors that convert weights and bias from the units of step t - 1 to those of step t; 1
        unless the weights are rescaled (`theory.fading`).
        """
        if self.fading is None:
            return np.ones(self.problem.steps + 1)
        return np.ldexp(1.0, np.diff(self.fading.exponents, prepend=0))

    @cached_property
    def error(self) -> Array:
        r"""$\epsilon_g = \rho H((m+B)/\sqrt{q_+}) + (1-\rho) H((m-B)/\sqrt{q_-})$ on the test
        mixture (`pred: generalization error`, `eq: rs generalization error`); for a sphere
        $q_\pm = \Delta q$.
        """
        return super().error

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
    def confusion(self) -> Array:
        """P(predicted class | true class), (T+1, 2, 2), rows by true class."""
        negative, positive = self.class_errors.T
        rows = np.array([[1 - negative, negative], [positive, 1 - positive]])
        return np.moveaxis(rows, -1, 0)

    @cached_property
    def label_shares(self) -> Array:
        """Proportions of the negative and the positive class among the pseudo-labels of step t
        (t = 0: among the given labels), (T+1, 2); NaN for soft labels of the squared loss.
        """
        if self.reuse is not None:
            return self.reuse.shares
        from .label_shares import label_shares

        return label_shares(self)

    @property
    def collapsed_class(self) -> int | None:
        """The class that is missing among the labels of a collapsed run; None without collapse."""
        return None if self.collapsed_at is None else 1 - int(bool(self.predicts_positive))

    @property
    def auc(self) -> Array:
        r"""Area under the ROC curve, $\Phi(2m/\sqrt{q_- + q_+})$: the probability that a positive
        sample has a larger logit than a negative one.
        """
        variances = self.scaled("logit_variances")
        auc: Array = ndtr(2 * self.scaled("m") / np.sqrt(variances.sum(axis=1)))
        return auc

    @property
    def cosine(self) -> Array:
        r"""The cosine $m/\sqrt q$ (`eq: cosine similarity`); with general covariances that with the
        best direction $\bar\Sigma^{-1}\mu$, in the metric of the average covariance $\bar\Sigma$.

        NaN if the means differ in a direction without noise: there is no best direction then.
        """
        along, across = self._to_best
        return along / np.hypot(along, np.sqrt(across))

    @property
    def one_minus_cosine(self) -> Array:
        """1 - cosine, without cancellation."""
        return observables.one_minus_cosine(*self._to_best)

    @property
    def _to_best(self) -> tuple[Array, Array]:
        """The component of the weights along the best direction, and the squared norm of the rest
        (`off_best`).
        """
        best = self.problem.test_clusters.separation
        along = self.scaled("m") / best if np.isfinite(best) else np.full(self.m.shape, np.nan)
        return along, self.scaled("off_best")

    @property
    def bias_to_norm(self) -> Array:
        r"""The ratio $B/\sqrt q$, which grows over the steps if classes are imbalanced."""
        return self.scaled("bias") / np.sqrt(self.scaled_q)

    @property
    def thresholds(self) -> Array:
        r"""Limits of $|\tilde h|$ up to which steps 1..T reject samples: $\Gamma\sqrt{q'}$ times
        half the distance of the labelled class means.
        """
        return self._thresholds_at(self.q)

    def _thresholds_at(self, q: Array) -> Array:
        factors = self.recipe.at_steps(self.problem.steps).threshold
        limits: Array = factors * np.sqrt(q[:-1]) * self.problem.sample_clusters[0].length
        return limits

    @property
    def fraction_selected(self) -> Array:
        """Proportion of the batch that the threshold selects (NaN at t = 0)."""
        if self.reuse is not None:
            return np.array(self.reuse.measured[0])
        right, wrong = self._selected
        factors = np.append(1.0, self.recipe.at_steps(self.problem.steps).threshold)
        return np.where(factors == 0, 0 * right + 1.0, right + wrong)

    @property
    def pseudo_label_accuracy(self) -> Array:
        """Accuracy of all pseudo-labels of step t, rejected ones included (NaN at t = 0)."""
        if self.reuse is not None:
            return np.array(self.reuse.measured[1])
        return self._shares_at(np.zeros(self.problem.steps))[0]

    @property
    def selected_label_accuracy(self) -> Array:
        """Accuracy of the selected pseudo-labels of step t (NaN at t = 0)."""
        if self.reuse is not None:
            return np.array(self.reuse.measured[2])
        right, wrong = self._selected
        accuracy: Array = right / (right + wrong)
        return accuracy

    @cached_property
    def on_batch(self) -> Array:
        r"""m and the logit variances $q_-$ and $q_+$ of the model of step t - 1 on the batch of
        step t, in the units of step t - 1; rows t = 1..T, NaN from the first step without a state.
        """
        from .geometry.space import space_of

        # Not `self.space`: gradients call this with another problem than the one solved.
        space = space_of(self.problem.distinct_clusters)
        found = np.full((self.problem.steps, 3), np.nan)
        last, batches = min(self.good_steps, self.problem.steps), self.problem.batch_clusters
        if last and len(self.problem.distinct_clusters) == 1:  # batches and test set are alike
            found[:last, 0] = self.scaled("m")[:last]
            found[:last, 1:] = self.scaled("logit_variances")[:last]
            return found
        for t in range(last):
            m, *squares = space.projections(self.law(t), batches[t])
            found[t] = m, squares[0], squares[-1]
        return found

    @property
    def scaled_thresholds(self) -> Array:
        """The limits `thresholds` of steps 1..T, each in the units of the step before."""
        return self._thresholds_at(self.scaled_q)

    @property
    def _selected(self) -> tuple[Array, Array]:
        return self._shares_at(self.scaled_thresholds)

    def _shares_at(self, limits: Array) -> tuple[Array, Array]:
        """Return the proportions of the batch of step t whose logits exceed `limits` in absolute
        value and are classified correctly, and incorrectly.
        """
        m, negative, positive = self.on_batch.T
        bias, rho = self.scaled("bias")[:-1], self.problem.unlabeled.rho
        right, wrong = np.full((2, self.problem.steps + 1), np.nan)
        shares = observables.selected_shares(m, (negative, positive), bias, rho, limits)
        right[1:], wrong[1:] = shares
        right[self.good_steps :] = wrong[self.good_steps :] = np.nan
        return right, wrong

    @property
    def predicts_positive(self) -> bool | None:
        """Whether the labels of a collapsed run are all positive (else all are negative); None if
        the run did not collapse.
        """
        if self.collapsed_at is None:
            return None
        last = self.collapsed_at - 1
        bias = float(self.scaled("bias")[last])
        if self.space is None:
            return bias > 0
        m, negative, positive = self.on_batch[last]
        limit = self.scaled_thresholds[last]
        rho = float(self.problem.unlabeled.rho[last])
        return observables.selects_positive(m, (negative, positive), bias, rho, limit)

    @cached_property
    def accuracy(self) -> Array:
        """Relative accuracy of the state after each step, with the propagated errors of earlier
        steps.
        """
        from .accuracy import carried

        return carried(self)

    def summary(self) -> dict[str, Any]:
        """Return statistics of the solver, as plain values: `stats.summary()` and the largest
        value of `accuracy`.
        """
        known = self.accuracy[~np.isnan(self.accuracy)]
        worst = float(known.max()) if known.size and np.isfinite(known).all() else None
        return {"accuracy": worst, **self.stats.summary()}

    @cached_property
    def train_loss(self) -> Array:
        """Mean training loss at the minimum of each step: over the labelled samples at step 0, over
        the selected pseudo-labelled samples afterwards.
        """
        return self.train_loss_at(self.t)

    def train_loss_at(self, steps: NDArray[np.int64]) -> Array:
        """Return the training loss of the given steps only: each costs an extra evaluation."""
        if self.reuse is not None:
            return np.array(self.reuse.measured[3][steps])
        from .step_inputs import train_loss

        return train_loss(self, steps)

    @property
    def objective(self) -> Array:
        r"""Minimum of the objective per feature, $\alpha E[1_{sel}\, l] + \lambda q/2$; includes
        labelled samples that a step reuses.
        """
        return self.objective_with(self.train_loss)

    def objective_with(self, train_loss: Array) -> Array:
        """Return the objective at the steps whose training loss is given; NaN at the others."""
        alpha = np.append(self.problem.alpha_l, pseudo_labeled(self.problem))
        ridge = np.append(self.recipe.lambda_l, self.recipe.at_steps(self.problem.steps).lambda_u)
        share = np.append(1.0, self.fraction_selected[1:])
        objective: Array = alpha * share * train_loss + 0.5 * ridge * self.q
        if self.reuse is not None:
            weights = np.append(
                1.0, expand("keep_labeled", self.problem.keep_labeled, len(share) - 1)
            )
            loss = np.append(0.0, self.reuse.measured[4, 1:])
            objective = objective + self.problem.alpha_l * np.where(
                weights > 0, weights * loss, 0.0
            )
        return objective

    @property
    def overlaps(self) -> Array:
        r"""Overlaps $C_{ts} = w^{(t)} \cdot w^{(s)}/N$ of all pairs of steps, shape (T+1, T+1)."""
        if self.reuse is not None:
            return self.reuse.pairs
        from .laws.weight_law import overlaps_of

        return overlaps_of(self)

    @property
    def response(self) -> Array:
        r"""Responses $\chi_{ts}$ of the weights of step t to a field on the weights at step s;
        lower triangular, $\chi_{tt} = \chi$.

        If every sample is used once, a field acts on later steps only through the weights of all
        steps between.
        """
        if self.reuse is not None:
            return self.reuse.response
        from .laws.weight_law import response_of

        return response_of(self)

    @property
    def weights(self) -> WeightLaw:
        """The law of the weights (Predictions `pred: rs generating functional w`, `pred: w
        effective average`): of one feature, or along any direction with general covariances.
        """
        from .laws.weight_law import weights_of

        return weights_of(self)

    def training_logits(self, t: int = -1, samples: str | None = None) -> AnyLogitLaw:
        """Return the law of the training logits of step t (Prediction `pred: u effective average`).

        Arguments:
            t: the step; a negative one counts from the end.
            samples: None for the samples of step t (from step 1 on the pseudo-labelled ones), or
                "labeled" for the labelled samples in a step that reuses them.
        """
        if self.reuse is not None:
            from .causal.laws import TrainingLogits, chosen_samples

            at = self.solved_step(t)
            chosen = chosen_samples(self.protocol, self._samples[at], samples)
            return TrainingLogits(at, self.problem.loss_at(at), samples, chosen)
        if samples is not None:
            accepted = 'must be None, or "labeled" where labelled samples are reused'
            raise InvalidInput("samples", samples, accepted)
        from .laws.logits import training_logits

        return training_logits(self, t)

    @cached_property
    def protocol(self) -> Protocol:
        """The problem and the recipe as a `Protocol`."""
        return protocol_of(self.problem, self.recipe)

    @cached_property
    def _samples(self) -> list[list[FittedSamples]]:
        """The samples of every solved step of a run with data reuse."""
        from .causal.laws import samples_of_fits

        return samples_of_fits(self.protocol, self.good_steps)

    def test_logits(self, t: int = -1) -> GaussianLogits:
        """Return the law of the logits of fresh samples of the test mixture at step t: a Gaussian
        for each class.
        """
        from .laws import GaussianLogits

        step = self.solved_step(t)
        m, bias = float(self.m[step]), float(self.bias[step])
        negative, positive = np.sqrt(self.logit_variances[step]).tolist()
        rho = float(self.problem.test_mixture.rho)
        return GaussianLogits((bias - m, bias + m), (negative, positive), rho)

    def solved_step(self, t: Any) -> int:
        """Return the index of step t; raise if it has no solved state or its weights underflow."""
        index = super().solved_step(t)
        if self.fading is not None and self.fading.exponents[index] > 0:
            accepted = f"the weights of step {index} underflow, and so do their laws"
            raise InvalidInput("t", t, accepted)
        return index

    def at(self, steps: NDArray[np.int64], names: Sequence[str]) -> dict[str, Array]:
        """Return the quantities `names` at the given steps; the training loss is computed for these
        steps only.
        """
        found = super().at(steps, [name for name in names if name not in AVERAGED])
        if set(AVERAGED) & set(names):
            loss = np.full(self.steps + 1, np.nan)
            loss[steps] = self.train_loss_at(steps)
            found |= {"train_loss": loss[steps], "objective": self.objective_with(loss)[steps]}
        return {name: found[name] for name in names}

    def plot(
        self,
        *,
        panel: str | None = None,
        ax: Axes | None = None,
        limits: bool = True,
        figure: Figure | SubFigure | None = None,
    ) -> Figure:
        """Plot error (with the Bayes limits), cosine, norm and bias over t, or a single `panel` on
        `ax`.
        """
        from ..plots.trajectory import plot_trajectory

        return plot_trajectory(self, panel=panel, ax=ax, limits=limits, figure=figure)

    @staticmethod
    def load(path: str | Path) -> Any:
        """Read a file of `save`; return a `Trajectory`, or a `ClassTrajectory` for K > 2."""
        from .run_file import load

        return load(Trajectory.kinds(), path)

    @staticmethod
    def kinds() -> Kinds:
        """Return the result types that a file may contain."""
        from .causal.classes import ClassTrajectory
        from .run_file import Kinds

        return Kinds(Trajectory, ClassTrajectory)
