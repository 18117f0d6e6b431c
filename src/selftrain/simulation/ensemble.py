r"""The result of `simulate`: the quantities of `Trajectory` with a leading seed axis.

Stored are the measured numbers of every seed and step; norm, cosine and error follow from these by
the formulas of the theory. `compare` puts an ensemble next to a `Trajectory`.
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
from ..errors import InvalidInput, StageError, nearest
from ..mixture.clusters import Clusters
from ..observables import SYMBOLS
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.files import stored, write_netcdf
from .plan import RunPlan
from .seed_record import BY_CLASS, MEASURED, Mask, SeedRecord

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..theory.trajectory import Trajectory
    from .comparison import Comparison

__all__ = ["Ensemble", "Vectors"]


@dataclass(frozen=True)
class Vectors:
    """The vectors of one seed: a list over its fitted steps.

    Attributes:
        weights: w, N entries each.
        logits: logits of the batch after the fit; `selected`: which points the fit used;
            `classes`: which are of the positive class.
    """

    weights: tuple[Array, ...]
    logits: tuple[Array, ...]
    selected: tuple[Mask, ...]
    classes: tuple[Mask, ...]


@dataclass(frozen=True)
class Ensemble:
    r"""Finite-size self-training runs; every quantity is an array (seeds, steps + 1).

    Attributes:
        features: N; `alpha`: samples per feature of each step as drawn, M/N.
        seeds: the seeds, in the order of the leading axis.
        method: the engine that ran; "gaussian" for samples of a general covariance, "rows" for real
            samples.
        m, v, bias, chi, overlap: as in `Trajectory`, measured on the fitted weights.
        logit_variances: of the logits within each class, (seeds, steps + 1, 2), negative then
            positive: those of the test mixture, or of the held-out samples.
        class_errors: the same for the errors.
        auc: P(a positive sample has the larger logit), for the test mixture or the held-out
            samples.
        test_error: share of errors on a fresh test sample of as many points as the batch.
        fraction_selected, pseudo_label_accuracy, selected_label_accuracy, train_loss: measured on
            the batch, without labelled samples that keep their labels.
        directions: directions of the data that were used ("matrix-free"), or products.
        fit_error: estimated relative error of the fit, larger than the tolerance asked for where
            rounding leaves no more; 1 where the weights are smaller than their error, and zero.
        collapsed_at: for each seed the first step that is not fitted because all its labels
            are of one class, or nothing but the bias is left of the model that gives them; -1 if
            none. From there on errors are those of predicting one class and every other quantity
            is NaN.
        predicts_positive: the class a collapsed seed predicts.
        failures: why and where a seed failed, by seed. From that step on all its quantities are
            NaN.
        vectors: weights and logits of each seed, if they were asked for.
    """

    problem: Problem
    recipe: Recipe
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
    class_errors: Array
    collapsed_at: NDArray[np.int_]
    predicts_positive: Mask
    failures: dict[int, StageError] = field(default_factory=dict)
    seconds: float = float("nan")
    vectors: tuple[Vectors, ...] = field(default=(), repr=False)

    @classmethod
    def from_records(
        cls, plan: RunPlan, method: str, records: list[SeedRecord], seconds: float
    ) -> Ensemble:
        """Stack the records of the seeds."""
        stacked: dict[str, Any] = {
            name: np.array([one.values[name] for one in records]) for name in (*MEASURED, *BY_CLASS)
        }
        kept = any(one.weights or one.logits for one in records)
        return cls(
            plan.problem,
            plan.recipe,
            plan.features,
            plan.alphas,
            np.array([one.seed for one in records]),
            method,
            **stacked,
            collapsed_at=np.array([one.collapsed_at for one in records]),
            predicts_positive=np.array([one.collapsed_positive for one in records]),
            failures={one.seed: one.failure for one in records if one.failure is not None},
            seconds=seconds,
            vectors=tuple(_vectors(one) for one in records) if kept else (),
        )

    def __repr__(self) -> str:
        collapsed = int((self.collapsed_at >= 0).sum())
        ended = f", {collapsed} collapsed" if collapsed else ""
        ended += f", {len(self.failures)} failed" if self.failures else ""
        error = self.mean("error")
        return (
            f"Ensemble(features={self.features}, seeds={len(self.seeds)}, steps="
            f"{self.problem.steps}, error {error[0]:.6g} -> {error[-1]:.6g}{ended})"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities that `values`, `mean` and the tables know."""
        return NAMES

    @property
    def t(self) -> NDArray[np.int_]:
        """Step indices 0..T."""
        return np.arange(self.problem.steps + 1)

    @property
    def q(self) -> Array:
        r"""$\|w\|^2/N$."""
        q: Array = (self.m / self.problem.test_clusters.length) ** 2 + self.v
        return q

    @property
    def error(self) -> Array:
        r"""$\epsilon_g$ at the class proportions of the test mixture."""
        rho = self.problem.test_mixture.rho
        error: Array = (1 - rho) * self.class_errors[..., 0] + rho * self.class_errors[..., 1]
        return error

    @property
    def balanced_error(self) -> Array:
        """The mean of the two class errors."""
        balanced: Array = self.class_errors.mean(axis=-1)
        return balanced

    @property
    def cosine(self) -> Array:
        r"""$m/\sqrt q$; with a general covariance the cosine to the best direction in the metric of
        the average noise.
        """
        law = self.problem.test_clusters
        with np.errstate(divide="ignore", invalid="ignore"):
            if _is_sphere(law):
                return np.asarray(self.m / law.length / np.sqrt(self.q))
            spread = np.sqrt(self.logit_variances.mean(axis=-1))
            return np.asarray(self.m / (law.separation * spread))

    @property
    def one_minus_cosine(self) -> Array:
        """1 - cosine, without cancellation for spheres."""
        law = self.problem.test_clusters
        if _is_sphere(law):
            return observables.one_minus_cosine(self.m / law.length, self.v)
        return 1.0 - self.cosine

    @property
    def bias_to_norm(self) -> Array:
        r"""$B/\sqrt q$."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.bias / np.sqrt(self.q)

    @property
    def objective(self) -> Array:
        r"""Minimum of the objective per feature, without labelled samples that keep their
        labels.
        """
        ridge = np.append(self.recipe.lambda_l, self.recipe.at_steps(self.problem.steps).lambda_u)
        share = np.where(self.t == 0, 1.0, self.fraction_selected)
        batch = np.where(share == 0, 0.0, self.alpha * share * self.train_loss)
        return np.asarray(batch + 0.5 * ridge * self.q)

    def values(self, name: str) -> Array:
        """A quantity by its name, (seeds, steps + 1)."""
        if name not in self.names:
            raise InvalidInput("name", name, f"unknown quantity; {nearest(name, self.names)}")
        return np.asarray(getattr(self, name))

    def count(self, name: str = "m") -> NDArray[np.int_]:
        """How many seeds have a value at each step: failed ones have not, collapsed ones only of
        `error`.
        """
        return np.asarray(np.isfinite(self.values(name)).sum(axis=0))

    def mean(self, name: str) -> Array:
        """Mean over the seeds that have a value, at each step."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.nansum(self.values(name), axis=0) / self._some(name))

    def std(self, name: str) -> Array:
        """Standard deviation over seeds, with n - 1 in the denominator."""
        spread = self.values(name) - self.mean(name)
        count = self._some(name)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(np.nansum(spread**2, axis=0) / (count - 1)))

    def sem(self, name: str) -> Array:
        """Standard error of the mean."""
        return np.asarray(self.std(name) / np.sqrt(self._some(name)))

    def compare(self, trajectory: Trajectory, within: float = 0.1) -> Comparison:
        """How far the theory is from these runs, and whether they agree within 10 %; see
        `selftrain.simulation.comparison`.
        """
        from .comparison import compare

        return compare(self, trajectory, within)

    def to_frame(self) -> pd.DataFrame:
        """All quantities, one row per seed and step, indexed by seed and t."""
        import pandas as pd

        index = pd.MultiIndex.from_product([self.seeds, self.t], names=["seed", "t"])
        return pd.DataFrame({name: self.values(name).ravel() for name in self.names}, index=index)

    def to_xarray(self) -> xr.Dataset:
        """All quantities over the dimensions seed and t, with symbols, problem and recipe."""
        import xarray as xr

        data = {
            name: (("seed", "t"), self.values(name), {"symbol": SYMBOLS.get(name, name)})
            for name in self.names
        }
        dataset = xr.Dataset(
            data, coords={"seed": self.seeds, "t": self.t}, attrs=self._attributes()
        )
        for name in BY_CLASS:
            dataset[name] = (("seed", "t", "side"), getattr(self, name))
        dataset = dataset.assign_coords(side=["negative", "positive"])
        dataset["alpha"] = ("t", self.alpha)
        dataset["collapsed_at"] = ("seed", self.collapsed_at)
        dataset["predicts_positive"] = ("seed", self.predicts_positive.astype("i4"))
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
        """Runs with error bars, the theory as lines; one `panel` of them on `ax`."""
        from ..plots.ensemble import plot_ensemble

        return plot_ensemble(self, trajectory, panel=panel, ax=ax, spread=spread, limits=limits)

    def _repr_html_(self) -> str:
        from ..plots.notebook import ensemble_card

        return ensemble_card(self)

    def save(self, path: str | Path) -> Path:
        """Write all quantities (not the vectors) to a netCDF file; `Ensemble.load` gives them
        back.
        """
        data = self.to_xarray()
        data["seed"] = data["seed"].astype(str)  # the file knows no integers of 64 bits
        data["collapsed_at"] = data["collapsed_at"].astype("i4")
        return write_netcdf(data, path)

    @classmethod
    def load(cls, path: str | Path) -> Ensemble:
        """Read what `save` wrote."""
        with stored(path, "Ensemble") as data:
            run = json.loads(data.attrs["run"])
            measured: dict[str, Any] = {
                name: data[name].values.astype(float) for name in (*MEASURED, *BY_CLASS)
            }
            problem = Problem.from_json(data.attrs["problem"])
            recipe = Recipe.from_json(data.attrs["recipe"])
            if measured["m"].shape != (data["seed"].size, problem.steps + 1):
                raise ValueError("its arrays do not fit its problem")
            failures = {
                failure["seed"]: StageError.from_dict(failure)
                for failure in json.loads(data.attrs["failures"])
            }
            return cls(
                problem,
                recipe,
                run["features"],
                data["alpha"].values.astype(float),
                np.array([int(seed) for seed in data["seed"].values]),
                run["method"],
                **measured,
                collapsed_at=data["collapsed_at"].values.astype(int),
                predicts_positive=data["predicts_positive"].values.astype(bool),
                failures=failures,
                seconds=run["seconds"],
            )

    def _some(self, name: str) -> Array:
        """The count as floats, NaN where it is zero."""
        count = self.count(name).astype(float)
        count[count == 0] = np.nan
        return count

    def _attributes(self) -> dict[str, Any]:
        run = {
            "features": self.features,
            "method": self.method,
            "seconds": self.seconds,
        }
        return {
            "kind": "selftrain.Ensemble",
            "version": version("selftrain"),
            "problem": self.problem.to_json(),
            "recipe": self.recipe.to_json(),
            "run": json.dumps(run),
            "failures": json.dumps(
                [{"seed": seed, **error.to_dict()} for seed, error in self.failures.items()]
            ),
        }


def _is_sphere(law: Clusters) -> bool:
    """Return whether the noise has one variance in all directions."""
    return not law.pair and law.covariance.ndim == 0


def _vectors(record: SeedRecord) -> Vectors:
    return Vectors(
        tuple(record.weights),
        tuple(record.logits),
        tuple(record.selected),
        tuple(record.classes),
    )


DERIVED = (
    "q", "error", "balanced_error", "cosine", "one_minus_cosine", "bias_to_norm", "objective",
)  # fmt: skip
NAMES = (*DERIVED, *MEASURED)
