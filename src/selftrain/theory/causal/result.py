"""What reuse adds to a trajectory of two classes, and what one replicate found of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ...arrays import Array
from .observed import padded
from .replicate import Replicate, Setting

if TYPE_CHECKING:
    import xarray as xr

_STORED = {
    "measured": ("measure", "t"),
    "shares": ("t", "class"),
    "pairs": ("t", "step"),
    "response": ("t", "step"),
    "crossed": ("t", "step", "mode", "other"),
}
"""Fields that a file has as they are, with their dimensions."""


@dataclass(frozen=True, eq=False)
class Reuse:
    r"""The part of a `Trajectory` that data reuse adds.

    Attributes:
        measured: of the training samples, over t: selected share, accuracy of labels, of selected
            labels, mean loss of the unlabelled samples, of the labelled ones that are reused.
        shares: proportions of the classes among the labels, columns (negative, positive).
        pairs: $w_t\cdot w_s/N$ of all pairs of steps.
        response: $\mathrm{tr}\,\chi_{ts}/N$, lower triangular.
        crossed: covariances of the weights of all pairs of steps, by modes or as matrices.
        points: of the largest group, for each class (0: exact moments).
        replicates: how many were averaged (1: a grid, or exact).
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


class Found(NamedTuple):
    """What one replicate found, arrays over t = 0..T, NaN where it was not solved: the state of a
    trajectory, what `Reuse` stores, and the law of the weights.
    """

    state: dict[str, Array]
    stored: dict[str, Array]
    variances: Array
    means: Array


def found(run: Replicate, setting: Setting) -> Found:
    """Return what a replicate found."""
    space, fits, history = setting.space, len(setting.protocol.fits), run.history
    solved, count = len(run.hats), len(space.sources)
    names = ("m", "chi", "overlap", "q_hat", "chi_hat", "m_hat", "r_hat")
    state = {name: np.full(fits, np.nan) for name in names}
    state["bias"], state["chi"] = run.bias[:, 0].copy(), run.gains.copy()
    weights = np.array(history.fits)[:, 0]
    overlaps = np.full((fits, fits), np.nan)
    overlaps[:solved, :solved] = np.einsum("tnc,snc->ts", weights, weights)
    state["m"][:solved] = history.means(setting.test, np.array(history.fits))[:, 0, -1]
    conjugates = [_conjugates(run, a, fits) for a in range(count)]
    scales = [source.variance for source in space.sources]
    for t in range(solved):
        hats = run.hats[t]
        state["m_hat"][t] = sum(float(mean[0, -1] - mean[0, 0]) for mean in hats.means.values())
        state["q_hat"][t] = sum(scales[a] * float(q[0, 0]) for a, q in hats.stiffness.items())
        squares = {a: float((hats.slopes[a] ** 2).sum() + hats.fresh[a][0, 0]) for a in hats.fresh}
        state["chi_hat"][t] = sum(scales[a] * square for a, square in squares.items())
        if t > 0:
            state["overlap"][t] = overlaps[t, t - 1]
            state["r_hat"][t] = -sum(scales[a] * conjugates[a][t, t - 1] for a in hats.fresh)
    response = np.tril(np.full((fits, fits), np.nan))
    response[:solved, :solved] = _response(setting, conjugates, solved)
    stored = {
        "measured": run.measured, "shares": run.shares, "pairs": overlaps, "response": response,
    }  # fmt: skip
    test = space.sets[setting.test]
    variances = np.full((fits, 2), np.nan)
    for side in (0, 1):
        images = space.sigma(test.sources[side], weights)
        variances[:solved, side] = np.einsum("tnc,tnc->t", weights, images)
    noise = weights[:, :, 1:]
    crossed = np.full((fits, fits, *([space.size] * (1 if space.by_modes else 2))), np.nan)
    if space.by_modes:
        crossed[:solved, :solved] = np.einsum("tnc,snc->tsn", noise, noise) / space.copies
    else:
        crossed[:solved, :solved] = np.einsum("tnc,smc->tsnm", noise, noise)
    stored["crossed"] = crossed
    return Found(state, stored, variances, padded(weights[:, :, 0], fits))


def _births(run: Replicate, a: int) -> list[int]:
    """The steps that brought a Gaussian number of a covariance."""
    born: list[int] = []
    for t, row in enumerate(run.history.bases[a].rows):
        if row[len(born)] != 0:
            born.append(t)
    return born


def _conjugates(run: Replicate, a: int, fits: int) -> Array:
    r"""$\hat Q_{ts}$ of a covariance, lower triangular."""
    hats = np.zeros((fits, fits))
    if a not in run.history.bases:
        return hats
    born = _births(run, a)
    rows = np.array([run.history.bases[a].rows[s][: len(born)] for s in born])
    for t, hat in enumerate(run.hats):
        if a not in hat.stiffness:
            continue
        hats[t, t] = float(hat.stiffness[a][0, 0])
        size = sum(s < t for s in born)
        if size:
            row = solve_triangular(
                rows[:size, :size], hat.along[a][0, :size], lower=True, trans="T"
            )
            hats[t, born[:size]] = row
    return hats


def _response(setting: Setting, conjugates: list[Array], solved: int) -> Array:
    r"""$\mathrm{tr}\,\chi_{ts}/N$, $\chi = (\lambda + \sum_a\hat Q^a\Sigma_a)^{-1}$."""
    space = setting.space
    ridges = np.diag([fit.ridge for fit in setting.protocol.fits[:solved]])
    if space.by_modes:
        whole = np.broadcast_to(ridges, (space.size, solved, solved)).copy()
        for a, source in enumerate(space.sources):
            whole += source.sigma[:, None, None] * conjugates[a][:solved, :solved]
        return np.tril(np.einsum("n,nts->ts", space.copies, np.linalg.inv(whole)) / space.features)
    size = space.size
    full: Array = np.kron(ridges, np.eye(size)).astype(float)
    for a, source in enumerate(space.sources):
        full += np.kron(conjugates[a][:solved, :solved], source.sigma)
    answer = _inverse_of_blocks(full, size)
    return np.tril(np.einsum("tnsn->ts", answer.reshape(solved, size, solved, size)) / size)


def _inverse_of_blocks(full: Array, size: int) -> Array:
    """Return the inverse of a block lower triangular matrix."""
    count = len(full) // size
    inverse = np.zeros_like(full)
    for t in range(count):
        here = slice(t * size, (t + 1) * size)
        right = -full[here, : t * size] @ inverse[: t * size]
        right[:, here] += np.eye(size)
        inverse[here] = np.linalg.solve(full[here, here], right)
    return inverse
