r"""What a run with memory has beyond the one without: the parts of the weights, and how the banks
agree.

`Memory` is carried by a `Trajectory`: the loadings $\Lambda$ (weights in orthonormal directions),
the slopes $\Phi$ (how the reaction of the rows is shared among the steps), and what was measured of
the training rows. Response and overlaps follow: $\chi = \Lambda\Phi^{-1}$, $C = m m^\top +
\Lambda\Lambda^\top$.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from ...arrays import Array
from ..laws.weights import WeightLaw
from .process import Path

if TYPE_CHECKING:
    import xarray as xr

    from ..trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Memory:
    r"""The part of a `Trajectory` that rows used again add.

    Attributes:
        loadings: $\Lambda$, lower triangular, (T+1, T+1).
        slopes: $\Phi$, lower triangular; $\hat\chi = \Phi\Phi^\top$.
        measured: of the training rows, over t: selected share, accuracy of labels, of selected
            labels, mean loss of the unlabelled rows, mean loss of the labelled rows that are kept.
        points: rows of the largest bank, for each class of its group (0: exact moments).
        banks: how many independent banks were averaged (1: a grid, or exact).
    """

    loadings: Array
    slopes: Array
    measured: Array
    points: int
    banks: int

    @property
    def response(self) -> Array:
        r"""$\chi_{ts}$, lower triangular; NaN from the first step on whose new direction is lost in
        rounding.
        """
        response = np.full(self.loadings.shape, np.nan)
        good = self._resolved
        response[:good, :good] = solve_triangular(
            self.slopes[:good, :good].T, self.loadings[:good, :good].T
        ).T
        return response

    def overlaps(self, run: Trajectory) -> Array:
        r"""$m m^\top + \Lambda\Lambda^\top$."""
        overlaps: Array = np.outer(run.m, run.m) + self.loadings @ self.loadings.T
        return overlaps

    def weights(self, run: Trajectory) -> WeightLaw:
        """The law of a weight over the steps."""
        return WeightLaw(run, run.m.copy(), run.v.copy(), self.loadings @ self.loadings.T)

    def training_logits(self, run: Trajectory, t: int, samples: str | None) -> Any:
        """The law of the training logits of a step."""
        from .laws import RowLogitLaw

        return RowLogitLaw(run, t, samples)

    @property
    def _resolved(self) -> int:
        """How many steps, from 0, have a direction of their own."""
        size = np.linalg.norm(self.loadings, axis=1)
        with np.errstate(invalid="ignore"):
            own = np.diag(self.loadings) > 1e-10 * size
        return int(np.argmin(np.append(own, False)))

    def to_dataset(self) -> xr.Dataset:
        """As a dataset, for a file."""
        import xarray as xr

        data = {
            "memory_loadings": (("t", "step"), self.loadings),
            "memory_slopes": (("t", "step"), self.slopes),
            "memory_measured": (("measured", "t"), self.measured),
        }
        sizes = {"memory_points": self.points, "memory_banks": self.banks}
        return xr.Dataset(data, attrs=sizes)

    @classmethod
    def from_dataset(cls, data: xr.Dataset) -> Memory:
        """The inverse of `to_dataset`."""
        names = ("memory_loadings", "memory_slopes", "memory_measured")
        loadings, slopes, measured = (data[name].values.astype(float) for name in names)
        return cls(
            loadings,
            slopes,
            measured,
            int(data.attrs["memory_points"]),
            int(data.attrs["memory_banks"]),
        )

    def path(self, bias: Array, m: Array, chi: Array, upto: int) -> Path:
        """The parameters of steps 0..`upto`, to follow rows along."""
        first = np.array([m[0], self.loadings[0, 0]])
        path = Path(bias, m, chi, self.loadings, self.slopes, first)
        size = np.linalg.norm(self.loadings, axis=1)
        path.live = [t for t in range(upto + 1) if self.loadings[t, t] > 1e-11 * size[t]]
        return path
