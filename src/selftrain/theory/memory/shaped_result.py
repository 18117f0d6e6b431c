"""What a run on general covariances with reused samples has beyond one without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...arrays import Array
from ..laws.weights import DirectedWeights, weights_of

if TYPE_CHECKING:
    import xarray as xr

    from ..trajectory import Trajectory

_STORED = {
    "measured": ("measure", "t"),
    "pairs": ("t", "step"),
    "response": ("t", "step"),
    "logit_overlaps": ("t", "class", "step"),
    "kicks": ("t", "class", "step"),
}
"""What a file has, with its dimensions."""


@dataclass(frozen=True, eq=False, repr=False)
class ShapedMemory:
    r"""The part of a `Trajectory` that reused samples add.

    Attributes:
        measured: of the samples in use, over t.
        pairs: $\beta_t\cdot\beta_s$ of all pairs of steps.
        response: $\mathrm{tr}\,\chi_{ts}/N$.
        logit_overlaps: $\beta_t^T\Sigma_c\beta_s$ of both classes.
        kicks: $\mathrm{tr}(\Sigma_c\chi_{ts})/N$.
    """

    measured: Array
    pairs: Array
    response: Array
    logit_overlaps: Array
    kicks: Array

    def overlaps(self, run: Trajectory) -> Array:
        """Overlaps of the weights of all pairs of steps."""
        return self.pairs

    def weights(self, run: Trajectory) -> DirectedWeights:
        """The law of the weights."""
        return weights_of(run)

    def training_logits(self, run: Trajectory, t: int, samples: str | None) -> Any:
        """The law of the training logits of a step."""
        from .shaped_laws import ShapedRowLogitLaw

        return ShapedRowLogitLaw(run, t, samples)

    def to_dataset(self) -> xr.Dataset:
        """As a dataset, for a file."""
        import xarray as xr

        return xr.Dataset(
            {f"shape_{name}": (dims, getattr(self, name)) for name, dims in _STORED.items()}
        )

    @classmethod
    def from_dataset(cls, data: xr.Dataset) -> ShapedMemory:
        """The inverse of `to_dataset`."""
        return cls(**{name: data[f"shape_{name}"].values.astype(float) for name in _STORED})
