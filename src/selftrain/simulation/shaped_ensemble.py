r"""The result of `simulate` on clusters with a shape, or on real rows: an `Ensemble` with errors
per class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from .ensemble import NAMES, Ensemble
from .plan import RunPlan
from .seed_record import SeedRecord

if TYPE_CHECKING:
    import xarray as xr

GAUSSIAN, ROWS = "gaussian", "rows"

SIDES = ("negative", "positive")


@dataclass(frozen=True, repr=False)
class ShapedEnsemble(Ensemble):
    r"""Finite-size runs on clusters with a shape (`method` "gaussian") or on real rows ("rows").

    Attributes:
        m: $\mu\cdot\beta$ with the mean of the test clusters.
        v: $|\beta|^2$ off that mean.
        logit_variances: of the logits within each class, (seeds, steps + 1, 2), negative then
            positive: those of the law, or of the rows left over.
        class_errors: the same for the errors.
        auc: P(a positive row has the larger logit), in the law or on the rows left over.
    """

    logit_variances: Array = field(kw_only=True, repr=False)
    class_errors: Array = field(kw_only=True, repr=False)
    auc: Array = field(kw_only=True, repr=False)

    @classmethod
    def from_records(
        cls, plan: RunPlan, method: str, records: list[SeedRecord], seconds: float
    ) -> ShapedEnsemble:
        plain = Ensemble.from_records(plan, method, records, seconds)
        fields = {name: getattr(plain, name) for name in Ensemble.__dataclass_fields__}
        missing = np.full(len(plan.steps), np.nan)

        def pair(what: str) -> Array:
            sides = [f"{side}_{what}" for side in SIDES]
            return np.array(
                [[one.values.get(side, missing) for side in sides] for one in records]
            ).transpose(0, 2, 1)

        errors = pair("error")
        for row, one in enumerate(records):
            if one.collapsed_at >= 0:
                errors[row, one.collapsed_at :] = (
                    [1.0, 0.0] if one.collapsed_positive else [0.0, 1.0]
                )
        auc = np.array([one.values.get("auc", missing) for one in records])
        return cls(**fields, logit_variances=pair("variance"), class_errors=errors, auc=auc)

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities that `values`, `mean` and the tables know."""
        return (*NAMES, "balanced_error", "auc")

    def to_xarray(self) -> xr.Dataset:
        """All quantities over the dimensions seed and t, and what differs between the classes over
        side.
        """
        data = super().to_xarray()
        for name in ("logit_variances", "class_errors"):
            data[name] = (("seed", "t", "side"), getattr(self, name))
        return data.assign_coords(side=list(SIDES))

    @property
    def q(self) -> Array:
        r"""$|\beta|^2$."""
        q: Array = (self.m / self.problem.test_clusters.length) ** 2 + self.v
        return q

    @cached_property
    def error(self) -> Array:
        """The error at the class shares of the test mixture, on the law or on the rows left
        over.
        """
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
        """The cosine to the best direction in the metric of the average noise."""
        best = self.problem.test_clusters.separation
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine: Array = self.m / (best * np.sqrt(self.logit_variances.mean(axis=-1)))
        return cosine

    @property
    def one_minus_cosine(self) -> Array:
        """1 - cosine."""
        return 1.0 - self.cosine


def own_fields(data: xr.Dataset) -> dict[str, Array]:
    """What a stored ensemble of this kind has besides the fields of every ensemble."""
    names = ("logit_variances", "class_errors", "auc")
    return {name: data[name].values.astype(float) for name in names}
