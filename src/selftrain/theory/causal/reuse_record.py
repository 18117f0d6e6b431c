"""`Reuse`: the results of a run with data reuse and two classes besides its `Trajectory`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...arrays import Array

if TYPE_CHECKING:
    import xarray as xr

_STORED = {
    "measured": ("measure", "t"),
    "shares": ("t", "class"),
    "pairs": ("t", "step"),
    "response": ("t", "step"),
    "crossed": ("t", "step", "mode", "other"),
}
"""Arrays of `Reuse` that are stored in a file, with their dimensions."""


@dataclass(frozen=True, eq=False)
class Reuse:
    r"""The results of a run with data reuse that a run without it does not store.

    Attributes:
        measured: five rows over t: selected proportion, accuracy of all pseudo-labels, of selected
            ones, mean loss of the pseudo-labelled samples, of the labelled samples that are reused.
        shares: class proportions among the labels, columns (negative, positive).
        pairs: $w_t\cdot w_s/N$ of all pairs of steps.
        response: $\mathrm{tr}\,\chi_{ts}/N$, lower triangular.
        crossed: covariances of the weights of all pairs of steps, by modes or as matrices.
        points: number of points of the largest group, for each class (0: exact moments).
        replicates: number of replicates that were averaged (1: a grid, or exact moments).
    """

    measured: Array
    shares: Array
    pairs: Array
    response: Array
    crossed: Array
    points: int
    replicates: int

    def to_dataset(self) -> xr.Dataset:
        """Return the record as a dataset, for a file."""
        import xarray as xr

        data = {}
        for name, dims in _STORED.items():
            values = getattr(self, name)
            data[f"reuse_{name}"] = (dims[: values.ndim], values)
        sizes = {"reuse_points": self.points, "reuse_replicates": self.replicates}
        return xr.Dataset(data, attrs=sizes)

    @classmethod
    def from_dataset(cls, data: xr.Dataset) -> Reuse | None:
        """Return the record of a dataset; None if it has none."""
        if "reuse_measured" not in data:
            return None
        arrays = {name: data[f"reuse_{name}"].values.astype(float) for name in _STORED}
        points, replicates = (int(data.attrs[f"reuse_{name}"]) for name in ("points", "replicates"))
        return cls(**arrays, points=points, replicates=replicates)
