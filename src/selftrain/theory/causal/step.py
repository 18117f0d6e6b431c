r"""One fit: its equations on the conjugates, with their Jacobian.

With $\langle\cdot\rangle$ the sum over the samples in use, weighted by $\alpha$, the conjugates of
fit t satisfy

$$\hat m_k = -\langle f\rangle_k,\quad \langle f\rangle = 0,\quad \hat Q_{tt} = \langle D\rangle,
\quad \tilde Q_{tr} = \langle f z_r\rangle - \hat Q_{tt}L_{tr},\quad \Phi_{tk} = \langle
f\varphi_k\rangle,\quad \Phi_{tt}\Phi_{tt}^\top = \langle f f^\top\rangle - \sum_k
\Phi_{tk}\Phi_{tk}^\top .$$

The fourth is Stein's identity $E[f\xi_r] = \sum_s \hat Q_{ts}C_{sr}$; labels are fixed within a
step, so that no jump is differentiated. f depends on the fields of the step only through H and
$X_{tt}$, so the Jacobian needs averages of D with products of columns, and no derivatives of
earlier fits. Given $\hat Q_{tt}$ the equations are those of a convex problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .cells import Cell, CellAverages
from .unknowns import Hats, Law, Layout, inverse
from .weights import FAINT, Fields, WeightHistory

KNOWN, KNOWN_EXACTLY = 1e-2, 1e-4
r"""Largest relative change of a new square $\Phi_{tt}\Phi_{tt}^\top$ in the last step, unless it is
negligible: on points, and with exact averages.
"""

DIFFERENCE = 1e-12
"""Relative rounding error of a new square on points, where it is a difference of averages."""


class Evaluation(NamedTuple):
    """Residuals of the equations, their Jacobian, and the map from steps of the unknowns to
    relative changes of the weights and the bias.
    """

    residual: Array
    jacobian: Array | None = None
    primal: Array | None = None


class Totals:
    """Sums over the cells in use, by clusters and covariances; or their derivatives in all unknowns
    (with a leading axis).
    """

    def __init__(self, layout: Layout, lead: tuple[int, ...]) -> None:
        d = layout.components
        self.means = {law: np.zeros((*lead, d, count)) for law, count in layout.laws.items()}
        self.stiffness = {a: np.zeros((*lead, d, d)) for a in layout.sources}
        self.square = {a: np.zeros((*lead, d, d)) for a in layout.sources}
        self.along = {a: np.zeros((*lead, d, r)) for a, (r, _) in layout.sources.items()}
        self.slopes = {a: np.zeros((*lead, d, k)) for a, (_, k) in layout.sources.items()}

    @property
    def mean_slope(self) -> Array:
        r"""The sum $\langle f\rangle$, which is zero if the bias is trained."""
        return np.asarray(-sum(mean.sum(axis=-1) for mean in self.means.values()))

    def add(self, cell: Cell, f: Array, square: Array, stiffness: Array, off: Array) -> None:
        """Add $E[f y]$, $E[f f]$ and $E[D]$ of a cell.

        Arguments:
            off: components of the new Gaussian number along known directions that are not in the
                view of the cell (`Cell.look`).
        """
        a = cell.source
        self.means[cell.law][..., cell.kind] -= cell.share * f[..., 0]
        self.stiffness[a] += cell.share * stiffness
        self.square[a] += cell.share * square
        if cell.along:
            rows = cell.view.rows[:, : self.along[a].shape[-1]]
            self.along[a] += cell.share * f[..., cell.along] @ rows
        self.along[a] += cell.share * f[..., cell.used :] @ off
        if cell.reactions:
            self.slopes[a][..., -len(cell.reactions) :] += cell.share * f[..., cell.reactions]


class CausalStep(NamedTuple):
    r"""One fit to solve.

    Attributes:
        t: its index.
        cells: the samples that it is fitted to.
        history: the weights of the fits before.
        layout: positions of the unknowns in a vector.
        ridge: its ridge.
        bias: its bias if that is copied from another fit; None if it is trained.
        idle: with exact averages, the sums over products of $\varphi$ over the samples that the fit
            does not use, by covariances; else empty.
    """

    t: int
    cells: Sequence[Cell]
    history: WeightHistory
    layout: Layout
    ridge: float
    bias: Array | None
    idle: dict[int, Array]

    @property
    def exact(self) -> bool:
        """Whether averages are exact."""
        return bool(self.idle)

    def evaluate(self, z: Array, slopes: bool) -> Evaluation:
        """Return the residuals at the unknowns z; with `slopes`, their Jacobian too."""
        layout, history = self.layout, self.history
        bias, hats = layout.unpack(z)
        trial = history.trial(self.ridge, hats)
        seen = {a: history.see(a, trial, hats) for a in layout.sources}
        fields = {a: found[0] for a, found in seen.items()}
        means = {law: history.means(law, trial.w) + bias[:, None] for law in layout.laws}
        found = Totals(layout, ())
        changes, slope_of = Totals(layout, (layout.size,)), None
        if slopes:
            outside = {a: found[1] for a, found in seen.items()}
            slope_of = history.slopes(trial, hats, layout, outside)
            for moved in slope_of[0].values():
                moved[layout.bias] += np.eye(layout.components)[:, :, None]
        for cell in self.cells:
            own, a = fields[cell.source], cell.source
            theta, new, tilt = cell.look(own, means[cell.law][:, cell.kind])
            averages = cell.averages(theta, own.strength, slopes)
            found.add(cell, averages.f, averages.square, averages.stiffness, tilt)
            if slope_of is not None:
                change = slope_of[1][a]
                along, turn = cell.view.along(change.along)
                half = turn @ (new @ tilt).T
                bend = factor_slope(new, change.rest + half + half.swapaxes(-1, -2))
                mean = slope_of[0][cell.law][..., cell.kind]
                turned = cell.combine(mean, along, bend, change.react)
                changes.add(cell, *moved_averages(averages, turned, change.strength), tilt)
                turn = inverse(new) @ (turn - bend @ tilt)
                changes.along[a] += cell.share * averages.f[:, cell.used :] @ turn
        residual = self._residual(z, hats, fields, found)
        if slope_of is None:
            return Evaluation(residual)
        jacobian = self._jacobian(hats, fields, found, changes, slope_of[1])
        return Evaluation(residual, jacobian, self._primal(bias, fields, slope_of))

    def _residual(self, z: Array, hats: Hats, fields: dict[int, Fields], found: Totals) -> Array:
        """Return the unknowns minus their values from the averages; for a trained bias, the mean
        slope.
        """
        layout, bias = self.layout, z[self.layout.bias]
        along = {a: found.along[a] - q @ fields[a].along for a, q in hats.stiffness.items()}
        fresh = {a: new_square(self, a, found) for a in layout.sources}
        made = Hats(found.means, found.stiffness, along, found.slopes, fresh)
        residual = z - layout.pack(bias, made)
        if self.bias is None:
            residual[layout.bias] = found.mean_slope
        else:
            residual[layout.bias] = bias - self.bias
        return residual

    def _jacobian(
        self, hats: Hats, fields: dict[int, Fields], found: Totals, changes: Totals,
        slope_of: dict[int, Fields],
    ) -> Array:  # fmt: skip
        """Return the derivatives of the residual in all unknowns."""
        layout = self.layout
        softness, along, fresh = {}, {}, {}
        for a, q in hats.stiffness.items():
            soft = inverse(found.stiffness[a])
            softness[a] = -soft @ changes.stiffness[a] @ soft
            along[a] = changes.along[a] - q @ slope_of[a].along
            along[a][layout.softness[a]] -= layout.stiffening(q) @ fields[a].along
            half = changes.slopes[a] @ found.slopes[a].T
            fresh[a] = changes.square[a] - half - half.swapaxes(-1, -2)
        made = Hats(changes.means, {}, along, changes.slopes, fresh)
        no_bias = np.zeros((layout.size, layout.components))
        jacobian = np.eye(layout.size) - layout.join(no_bias, made, softness).T
        if self.bias is None:
            jacobian[layout.bias] = changes.mean_slope.T
        return jacobian

    def _primal(
        self, bias: Array, fields: dict[int, Fields],
        slope_of: tuple[dict[Law, Array], dict[int, Fields]],
    ) -> Array:  # fmt: skip
        """Return the relative changes of fields, means and bias per unit step of each unknown."""
        layout, size = self.layout, self.layout.size
        norms, parts = [], []
        for a, own in fields.items():
            square = float((own.along**2).sum() + np.trace(own.rest))
            norm, change = np.sqrt(square), slope_of[1][a]
            norms.append(norm)
            reaction = np.sqrt((own.react**2).sum() + square)
            parts += [
                change.along.reshape(size, -1) / norm,
                change.rest.reshape(size, -1) / square,
                change.react.reshape(size, -1) / reaction,
                change.strength.reshape(size, -1) / np.trace(own.strength),
            ]
        norm = max(norms)
        parts += [change.reshape(size, -1) / norm for change in slope_of[0].values()]
        shift = np.zeros((size, layout.components))
        shift[layout.bias] = np.eye(layout.components) / (norm + np.abs(bias).max())
        return np.concatenate([*parts, shift], axis=1).T

    def knows(self, z: Array, step: Array) -> bool:
        """Return whether a step hardly changes the new squares, or only negligible ones."""
        known, faint = (KNOWN_EXACTLY, FAINT) if self.exact else (KNOWN, DIFFERENCE)
        for a, at in self.layout.fresh.items():
            square, slopes = z[at], z[self.layout.slopes[a]]
            whole = float(np.abs(square).sum() + slopes @ slopes)
            change = float(np.abs(step[at]).max())
            if change > known * float(np.abs(square).max()) and change > faint * whole:
                return False
        return True

    def moved(self, z: Array, step: Array, fraction: float) -> Array:
        """Return z after a fraction of the step; new squares and inverse stiffness stay positive
        definite.
        """
        moved = z + fraction * step
        for at in (*self.layout.fresh.values(), *self.layout.softness.values()):
            before, after = (self.layout.symmetric(values[at]) for values in (z, moved))
            if np.linalg.eigvalsh(after).min() < 0.05 * np.linalg.eigvalsh(before).min():
                moved[at] = 0.05 * z[at]
        return np.asarray(moved)


def factor_slope(root: Array, change: Array) -> Array:
    """Return the derivatives of the triangular factor `root` of a matrix, given those of the
    matrix, (..., d, d).
    """
    if root.shape == (1, 1):
        return np.asarray(change / (2.0 * root))
    left = inverse(root)
    inside = left @ change @ left.T
    lower = (
        np.tril(inside)
        - 0.5 * np.eye(len(root)) * np.diagonal(inside, axis1=-2, axis2=-1)[..., None]
    )
    return np.asarray(root @ lower)


def moved_averages(at: CellAverages, theta: Array, strength: Array) -> tuple[Array, Array, Array]:
    r"""Return the derivatives of $E[f y]$, $E[f f]$ and $E[D]$, for those of the coefficients and
    of the strength: $df = D(dH - dX f)$, with $dH = d\theta\,y$.
    """

    def along(averages: Array, *axes: int) -> Array:
        return np.tensordot(theta, averages, axes=([1, 2], axes))

    def against(averages: Array, *axes: int) -> Array:
        return np.tensordot(strength, averages, axes=([1, 2], axes))

    f = along(at.curved, 1, 3) - against(at.pulled, 1, 2)
    half = along(at.pulled, 1, 3) - against(at.pulled_f, 1, 3)
    stiffness = along(at.bent, 2, 3) - against(at.bent_f, 2, 3) - against(at.double, 1, 2)
    return f, half + half.swapaxes(-1, -2), stiffness


def new_square(stage: CausalStep, a: int, found: Totals) -> Array:
    r"""Return the new square $\langle f f^\top\rangle - \Phi\Phi^\top$: the part of the slopes of a
    fit that is orthogonal to earlier ones.

    With exact averages it decreases by a factor in every step, until the difference would be
    dominated by rounding. It is therefore computed as the square of $f - \Phi\varphi$, with $f = 0$
    for samples that are not in use.
    """
    slopes = found.slopes[a]
    if not stage.exact:
        return np.asarray(found.square[a] - slopes @ slopes.T)
    square = slopes @ stage.idle[a] @ slopes.T
    for cell in stage.cells:
        if cell.source == a:
            rest = cell.f - cell.combined(slopes)
            square = square + cell.share * rest.T @ rest
    return np.asarray(square)
