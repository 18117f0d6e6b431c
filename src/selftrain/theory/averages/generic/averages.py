"""The averages of a step for any loss and any labeler, with the interface of `CompiledAverages`."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ....arrays import Array
from ....labelers import Labeler
from ....losses import Loss
from ...tolerances import EMPTY_SHARE, START_RULE
from ..batch import OTHER, At, Batch, CompiledAverages, Labelling, Room, explicit_unknowns
from ..quadrature.rules import OldModel, given_share
from ..record import blank, named
from .noise import ROWS, Effort, noise_averages
from .panels import MASS, GroupIntegrals, NewFields, gather

SELECTED_RULE = START_RULE + 8.0
"""Exponent of the rule for starting points; it is larger because its panels are not refined."""

FLAT = 1e-2
"""If the curvature of a loss at the bias is below this fraction of the mean within one unit of it,
the loss is flat there (as Huber's beyond its width), and a start uses the mean.
"""


class GenericAverages:
    """The averages of a step for any loss and any labeler.

    Arguments:
        t: the step.
        loss, labeler: loss and labeler of the step.
        labels: the labelling model (zeros at step 0).
        batch: the samples.
    """

    def __init__(self, t: int, loss: Loss, labeler: Labeler, labels: Labelling, batch: Batch):
        self.loss, self.labels, self.batch, self.effort = loss, labels, batch, Effort(t)
        self.groups = [
            GroupIntegrals(loss, labeler, self._old(k), self.effort)
            for k in range(0 if batch.given else len(labels.roots))
        ]

    def _old(self, k: int) -> OldModel:
        labels, batch = self.labels, self.batch
        return OldModel(
            labels.m, float(labels.roots[k]), labels.bias, float(batch.groups[1, k]), batch.limit,
            batch.sharpness,
        )  # fmt: skip

    def new_fields(self, k: int, at: At) -> NewFields:
        """Return the coefficients of the new logits h of group k."""
        labels, groups = self.labels, len(self.labels.roots)
        return NewFields(
            float(at.fields[0, 0]) + at.anchor * labels.m,
            at.lift + labels.gamma * labels.bias,
            (float(at.fields[1 + k, 0]) + at.anchor) * float(labels.roots[k]),
            float(at.fields[1 + groups + k, 0]),
            float(at.fields[1 + 2 * groups + k, 0]),
        )

    def at(self, at: At, exponent: float, with_loss: bool = False) -> tuple[Any, int] | None:
        """Return averages and number of nodes; see `CompiledAverages.at`."""
        moments, used = blank(len(self.labels.roots)), 0
        for k, (weight, positive) in enumerate(self.batch.groups.T):
            new = self.new_fields(k, at)
            if self.batch.given:
                moments[k] = self._labeled(new, positive, exponent)
                moments[k].share, used = weight, used + 2
                continue
            integrals, points = self.groups[k].integrals(new, exponent)
            moments[k] = named(integrals)
            moments[k].share, used = weight * integrals[MASS], used + points
        return (moments, used) if np.isfinite(moments.f).all() else None

    def _labeled(self, new: NewFields, rho: float, exponent: float) -> Any:
        """Return the averages of a group whose labels are given."""
        sign, share, target = self._given(rho)
        fields = new.at(sign, 0 * sign, target, share)
        inner, _ = noise_averages(self.loss, fields, exponent, effort=self.effort)
        return named(gather(sign, 0 * sign, dict(zip(ROWS, share * inner, strict=True))))

    def all_wrong(self) -> GenericAverages:
        """Return the same averages for the case that all given labels are wrong."""
        wrong = copy(self)
        wrong.batch = self.batch._replace(wrong=np.ones(2))
        return wrong

    def _given(self, rho: float) -> tuple[Array, Array, Array]:
        """Return class, proportion and target of the pairs of class and given label that occur."""
        sign, label = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, -1.0, -1.0, 1.0])
        wrong = self.batch.wrong
        share = np.array([given_share(*pair, rho, wrong) for pair in zip(sign, label, strict=True)])
        target = np.where(label > 0, self.loss.classes[1], self.loss.classes[0])
        return sign[share > 0], share[share > 0], target[share > 0]

    def start(self, fixed_bias: float, x: Array) -> float:
        """Fill x with the unknowns for large ridges; see `CompiledAverages.start`. The averages are
        sums over the points of a rough rule.
        """
        parts = [self._selected(k) for k in range(len(self.labels.roots))]
        weight = np.concatenate([part[2] for part in parts])
        target = np.concatenate([part[3] for part in parts])
        if weight.size == 0 or weight.sum() < EMPTY_SHARE:
            return math.nan
        bias = self.labels.bias
        if math.isnan(fixed_bias):
            bias = _best_constant(self.loss, target, weight)
        moments = blank(len(parts))
        for k, (s, g, w, y) in enumerate(parts):
            at = np.full(s.size, bias)
            f, curvature = self.loss.slope(y, at), self.loss.curvature(y, at)
            e, part = moments[k], w / w.sum()
            e.sf, e.gf, e.ff, e.k = part @ (s * f), part @ (g * f), part @ f**2, part @ curvature
            chord = part @ (self.loss.slope(y, at + 1.0) - self.loss.slope(y, at - 1.0)) / 2.0
            e.k = chord if e.k < FLAT * chord else e.k
            e.share = w.sum()
        explicit_unknowns(moments, self.labels, bias, self.batch.given, x)
        return self._rarer(target, weight / weight.sum())

    def _selected(self, k: int) -> tuple[Array, Array, Array, Array]:
        """Return the selected points of group k: class, g1, weight, target."""
        weight, rho = (float(value) for value in self.batch.groups[:, k])
        if self.batch.given:
            sign, shares, target = self._given(rho)
            return sign, 0 * sign, weight * shares, target
        s, g, w, target = self.groups[k].selected(SELECTED_RULE)
        return s, g, w * weight, target

    def _rarer(self, target: Array, weight: Array) -> float:
        """Return the distance of the mean target from the nearer class, relative to the distance
        between the classes; 1/2 if targets lie outside of the interval between the classes.
        """
        low, high = self.loss.classes
        if target.min() < low or target.max() > high:
            return 0.5
        return float(min(weight @ (target - low), weight @ (high - target)) / (high - low))


Averages = CompiledAverages | GenericAverages


def averages_of(
    t: int, loss: Loss, labeler: Labeler, labels: Labelling, batch: Batch, room: Room
) -> Averages:
    """Return the averages of a step: compiled ones if loss and labeler have them."""
    if batch.loss == OTHER:
        return GenericAverages(t, loss, labeler, labels, batch)
    return CompiledAverages(labels, batch, room)


def _best_constant(loss: Loss, target: Array, weight: Array) -> float:
    """Return the bias that minimises the loss of a model without weights."""

    def slope(bias: float) -> float:
        return float(weight @ loss.slope(target, np.full(target.size, bias)))

    lo, hi = -1.0, 1.0
    while slope(lo) > 0 and lo > -600:
        lo *= 2
    while slope(hi) < 0 and hi < 600:
        hi *= 2
    inside = slope(lo) < 0 < slope(hi)
    return float(brentq(slope, lo, hi)) if inside else lo if slope(lo) >= 0 else hi
