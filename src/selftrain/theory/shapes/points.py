"""The averages of a step as its stage asks for them: for the logistic loss, and for any other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays import Array
from ...labelers import Labeler
from ...losses import Loss
from ..engines.generic.large_ridge import at_large_ridge
from ..engines.generic.noise import Effort
from ..step.averages import Extra, blank
from ..step.equations import BIAS as OLD_BIAS
from ..tolerances import CAPACITY, EMPTY_SHARE
from .averages import (
    At,
    GenericGroup,
    PointSet,
    Room,
    generic_labelled,
    logistic_groups,
    logistic_labelled,
)
from .equations import Labelling
from .modes import BIAS

ROUGH = 16.0
"""Exponent of the rule that starts and label masses are taken from."""


class LogisticAverages:
    """Logistic loss, soft or hard labels (infinite sharpness)."""

    def __init__(self, first: bool, labels: Labelling, points: PointSet, nodes: Array):
        self.first, self.labels, self.points, self.nodes = first, labels, points, nodes
        self.groups = len(labels.roots)
        self._moments, self._shares = blank(self.groups), np.zeros(self.groups)

    def at(
        self, x: Array, fields: Array, anchor: float, exponent: float, with_loss: bool = False
    ) -> tuple[Any, Array, int] | None:
        moments, shares = self._moments, self._shares
        here, room = At(x, fields, anchor), Room(self.nodes, moments, shares)
        extra = Extra(loss=True, labels=False) if with_loss else None
        if self.first:
            used = logistic_labelled(here, self.points, exponent, extra, room)
        else:
            used = logistic_groups(here, self.labels, self.points, exponent, extra, room)
        return (moments, shares, used) if used > 0 else None

    def label_mass(self) -> float:
        """The share of the rarer class among the selected labels; NaN if nothing is selected."""
        found = self._without_weights(0.0)
        if found is None:
            return math.nan
        positive = 0.5 - found[1] @ found[0]["f"] / found[1].sum()
        return float(min(positive, 1.0 - positive))

    def explicit(self) -> tuple[Array, Array, float]:
        found = self._without_weights(0.0)
        assert found is not None
        positive = 0.5 - float(found[1] @ found[0]["f"] / found[1].sum())
        positive = min(max(positive, 1e-14), 1 - 1e-14)
        bias = math.log(positive / (1 - positive))
        if not self.first and not math.isnan(self.fixed_bias):
            bias = self.fixed_bias
        found = self._without_weights(bias)
        assert found is not None
        return (
            np.column_stack([found[0]["sf"], found[0]["gf"], found[0]["ff"], found[0]["k"]]),
            found[1].copy(),
            bias,
        )

    fixed_bias = math.nan
    """The bias if it is fixed."""

    def _without_weights(self, bias: float) -> tuple[Any, Array, int] | None:
        x = np.zeros(2)
        x[BIAS] = bias - self.labels.gamma * self.labels.bias
        return self.at(x, _no_fields(self.labels.roots), 0.0, ROUGH)


class GenericAverages:
    """Any loss and any labeler."""

    def __init__(
        self,
        t: int,
        loss: Loss,
        labeler: Labeler,
        labels: Labelling,
        points: PointSet,
        fixed_bias: float,
    ):
        self.loss, self.labels, self.points, self.fixed_bias = loss, labels, points, fixed_bias
        self.groups, self.first, self.effort = len(labels.roots), t == 0, Effort(t)
        parts = [1 - points.rho, points.rho] if self.groups == 2 else [1.0]
        self._parts = points.alpha * np.array(parts)
        self._of = [
            None if self.first else GenericGroup(loss, labeler, t, labels, k, points)
            for k in range(self.groups)
        ]

    def at(
        self, x: Array, fields: Array, anchor: float, exponent: float, with_loss: bool = False
    ) -> tuple[Any, Array, int] | None:
        moments, shares, used = blank(self.groups), self._parts.copy(), 0
        n = self.groups
        for k, group in enumerate(self._of):
            m = fields[0, 0] + anchor * self.labels.m
            tilt = (fields[1 + k, 0] + anchor) * self.labels.roots[k]
            z = np.array([m, x[BIAS], tilt, fields[1 + n + k, 0], fields[1 + 2 * n + k, 0]])
            if group is None:
                rho = self.points.rho if n == 1 else float(k)
                moments[k] = generic_labelled(self.loss, z, rho, exponent, self.effort)
                more = 2
            else:
                moments[k], share, more = group.averages(z, exponent)
                shares[k] *= share
            used += more
        return (moments, shares, used) if np.isfinite(moments.f).all() else None

    def label_mass(self) -> float:
        """Distance of the mean selected target from the nearer class, as a share; NaN if none is
        selected.
        """
        s, _, w, target = self._selected()
        if s.size == 0 or w.sum() < EMPTY_SHARE:
            return math.nan
        low, high = self.loss.classes
        if target.min() < low or target.max() > high:
            return 0.5
        w = w / w.sum()
        return float(min(w @ (target - low), w @ (high - target)) / (high - low))

    def explicit(self) -> tuple[Array, Array, float]:
        s, g, w, target = self._selected()
        fixed_bias = None if math.isnan(self.fixed_bias) else self.fixed_bias
        bias = float(
            at_large_ridge(self.loss, s, g, w, target, np.ones(s.size), 1.0, fixed_bias)[OLD_BIAS]
        )
        at = np.full(s.size, bias)
        f, k = self.loss.slope(target, at), self.loss.curvature(target, at)
        rows, shares = [], []
        for group in range(self.groups):
            mine = np.ones(s.size, dtype=bool) if self.groups == 1 else (s > 0) == bool(group)
            share = float(w[mine].sum())
            part = w[mine] / share
            columns = (s * f, g * f, f * f, k)
            rows.append([float(part @ column[mine]) for column in columns])
            shares.append(share)
        return np.array(rows), np.array(shares), bias

    def _selected(self) -> tuple[Array, Array, Array, Array]:
        """Selected points of all groups: class, g1, weight, target."""
        low, high = self.loss.classes
        if self.first:
            sign = np.array([1.0, -1.0])
            weight = self.points.alpha * np.array([self.points.rho, 1 - self.points.rho])
            return sign, 0 * sign, weight, np.array([high, low])
        parts = []
        for group, part in zip(self._of, self._parts, strict=True):
            assert group is not None
            s, g, w, target, share = group.selected(ROUGH + 8.0)
            keep = w > 0
            parts.append(np.array([s, g, w * share * part, target])[:, keep])
        s, g, w, target = np.concatenate(parts, axis=1)
        return s, g, w, target


def _no_fields(roots: Array) -> Array:
    """The fields of a model without weights; its noise is small against that of the labels."""
    groups = len(roots)
    fields = np.zeros((1 + 3 * groups, 1))
    fields[1 + groups : 1 + 2 * groups, 0] = 1e-9 * roots
    fields[1 + 2 * groups :] = 1e-12
    return fields


def node_store() -> Array:
    """Room for the nodes of a rule."""
    return np.empty((4, CAPACITY))
