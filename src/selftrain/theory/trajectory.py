r"""The result of `solve`: order parameters over the steps, what follows from them, how they were
found.

A `Trajectory` stores $m, v = q - m^2, B, \chi, R$ and the conjugates $\hat Q, \hat\chi, \hat m,
\hat R$ of Definition `def: self-consistent equations`; everything else (errors, laws, frames,
plots) is derived from these on demand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import observables
from ..arrays import Array
from ..errors import InvalidInput, StageError
from ..observables import SYMBOLS
from ..problem import Problem
from ..recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from .fading import Fading
    from .laws import GaussianLogits, LogitLaw, WeightLaw
    from .laws.logits import StepFields
    from .memory.result import Memory
    from .memory.row_law import RowLaw

__all__ = ["SolverStats", "Trajectory"]


@dataclass(frozen=True, eq=False)
class SolverStats:
    """How each step was obtained; arrays over t = 0..T.

    Attributes:
        tolerance: relative accuracy that was asked for.
        evaluations: evaluations of the stage equations (with Jacobian), confirmations included.
        nodes: quadrature nodes of the last evaluation (0: closed form).
        accuracy: to how much of its state each step, by itself, was confirmed: the relative size of
            the last Newton step. What later steps make of these errors is in `Trajectory.accuracy`.
        start: where the accepted iteration began ("predicted", "no update", ...).
    """

    tolerance: float
    evaluations: Array
    nodes: Array
    accuracy: Array
    start: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Totals, as plain values."""
        solved = self.evaluations > 0
        confirmed = self.accuracy[np.isfinite(self.accuracy)]
        starts = [name for name, used in zip(self.start, solved, strict=True) if used]
        return {
            "tolerance": self.tolerance,
            "evaluations": int(self.evaluations.sum()),
            "evaluations_per_step": float(self.evaluations[solved].mean()) if solved.any() else 0.0,
            "nodes_max": int(self.nodes.max(initial=0)),
            "step_accuracy": float(confirmed.max()) if confirmed.size else None,
            "confirmed_steps": int(confirmed.size),
            "starts": {name: starts.count(name) for name in sorted(set(starts))},
        }


@dataclass(frozen=True, eq=False)
class Trajectory:
    r"""Large-system limit of a self-training run; every array runs over t = 0..T.

    Attributes:
        m: overlap with the cluster direction, $v \cdot w / N$ (`eq: meaning of m`, `eq:macro
            quantities`).
        v: squared norm of the weights off that direction, $q - m^2$.
        bias: $B$ (`eq: meaning of B`).
        chi: linear susceptibility $\chi$ (`eq: meaning of chi`; minus the response to $+\epsilon
            w$).
        overlap: $R$, overlap with the weights of the previous step (`eq: meaning of R`; NaN at t =
            0).
        q_hat, chi_hat, m_hat, r_hat: the conjugates: confidence, noise, signal and propagation of
            the effective process of a weight (`eq: effective w intuitive`; r_hat is NaN at t = 0).
        collapsed_at: first step whose pseudo-labels are all of one class, or None. From there on
            `error` is that of predicting one class and every other quantity is NaN.
        failure: why the run ended early (only with `on_failure="partial"`), or None. From
            that step on everything is NaN.
        stats: how it was obtained.
        memory: what rows that are used again add (`theory.memory`), None if there are none.
        fading: the state of steps whose weights underflow (`theory.fading`), None if none do.
            Error, cosine and whatever does not depend on the scale of the weights is exact there;
            m, v, ... are as floating-point numbers have them, and `log_q` is always a number.
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
    memory: Memory | None = field(default=None, repr=False)
    fading: Fading | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        last = self.good_steps - 1
        ended = "" if self.collapsed_at is None else f", collapsed at step {self.collapsed_at}"
        if self.failure is not None:
            ended = f", failed at step {self.failure.step}"
        return (
            f"Trajectory(steps={self.problem.steps}, error {self.error[0]:.6g} -> "
            f"{self.error[-1]:.6g}, cosine {self.cosine[0]:.6g} -> {self.cosine[last]:.6g}{ended})"
        )

    @property
    def t(self) -> NDArray[np.int64]:
        """Step indices 0..T."""
        return np.arange(self.problem.steps + 1, dtype=np.int64)

    @property
    def good_steps(self) -> int:
        """How many steps, counted from 0, have a solved state."""
        return int(np.isfinite(self.m).sum())

    @property
    def q(self) -> Array:
        """Squared norm of the weights, $q$ (`eq: meaning of q`)."""
        return self.m**2 + self.v

    @property
    def log_q(self) -> Array:
        """Natural logarithm of q, also where q underflows."""
        with np.errstate(divide="ignore"):
            log_q: Array = np.log(self._scaled_q)
        return log_q if self.fading is None else log_q - 2 * np.log(2.0) * self.fading.exponents

    def scaled(self, name: str) -> Array:
        """A quantity in units in which it does not underflow; those of each step, where weights
        fade.
        """
        if self.fading is not None and name in self.fading.scaled:
            return self.fading.scaled[name]
        return np.asarray(getattr(self, name))

    @property
    def _scaled_q(self) -> Array:
        q: Array = self.scaled("m") ** 2 + self.scaled("v")
        return q

    @cached_property
    def error(self) -> Array:
        r"""$\epsilon_g$ on the test mixture (`pred: generalization error`, `eq: rs generalization
        error`).
        """
        test = self.problem.test_mixture
        rho, delta = np.asarray(test.rho), np.asarray(test.delta)
        error = observables.generalization_error(
            self.scaled("m"), self._scaled_q, self.scaled("bias"), rho, delta
        )
        if self.collapsed_at is not None:
            error[self.collapsed_at :] = 1 - test.rho if self.predicts_positive else test.rho
        return error

    @property
    def cosine(self) -> Array:
        r"""$m/\sqrt q$ (`eq: cosine similarity`)."""
        m = self.scaled("m")
        return m / np.hypot(m, np.sqrt(self.scaled("v")))

    @property
    def one_minus_cosine(self) -> Array:
        """1 - cosine, without cancellation."""
        return observables.one_minus_cosine(self.scaled("m"), self.scaled("v"))

    @property
    def bias_to_norm(self) -> Array:
        r"""$B/\sqrt q$, what imbalance inflates."""
        return self.scaled("bias") / np.sqrt(self._scaled_q)

    @property
    def fraction_selected(self) -> Array:
        """Share of the batch that the threshold keeps (NaN at t = 0)."""
        if self.memory is not None:
            return np.array(self.memory.measured[0])
        return self._of_labels(observables.fraction_selected, self._thresholds)

    @property
    def pseudo_label_accuracy(self) -> Array:
        """Agreement of all pseudo-labels of step t with the truth (NaN at t = 0)."""
        if self.memory is not None:
            return np.array(self.memory.measured[1])
        return self._of_labels(observables.selected_accuracy, np.zeros(self.problem.steps))

    @property
    def selected_label_accuracy(self) -> Array:
        """Agreement of the selected pseudo-labels of step t with the truth (NaN at t = 0)."""
        if self.memory is not None:
            return np.array(self.memory.measured[2])
        return self._of_labels(observables.selected_accuracy, self._thresholds)

    @cached_property
    def accuracy(self) -> Array:
        """Relative accuracy of the state after each step, errors of earlier steps carried
        forward.
        """
        from .accuracy import carried

        return carried(self)

    def summary(self) -> dict[str, Any]:
        """How the run was obtained, as plain values: `stats.summary()` and the worst `accuracy`."""
        known = self.accuracy[~np.isnan(self.accuracy)]
        worst = float(known.max()) if known.size and np.isfinite(known).all() else None
        return {"accuracy": worst, **self.stats.summary()}

    @cached_property
    def train_loss(self) -> Array:
        """Mean loss of a training point that was selected, at the minimum; of the unlabelled rows
        from step 1 on.
        """
        if self.memory is not None:
            return np.array(self.memory.measured[3])
        from .diagnostics import train_loss

        return train_loss(self, self.t)

    @property
    def objective(self) -> Array:
        r"""Minimum of the objective per feature, $\alpha E[1_{sel}\, l] + \lambda q/2$, kept
        labelled rows included.
        """
        return self.objective_with(self.train_loss)

    def objective_with(self, train_loss: Array) -> Array:
        """The objective at the steps whose training loss is given; NaN at the others."""
        alpha = np.append(self.problem.alpha_l, self.problem.unlabeled.alpha)
        ridge = np.append(self.recipe.lambda_l, self.recipe.at_steps(self.problem.steps).lambda_u)
        share = np.append(1.0, self.fraction_selected[1:])
        objective: Array = alpha * share * train_loss + 0.5 * ridge * self.q
        if self.memory is not None:
            kept = np.asarray(self.problem.row_groups[0].weights)
            loss = np.where(kept > 0, np.append(0.0, self.memory.measured[4, 1:]), 0.0)
            objective = objective + self.problem.alpha_l * kept * loss
        return objective

    @property
    def overlaps(self) -> Array:
        r"""$C_{ts} = w^{(t)} \cdot w^{(s)}/N$ of all pairs of steps, shape (T+1, T+1)."""
        overlaps: Array = np.outer(self.m, self.m) + self.weights.covariance
        return overlaps

    @property
    def response(self) -> Array:
        r"""$\chi_{ts}$, how the weights of step t answer a field on the weights at step s; lower
        triangular, $\chi_{tt} = \chi$.

        Without memory $\chi^{-1}$ has the diagonal $\hat Q + \lambda$ and $-\hat R$ below it, so
        only chains of steps answer.
        """
        if self.memory is not None:
            return self.memory.response
        response = np.diag(self.chi)
        for t in range(1, self.problem.steps + 1):
            response[t, :t] = self.chi[t] * self.r_hat[t] * response[t - 1, :t]
        return response

    @property
    def weights(self) -> WeightLaw:
        """The law of the weights (Predictions `pred: rs generating functional w`, `pred: w
        effective average`).
        """
        from .laws import WeightLaw

        if self.memory is not None:
            from .memory.laws import JointWeightLaw

            return JointWeightLaw(self)
        return WeightLaw(self)

    def training_logits(self, t: int = -1, samples: str | None = None) -> LogitLaw | RowLaw:
        """The law of the training logits of step t (Prediction `pred: u effective average`).

        Arguments:
            t: the step; a negative one counts from the end.
            samples: None: the samples that step t is fitted to, without labelled ones from step 1
                on; "labeled": the labelled samples, in a step that reuses them.
        """
        if self.memory is not None:
            from .memory.laws import RowLogitLaw

            return RowLogitLaw(self, t, samples)
        if samples is not None:
            accepted = 'None is accepted; "labeled" where labelled samples are reused'
            raise InvalidInput("samples", samples, accepted)
        from .laws import LogitLaw
        from .laws.weights import solved_step

        step = solved_step(self, t)
        loss, labeler = self.problem.loss_at(step), self.recipe.label_function
        return LogitLaw(step, self._step_fields(step), loss, labeler)

    def test_logits(self, t: int = -1) -> GaussianLogits:
        """The law of the logits of fresh samples of the test mixture at step t: a Gaussian for each
        class.
        """
        from .laws import GaussianLogits
        from .laws.weights import solved_step

        step = solved_step(self, t)
        m, bias = float(self.m[step]), float(self.bias[step])
        rho = float(self.problem.test_mixture.rho)
        return GaussianLogits((bias - m, bias + m), self._test_spreads(step), rho)

    def _step_fields(self, t: int) -> StepFields:
        """The Gaussian fields of the training points of a solved step."""
        from .laws.logits import fields_of

        return fields_of(self, t)

    def _test_spreads(self, t: int) -> tuple[float, float]:
        """Standard deviations of the test logits in the negative and the positive class."""
        spread = float(np.sqrt(self.problem.test_mixture.delta * self.q[t]))
        return spread, spread

    def to_frame(self) -> pd.DataFrame:
        """All quantities, one row per step, indexed by t."""
        import pandas as pd

        return pd.DataFrame(self._columns(), index=pd.Index(self.t, name="t"))

    def to_xarray(self) -> xr.Dataset:
        """All quantities over the dimension t, with symbols, problem and recipe as attributes."""
        import xarray as xr

        data = {
            name: ("t", values, {"symbol": SYMBOLS[name]})
            for name, values in self._columns().items()
        }
        return xr.Dataset(data, coords={"t": self.t}, attrs=self._attributes())

    def plot(
        self,
        *,
        panel: str | None = None,
        ax: Axes | None = None,
        limits: bool = True,
        figure: Figure | SubFigure | None = None,
    ) -> Figure:
        """Error with the Bayes limits, cosine, norm and bias against t; one `panel` of them on
        `ax`.
        """
        from ..plots.trajectory import plot_trajectory

        return plot_trajectory(self, panel=panel, ax=ax, limits=limits, figure=figure)

    def _repr_html_(self) -> str:
        from ..plots.notebook import trajectory_card

        return trajectory_card(self)

    def save(self, path: str | Path) -> Path:
        """Write everything to a netCDF file; `Trajectory.load` gives it back."""
        from .stored import save

        return save(self, path)

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """Read what `save` wrote."""
        from .stored import load

        return load(path)

    def parts(self) -> list[xr.Dataset]:
        """What a file of this run has beyond its quantities over t."""
        return [part.to_dataset() for part in (self.memory, self.fading) if part is not None]

    @classmethod
    def from_parts(cls, data: xr.Dataset, problem: Problem) -> dict[str, Any]:
        """The fields that `parts` stored."""
        from .fading import Fading
        from .memory.result import Memory

        memory = Memory.from_dataset(data) if "memory_loadings" in data else None
        return {"memory": memory, "fading": Fading.from_dataset(data)}

    @property
    def predicts_positive(self) -> bool | None:
        """Whether the labels that ended a collapsed run are positive; None if the run did not
        collapse.

        It is the sign of the bias unless domains jump.
        """
        if self.collapsed_at is None:
            return None
        last = self.collapsed_at - 1
        batches = self.problem.unlabeled
        return observables.selects_positive(
            float(self.scaled("m")[last]),
            float(self._scaled_q[last]),
            float(self.scaled("bias")[last]),
            float(batches.rho[last]),
            float(batches.delta[last]),
            float(self._thresholds[last]),
        )

    @property
    def _thresholds(self) -> Array:
        return self.recipe.at_steps(self.problem.steps).threshold

    def _of_labels(self, measure: Any, threshold: Array) -> Array:
        """An observable of the labelling model t-1 on the batch of step t."""
        batches = self.problem.unlabeled
        if self.problem.steps == 0:
            return np.full(1, np.nan)
        m, q, bias = self.scaled("m"), self._scaled_q, self.scaled("bias")
        values = measure(m[:-1], q[:-1], bias[:-1], batches.rho, batches.delta, threshold)
        values[np.isnan(self.m[1:])] = np.nan
        return np.append(np.nan, values)

    def _columns(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in SYMBOLS}

    def _attributes(self) -> dict[str, Any]:
        failure = None if self.failure is None else self.failure.to_dict()
        return {
            "kind": "selftrain.Trajectory",
            "version": version("selftrain"),
            "problem": self.problem.to_json(),
            "recipe": self.recipe.to_json(),
            "collapsed_at": -1 if self.collapsed_at is None else self.collapsed_at,
            "failure": json.dumps(failure),
        }


STATE = ("m", "v", "bias", "chi", "overlap", "q_hat", "chi_hat", "m_hat", "r_hat")
"""The order parameters that are solved for; the names of the stored arrays."""
