r"""The result of `simulate`: the quantities of `Trajectory` with a leading seed axis.

It stores the measured numbers of every seed and step; norm, cosine and error follow from these by
the formulas of the theory. `compare` compares an ensemble with a `Trajectory`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import observables
from ..arrays import Array
from ..confusion import class_errors
from ..errors import InvalidInput, StageError, nearest
from ..observables import SYMBOLS, entries
from ..problem import Problem
from ..protocol import Protocol, protocol_of
from ..recipe import Recipe
from ..runtime.files import stored, write_netcdf
from .run_plan import RunPlan
from .seed_record import (
    BY_CLASS,
    MEASURED,
    Mask,
    SeedRecord,
    Vectors,
    seed_mean,
    seed_sem,
    seed_std,
    shape_of,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..theory.trajectory import Trajectory
    from .comparison import Comparison

__all__ = ["Ensemble", "Vectors"]


@dataclass(frozen=True)
class Ensemble:
    r"""Finite-size self-training runs; every quantity is an array (seeds, steps + 1).

    With K > 2 classes a model has K scores of sum zero. Then `m` is (seeds, steps + 1, K, K), score
    by true class; `bias` is (seeds, steps + 1, K), minus infinity for a class that has no labels
    left; q, v and overlap are sums over the scores; chi is the mean over K - 1 logits; there is no
    auc.

    Attributes:
        problem, recipe: the problem and the recipe that were run; None for a protocol.
        protocol: the groups of samples and the fits that were run.
        features: N.
        alpha: samples per feature of each step as drawn, M/N.
        seeds: the seeds, in the order of the leading axis.
        method: the engine that ran; "gaussian" for samples with a general covariance, "rows" for
            real samples.
        m, v, bias, chi, overlap: as in `Trajectory`, measured on the fitted weights.
        confusion: P(predicted class | true class), (seeds, steps + 1, K, K), a row for each true
            class, for the test mixture or the held-out samples.
        logit_variances: variances of the logits within each of two classes, or of the K scores.
        label_shares: class proportions among the pseudo-labels, where soft labels count in parts
            (among the given labels if there are no pseudo-labels).
        auc: area under the ROC curve.
        test_error: proportion of errors on a fresh test sample, of as many samples as the batch.
        fraction_selected, pseudo_label_accuracy, selected_label_accuracy, train_loss: measured on
            the batch, without labelled samples that keep their given labels.
        directions: number of directions that were revealed ("matrix-free"), or of matrix products.
        fit_error: estimated relative error of the fit; it exceeds the tolerance if rounding
            prevents more, and is 1 for weights that are zero because they are below their error.
        collapsed_at: for each seed the first step that is not fitted because all its labels are of
            one class, or because the weights of the labelling model are negligible beside its bias;
            -1 if there is none. From there on errors are those of predicting one class and all
            other quantities are NaN.
        predicts: the class that a collapsed seed predicts, -1 for others.
        failures: the error of each failed seed, by seed. From the failed step on its quantities are
            NaN.
        seconds: duration of the simulation.
        vectors: weights and logits of each seed, if they were requested.
    """

    problem: Problem
    recipe: Recipe
    protocol: Protocol = field(repr=False)
    features: int
    alpha: Array
    seeds: NDArray[np.int_]
    method: str
    m: Array
    v: Array
    bias: Array
    chi: Array
    overlap: Array
    auc: Array
    test_error: Array
    fraction_selected: Array
    pseudo_label_accuracy: Array
    selected_label_accuracy: Array
    train_loss: Array
    directions: Array
    fit_error: Array
    logit_variances: Array
    label_shares: Array
    confusion: Array
    collapsed_at: NDArray[np.int_]
    predicts: NDArray[np.int_]
    failures: dict[int, StageError] = field(default_factory=dict)
    seconds: float = float("nan")
    vectors: tuple[Vectors, ...] = field(default=(), repr=False)

    @classmethod
    def from_records(cls, plan: RunPlan, records: list[SeedRecord], **given: Any) -> Ensemble:
        """Stack the records of the seeds that ran a plan; `given` are the fields problem, recipe,
        method and seconds.
        """
        stacked: dict[str, Any] = {
            name: np.array([one.values[name] for one in records]) for name in (*MEASURED, *BY_CLASS)
        }
        kept = any(one.vectors.weights or one.vectors.logits for one in records)
        return cls(
            **given,
            protocol=plan.protocol,
            features=plan.features,
            alpha=plan.alphas,
            seeds=np.array([one.seed for one in records]),
            **stacked,
            collapsed_at=np.array([one.collapsed_at for one in records]),
            predicts=np.array([one.predicts for one in records]),
            failures={one.seed: one.failure for one in records if one.failure is not None},
            vectors=tuple(one.vectors for one in records) if kept else (),
        )

    def __repr__(self) -> str:
        collapsed = int((self.collapsed_at >= 0).sum())
        ended = f", {collapsed} collapsed" if collapsed else ""
        ended += f", {len(self.failures)} failed" if self.failures else ""
        error = self.mean("error")
        return (
            f"Ensemble(features={self.features}, seeds={len(self.seeds)}, steps="
            f"{self.protocol.steps}, error {error[0]:.6g} -> {error[-1]:.6g}{ended})"
        )

    @property
    def classes(self) -> int:
        """The number K of classes."""
        return self.protocol.classes

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities that `values`, `mean` and the tables have."""
        return NAMES if self.classes == 2 else CLASS_NAMES

    @property
    def t(self) -> NDArray[np.int_]:
        """Step indices 0..T."""
        return np.arange(self.protocol.steps + 1)

    @property
    def predicts_positive(self) -> Mask:
        """Mask of the collapsed seeds (two classes) that predict the positive class."""
        return np.asarray(self.predicts == 1)

    @property
    def lost_at(self) -> NDArray[np.int_]:
        """The first step without labels of a class, (seeds, K); -1 for classes that are never
        lost.
        """
        lost = (
            np.isneginf(self.bias) if self.classes > 2 else np.zeros(self.label_shares.shape, bool)
        )
        # of a collapsed fit, all predictions are of the one class of its labels
        collapsed = np.isnan(self.v) & np.isfinite(self.error)
        lost |= collapsed[..., None] & (self.confusion == 0).all(axis=2)
        return np.where(lost.any(axis=1), lost.argmax(axis=1), -1)

    @property
    def q(self) -> Array:
        r"""Squared norm of the weights, $\|w\|^2/N$, summed over the scores of K classes."""
        law = self.protocol.test.law
        if self.classes == 2:
            return np.asarray((self.m / law.length) ** 2 + self.v)
        inverse = np.linalg.pinv(law.means @ law.means.T)
        along = np.einsum("...ck,kl,...cl->...", self.m, inverse, self.m)
        return np.asarray(along + self.v)

    @property
    def error(self) -> Array:
        r"""Generalisation error $\epsilon_g$, at the class proportions of the test mixture."""
        wrong, shares = self.class_errors, self.protocol.test.proportions
        return np.asarray(sum(p * wrong[..., k] for k, p in enumerate(shares)))

    @property
    def class_errors(self) -> Array:
        """The error within each class, (seeds, steps + 1, K); for two classes the order is
        (negative, positive).
        """
        return class_errors(self.confusion)

    @property
    def balanced_error(self) -> Array:
        """The mean of the class errors."""
        balanced: Array = self.class_errors.mean(axis=-1)
        return balanced

    @property
    def cosine(self) -> Array:
        r"""The cosine $m/\sqrt q$; with a general covariance that with the best direction
        $\bar\Sigma^{-1}\mu$, in the metric of the average covariance $\bar\Sigma$.
        """
        law = self.protocol.test.law
        with np.errstate(divide="ignore", invalid="ignore"):
            if law.is_sphere:
                return np.asarray(self.m / law.length / np.sqrt(self.q))
            spread = np.sqrt(self.logit_variances.mean(axis=-1))
            return np.asarray(self.m / (law.separation * spread))

    @property
    def one_minus_cosine(self) -> Array:
        """1 - cosine; for spheres computed without cancellation."""
        law = self.protocol.test.law
        if law.is_sphere:
            return observables.one_minus_cosine(self.m / law.length, self.v)
        return 1.0 - self.cosine

    @property
    def bias_to_norm(self) -> Array:
        r"""The ratio $B/\sqrt q$."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.bias / np.sqrt(self.q)

    @property
    def objective(self) -> Array:
        r"""Minimum of the objective per feature, without labelled samples that keep their given
        labels.
        """
        ridge = np.array([fit.ridge for fit in self.protocol.fits])
        share = np.where(self.t == 0, 1.0, self.fraction_selected)
        batch = np.where(share == 0, 0.0, self.alpha * share * self.train_loss)
        return np.asarray(batch + 0.5 * ridge * self.q)

    def values(self, name: str) -> Array:
        """Return a quantity by its name, (seeds, steps + 1); with K classes it may have more
        axes.
        """
        if name not in (*self.names, *BY_CLASS, "class_errors"):
            raise InvalidInput("name", name, f"unknown quantity; {nearest(name, self.names)}")
        return np.asarray(getattr(self, name))

    def count(self, name: str = "v") -> NDArray[np.int_]:
        """Return the number of seeds that have a value at each step. Failed seeds have none,
        collapsed ones only errors.
        """
        return np.asarray(np.isfinite(self.values(name)).sum(axis=0))

    def mean(self, name: str) -> Array:
        """Return the mean over the seeds that have a value, at each step."""
        return seed_mean(self.values(name))

    def std(self, name: str) -> Array:
        """Return the standard deviation over seeds, with n - 1 in the denominator."""
        return seed_std(self.values(name))

    def sem(self, name: str) -> Array:
        """Return the standard error of the mean."""
        return seed_sem(self.values(name))

    def compare(self, trajectory: Trajectory, within: float = 0.1) -> Comparison:
        """Compare these runs with the theory; they agree if relative deviations are below `within`.
        See `selftrain.simulation.comparison`.
        """
        from .comparison import compare

        return compare(self, trajectory, within)

    def components(self, name: str) -> dict[str, Array]:
        """Return the entries of a quantity as arrays (seeds, steps + 1), by names like
        `bias[0]`.
        """
        return entries(name, self.values(name), 2)

    def to_frame(self) -> pd.DataFrame:
        """Return all quantities, one row per seed and step, indexed by seed and t."""
        import pandas as pd

        index = pd.MultiIndex.from_product([self.seeds, self.t], names=["seed", "t"])
        columns = {
            key: one.ravel() for name in self.names for key, one in self.components(name).items()
        }
        return pd.DataFrame(columns, index=index)

    def to_xarray(self) -> xr.Dataset:
        """Return all quantities over the dimensions seed, t and class, with symbols, problem and
        recipe.
        """
        import xarray as xr

        axes = ("seed", "t", "class", "true")
        values = {name: self.values(name) for name in (*self.names, *BY_CLASS, "class_errors")}
        data: dict[str, Any] = {
            name: (axes[: one.ndim], one, {"symbol": SYMBOLS.get(name, name)})
            for name, one in values.items()
        }
        data["confusion"] = (("seed", "t", "true", "class"), self.confusion)
        names = ["negative", "positive"] if self.classes == 2 else np.arange(self.classes)
        coordinates = {"seed": self.seeds, "t": self.t, "class": names, "true": names}
        run = {name: getattr(self, name) for name in ("features", "method", "seconds")}
        given = {"problem": self.problem, "recipe": self.recipe}
        failures = [{"seed": seed, **error.to_dict()} for seed, error in self.failures.items()]
        attributes = {
            "kind": "selftrain.Ensemble",
            "version": version("selftrain"),
            **{name: one.to_json() for name, one in given.items() if one is not None},
            "run": json.dumps(run),
            "failures": json.dumps(failures),
        }
        dataset = xr.Dataset(data, coords=coordinates, attrs=attributes)
        dataset["alpha"] = ("t", self.alpha)
        dataset["collapsed_at"] = ("seed", self.collapsed_at)
        dataset["predicts"] = ("seed", self.predicts)
        return dataset

    def plot(
        self,
        trajectory: Trajectory | None = None,
        *,
        panel: str | None = None,
        ax: Axes | None = None,
        spread: Literal["std", "sem"] = "std",
        limits: bool = True,
    ) -> Figure:
        """Plot the runs with error bars, and the theory as lines; or a single `panel` on `ax`."""
        from ..plots.ensemble import plot_ensemble

        return plot_ensemble(self, trajectory, panel=panel, ax=ax, spread=spread, limits=limits)

    def _repr_html_(self) -> str:
        from ..plots.notebook import ensemble_card

        return ensemble_card(self)

    def save(self, path: str | Path) -> Path:
        """Write all quantities (not the vectors) to a netCDF file for `Ensemble.load`."""
        if self.problem is None:
            accepted = "runs of a protocol cannot be saved: use to_xarray or to_frame"
            raise InvalidInput("path", str(path), accepted)
        data = self.to_xarray()
        data["seed"] = data["seed"].astype(str)  # the file format has no 64-bit integers
        for name in ("collapsed_at", "predicts"):
            data[name] = data[name].astype("i4")
        return write_netcdf(data, path)

    @classmethod
    def load(cls, path: str | Path) -> Ensemble:
        """Read a file that `save` wrote."""
        with stored(path, "Ensemble") as data:
            run = json.loads(data.attrs["run"])
            problem = Problem.from_json(data.attrs["problem"])
            recipe = Recipe.from_json(data.attrs["recipe"])
            count = (data["seed"].size, problem.steps + 1)
            measured: dict[str, Any] = {}
            for name in (*MEASURED, *BY_CLASS):
                shape = (*count, *shape_of(name, problem.classes))
                found = data[name].values.astype(float) if name in data else np.full(shape, np.nan)
                if found.shape != shape:
                    raise ValueError("its arrays do not fit its problem")
                measured[name] = found
            failures = {
                failure["seed"]: StageError.from_dict(failure)
                for failure in json.loads(data.attrs["failures"])
            }
            return cls(
                problem,
                recipe,
                protocol_of(problem, recipe),
                alpha=data["alpha"].values.astype(float),
                seeds=np.array([int(seed) for seed in data["seed"].values]),
                collapsed_at=data["collapsed_at"].values.astype(int),
                predicts=data["predicts"].values.astype(int),
                failures=failures,
                **measured,
                **run,
            )


NAMES = (
    "q", "error", "balanced_error", "cosine", "one_minus_cosine", "bias_to_norm", "objective",
    *MEASURED,
)  # fmt: skip
"""Names of the quantities for two classes."""

CLASS_NAMES = (
    "q", "error", "balanced_error", "objective", *(name for name in MEASURED if name != "auc"),
)  # fmt: skip
"""Names of the quantities for more than two classes."""
