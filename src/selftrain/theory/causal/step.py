r"""One fit: its equations on the conjugates, with their Jacobian.

With $\langle\cdot\rangle$ the sum over the samples in use, weighted by $\alpha$, the conjugates of
fit t satisfy

$$\hat m_k = -\langle f\rangle_k,\quad \langle f\rangle = 0,\quad \hat Q_{tt} = \langle D\rangle,
\quad \tilde Q_{tr} = \langle f z_r\rangle - \hat Q_{tt}L_{tr},\quad \Phi_{tk} = \langle
f\varphi_k\rangle,\quad \Phi_{tt}\Phi_{tt}^\top = \langle f f^\top\rangle - \sum_k
\Phi_{tk}\Phi_{tk}^\top .$$

The fourth is Stein's identity $E[f\xi_r] = \sum_s \hat Q_{ts}C_{sr}$: labels are data of the step,
so no jump is differentiated. f depends on the fields of the step through H and $X_{tt}$ only, so
the Jacobian needs averages of D with products of columns, and no derivatives of the history. Given
$\hat Q_{tt}$ the equations are those of a convex problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .cells import Cell, CellAverages, Seen
from .linear import LinearCell
from .weights import FAINT, Fields, Hats, Law, Layout, WeightHistory, factor, inverse

KNOWN, KNOWN_EXACTLY = 1e-2, 1e-4
"""The last change of a new square, relative, unless it is faint: on points, and where averages are
exact.
"""

DIFFERENCE = 1e-12
"""On points a new square is a difference of averages, known to this share of them."""


class Member(NamedTuple):
    """A cell in a fit, with the law and the covariance of its samples."""

    cell: Cell
    law: Law
    source: int


class Evaluation(NamedTuple):
    """Residuals of the equations, their Jacobian, and the map from steps of the unknowns to
    relative changes of the weights and the bias.
    """

    residual: Array
    jacobian: Array | None = None
    primal: Array | None = None


class Totals:
    """Sums over the cells in use, by laws and covariances, with derivatives in all unknowns (one
    more axis before) if there are any.
    """

    def __init__(self, layout: Layout, lead: tuple[int, ...]) -> None:
        d = layout.components
        self.means = {law: np.zeros((*lead, d, count)) for law, count in layout.laws.items()}
        self.stiffness = {a: np.zeros((*lead, d, d)) for a in layout.sources}
        self.square = {a: np.zeros((*lead, d, d)) for a in layout.sources}
        self.along = {a: np.zeros((*lead, d, r)) for a, (r, _) in layout.sources.items()}
        self.slopes = {a: np.zeros((*lead, d, k)) for a, (_, k) in layout.sources.items()}

    def add(self, member: Member, f: Array, square: Array, stiffness: Array, off: Array) -> None:
        """Add $E[f y]$, $E[f f]$ and $E[D]$ of a cell.

        Arguments:
            off: what the new Gaussian number has of the known ones that the cell has not seen.
        """
        cell, a = member.cell, member.source
        self.means[member.law][..., cell.kind] -= cell.share * f[..., 0]
        self.stiffness[a] += cell.share * stiffness
        self.square[a] += cell.share * square
        if cell.along:
            rows = cell.view.rows[:, : self.along[a].shape[-1]]
            self.along[a] += cell.share * f[..., cell.along] @ rows
        self.along[a] += cell.share * f[..., cell.used :] @ off
        if cell.reactions:
            self.slopes[a][..., -len(cell.reactions) :] += cell.share * f[..., cell.reactions]


class CausalStep(NamedTuple):
    r"""One fit to solve: what it is fitted to, its ridge, its bias if that is not trained; where
    averages are exact, the sums over products of $\varphi$ of samples that it does not use.
    """

    t: int
    members: Sequence[Member]
    history: WeightHistory
    layout: Layout
    ridge: float
    bias: Array | None
    idle: dict[int, Array]

    @property
    def laws(self) -> list[Law]:
        """The laws of the samples in use."""
        return list(self.layout.laws)

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
        for member in self.members:
            cell, own = member.cell, fields[member.source]
            given, tilt = looked_at(cell, own, means[member.law][:, cell.kind])
            theta = cell.combine(given)
            averages = cell.averages(theta, own.strength, slopes)
            found.add(member, averages.f, averages.square, averages.stiffness, tilt)
            if slope_of is not None:
                change = slope_of[1][member.source]
                along, turn = cell.view.along(change.along)
                half = turn @ (given.new @ tilt).T
                bend = factor_slope(given.new, change.rest + half + half.swapaxes(-1, -2))
                mean = slope_of[0][member.law][..., cell.kind]
                turned = cell.combine(Seen(mean, along, bend, change.react, change.strength))
                changes.add(member, *moved_averages(averages, turned, change.strength), tilt)
                turn = inverse(given.new) @ (turn - bend @ tilt)
                changes.along[member.source] += cell.share * averages.f[:, cell.used :] @ turn
        residual = self._residual(hats, bias, fields, found)
        if slope_of is None:
            return Evaluation(residual)
        jacobian = self._jacobian(hats, fields, found, changes, slope_of[1])
        return Evaluation(residual, jacobian, self._primal(bias, fields, slope_of))

    def _residual(self, hats: Hats, bias: Array, fields: dict[int, Fields], found: Totals) -> Array:
        layout = self.layout
        residual = np.zeros(layout.size)
        for law, at in layout.means.items():
            residual[at] = (hats.means[law] - found.means[law]).ravel()
            residual[layout.bias] -= found.means[law].sum(axis=1)
        if self.bias is not None:
            residual[layout.bias] = bias - self.bias
        for a in layout.sources:
            mine, slopes = fields[a].along, found.slopes[a]
            along = hats.along[a] + hats.stiffness[a] @ mine - found.along[a]
            square = hats.fresh[a] - new_square(self, a, found)
            soft = inverse(hats.stiffness[a]) - inverse(found.stiffness[a])
            residual[layout.softness[a]] = soft[layout.low]
            residual[layout.along[a]] = along.ravel()
            residual[layout.slopes[a]] = (hats.slopes[a] - slopes).ravel()
            residual[layout.fresh[a]] = square[layout.low]
        return residual

    def _jacobian(
        self, hats: Hats, fields: dict[int, Fields], found: Totals, changes: Totals,
        slope_of: dict[int, Fields],
    ) -> Array:  # fmt: skip
        layout = self.layout
        jacobian = np.eye(layout.size)
        jacobian[layout.bias] = 0.0
        for law, at in layout.means.items():
            jacobian[at] -= changes.means[law].reshape(layout.size, -1).T
            jacobian[layout.bias] -= changes.means[law].sum(axis=-1).T
        if self.bias is not None:
            jacobian[layout.bias] = np.eye(layout.size)[layout.bias]
        low = layout.low
        for a in layout.sources:
            soft = inverse(found.stiffness[a])
            jacobian[layout.softness[a]] += (soft @ changes.stiffness[a] @ soft)[:, *low].T
            along = hats.stiffness[a] @ slope_of[a].along - changes.along[a]
            along[layout.softness[a]] += layout.stiffening(hats.stiffness[a]) @ fields[a].along
            jacobian[layout.along[a]] += along.reshape(layout.size, -1).T
            jacobian[layout.slopes[a]] -= changes.slopes[a].reshape(layout.size, -1).T
            half = changes.slopes[a] @ found.slopes[a].T
            square = half + half.swapaxes(-1, -2) - changes.square[a]
            jacobian[layout.fresh[a]] += square[:, *low].T
        return jacobian

    def _primal(
        self, bias: Array, fields: dict[int, Fields],
        slope_of: tuple[dict[Law, Array], dict[int, Fields]],
    ) -> Array:  # fmt: skip
        """Relative changes of what samples see per step of the unknowns."""
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
        """Return whether a step hardly changes new squares, or they are too faint to matter."""
        known, faint = (KNOWN_EXACTLY, FAINT) if self.idle else (KNOWN, DIFFERENCE)
        for a, at in self.layout.fresh.items():
            square, slopes = z[at], z[self.layout.slopes[a]]
            whole = float(np.abs(square).sum() + slopes @ slopes)
            change = float(np.abs(step[at]).max())
            if change > known * float(np.abs(square).max()) and change > faint * whole:
                return False
        return True

    def moved(self, z: Array, step: Array, fraction: float) -> Array:
        """Return z after a fraction of the step; squares stay positive."""
        moved = z + fraction * step
        for at in (*self.layout.fresh.values(), *self.layout.softness.values()):
            before, after = (self.layout.symmetric(values[at]) for values in (z, moved))
            if np.linalg.eigvalsh(after).min() < 0.05 * np.linalg.eigvalsh(before).min():
                moved[at] = 0.05 * z[at]
        return np.asarray(moved)


def looked_at(cell: Cell, fields: Fields, mean: Array) -> tuple[Seen, Array]:
    """Return what a cell is given of a fit, and what its new Gaussian number has of the known ones
    that it has not seen.
    """
    along, off = cell.view.along(fields.along)
    new = factor(fields.rest + off @ off.T)
    return Seen(mean, along, new, fields.react, fields.strength), inverse(new) @ off


def factor_slope(root: Array, change: Array) -> Array:
    """Return the derivatives of a factor, given those of its square, (..., d, d)."""
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
    r"""Return the derivatives of $E[f y]$, $E[f f]$, $E[D]$, for those of the coefficients and of
    the strength: $df = D(dH - dX f)$.
    """
    size, d, columns = theta.shape
    flat, kick = theta.reshape(size, -1), strength.reshape(size, d * d)
    # axes: j k (c) b -> (k b), j c
    f = flat @ at.curved.transpose(1, 3, 0, 2).reshape(d * columns, -1)
    f -= kick @ at.pulled.transpose(1, 2, 0, 3).reshape(d * d, -1)
    half = flat @ at.pulled.transpose(1, 3, 0, 2).reshape(d * columns, -1)
    half -= kick @ at.pulled_f.transpose(1, 3, 0, 2).reshape(d * d, -1)
    half = half.reshape(size, d, d)
    stiffness = flat @ at.bent.transpose(2, 3, 0, 1).reshape(d * columns, -1)
    stiffness -= kick @ at.bent_f.transpose(2, 3, 0, 1).reshape(d * d, -1)
    stiffness -= kick @ at.double.transpose(1, 2, 0, 3).reshape(d * d, -1)
    return (
        f.reshape(size, d, columns), half + half.swapaxes(-1, -2), stiffness.reshape(size, d, d)
    )  # fmt: skip


def exact_averages(members: Sequence[Member]) -> bool:
    """Return whether the averages of these samples are exact."""
    return all(isinstance(member.cell, LinearCell) for member in members)


def new_square(stage: CausalStep, a: int, found: Totals) -> Array:
    r"""Return $\langle f f^\top\rangle - \Phi\Phi^\top$, what is new in the slopes of a fit.

    Where averages are exact it fades by a factor a step, until a difference would be rounding: it
    is the square of $f - \Phi\varphi$, which has $f = 0$ for samples that are not in use.
    """
    slopes = found.slopes[a]
    if not stage.idle:
        return np.asarray(found.square[a] - slopes @ slopes.T)
    square = slopes @ stage.idle[a] @ slopes.T
    for cell, _, source in stage.members:
        if source == a:
            rest = cell.f - cell.combined(slopes)
            square = square + cell.share * rest.T @ rest
    return np.asarray(square)
