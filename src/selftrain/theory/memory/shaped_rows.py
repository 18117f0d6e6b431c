r"""The process of a row on clusters with a shape, on a bank: fields, trained logits, slopes, and
the conjugates they give.

A row of class c has the fields $h^{(t)} = \pm m_t + B_t + \sum_r L_{tr}z_r$, $C^c = LL^\top$, and
the trained logits $u^{(t)} = h^{(t)} - \sum_{s\le t} k_{ts}f^{(s)}$. The derivative of a slope in
its own field is explicit; the others follow from $E[f z_r] = \sum_s E[\partial f/\partial h^{(s)}]
L_{sr}$, a triangular solve, so that no jump is differentiated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ...arrays import Array
from ...losses import Loss
from ...rows import RowGroup
from .algebra import RowFields
from .bank import normals
from .process import Labels
from .response import RowAnswer, respond

FAINT = 1e-5
"""A direction smaller than this share of the field that brought it is left out: a row depends on it
by no more than this share, and its square is lost in rounding soon after.
"""


class Moments(NamedTuple):
    r"""Of one class of a group at a step, with its share of rows: $E[f]$, $E[\partial f/\partial
    h^{(t)}]$, $\hat Q_{ts}$, $\hat\chi_{ts}$.
    """

    slope: float
    stiffness: float
    q: Array
    chi: Array


class ClassRows:
    """The rows of one class of a group, with everything they have seen."""

    def __init__(self, group: RowGroup, loss: Loss, positive: bool, noise: Array):
        self.group, self.loss, self.noise = group, loss, noise
        self.side, self.sign = int(positive), 1.0 if positive else -1.0
        self.share = group.alpha * (group.rho if positive else 1 - group.rho)
        self.base = max(group.steps[0] - 1, 0)
        self.factor = np.zeros((0, 0))
        self._clear, self._clear_factor = np.zeros(0, dtype=np.intp), self.factor
        self.slopes: dict[int, Array] = {}
        self.answer = RowAnswer.empty(len(noise))
        self.logits = np.zeros(len(noise))
        self.target = np.zeros(len(noise))
        self.weight = np.zeros(len(noise))

    def meet(self, before: RowFields, bias: float) -> None:
        """The first sight of unlabelled rows: their logits under the model that labels them."""
        self._remember(np.sqrt(before.overlaps[self.side, -1:]))
        self.logits = self.sign * before.m + bias + self.factor[0, 0] * self.noise[:, 0]
        self.answer.u[:] = self.logits

    def set_targets(self, t: int, labels: Labels | None) -> None:
        """Targets and weights of step t, from the logits under the model of step t - 1."""
        factor = self.group.weights[t]
        self.weight = np.full(len(self.noise), factor)
        if self.group.labeled or labels is None:
            negative, positive = self.loss.classes
            self.target[:] = positive if self.side else negative
        else:
            self.target = labels.target(self.logits, self.loss)
            self.weight = factor * labels.selected(self.logits)

    def see(self, fields: RowFields, t: int) -> Array:
        """The row of the triangular factor that belongs to step t."""
        overlaps = fields.overlaps[self.side, self.base : t + 1]
        row = np.zeros(overlaps.size)
        clear = self._clear
        if clear.size:
            row[clear] = solve_triangular(self._clear_factor, overlaps[clear], lower=True)
        row[-1] = np.sqrt(max(overlaps[-1] - float(row @ row), 0.0))
        return row

    def expect(self, fields: RowFields, bias: float, t: int) -> tuple[Array, Array]:
        """What a row expects at step t, before the new noise of that step; and the row of the
        factor, whose last entry is the size of that noise.
        """
        row = self.see(fields, t)
        center = self.sign * fields.m + bias + self.noise[:, : row.size - 1] @ row[:-1]
        for s, slope in self.slopes.items():
            center -= fields.kicks[self.side, s] * slope
        return center, row

    def react(self, fields: RowFields, bias: float, t: int) -> Array:
        """Trained logits and slopes at step t; returns the row of the factor."""
        field, row = self.expect(fields, bias, t)
        field += self.noise[:, row.size - 1] * row[-1]
        strength = float(fields.kicks[self.side, t])
        respond(self.loss, field, self.target, self.weight, strength, self.answer)
        return row

    def moments(self, fields: RowFields, bias: float, t: int) -> Moments:
        """The averages of step t."""
        row = self.react(fields, bias, t)
        f, points = self.answer.f, len(self.noise)
        stiffness = float(self.answer.d.mean())
        q, chi = np.zeros(t + 1), np.zeros(t + 1)
        q[t] = stiffness
        clear = self._clear
        if clear.size:
            along = f @ self.noise[:, clear] / points - stiffness * row[clear]
            q[self.base + clear] = solve_triangular(self._clear_factor, along, lower=True, trans=1)
        for s, slope in self.slopes.items():
            chi[s] = float(f @ slope) / points
        chi[t] = float(f @ f) / points
        share = self.share
        return Moments(share * float(f.mean()), share * stiffness, share * q, share * chi)

    def finish(self, fields: RowFields, bias: float, t: int) -> None:
        """Take the solution of the step; rows that the step does not use only see it."""
        row = self.react(fields, bias, t)
        self._remember(row)
        self.logits = self.answer.u.copy()
        if self.group.weights[t] > 0:
            self.slopes[t] = self.answer.f.copy()

    def _remember(self, row: Array) -> None:
        """Add a row to the triangular factor, and find the directions that are large enough."""
        size = row.size
        factor = np.zeros((size, size))
        factor[:-1, :-1], factor[-1] = self.factor, row
        self.factor = factor
        norms = np.linalg.norm(factor, axis=1)
        self._clear = np.flatnonzero(np.diag(factor) > FAINT * norms)
        self._clear_factor = factor[np.ix_(self._clear, self._clear)]


def class_rows(
    group: RowGroup, loss: Loss, points: int, seed: np.random.SeedSequence
) -> tuple[ClassRows, ClassRows]:
    """The rows of a group: the negative class, and the same points mirrored for the positive
    one.
    """
    seen = group.steps[-1] - max(group.steps[0] - 1, 0) + 1
    noise = normals(points, seen, seed)
    return ClassRows(group, loss, False, -noise), ClassRows(group, loss, True, noise)
