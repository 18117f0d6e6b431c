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
from ..engines.squared.closed_form import Sides, averages, sides
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

    def __init__(
        self,
        first: bool,
        labels: Labelling,
        points: PointSet,
        nodes: Array,
        fixed_bias: float = math.nan,
    ):
        self.first, self.labels, self.points, self.nodes = first, labels, points, nodes
        self.fixed_bias = fixed_bias
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

    def _without_weights(self, bias: float) -> tuple[Any, Array, int] | None:
        x = np.zeros(2)
        x[BIAS] = bias - self.labels.gamma * self.labels.bias
        return self.at(x, _no_fields(self.labels.roots), 0.0, ROUGH)


class SquaredAverages:
    """Squared loss, soft or hard labels (infinite sharpness): truncated Gaussian moments."""

    def __init__(self, first: bool, labels: Labelling, points: PointSet, fixed_bias: float):
        self.first, self.labels, self.points, self.fixed_bias = first, labels, points, fixed_bias
        self.groups = len(labels.roots)
        self._sides = [self._sides_of(k) for k in range(self.groups)]
        parts = [1 - points.rho, points.rho] if self.groups == 2 else [1.0]
        mass = [float(piece.zeroth.sum()) for piece in self._sides]
        self._shares = points.alpha * np.array(parts) * mass

    def _sides_of(self, k: int) -> Sides:
        """The pieces of a group; true labels have no threshold, and do not know $g_1$."""
        labels, points = self.labels, self.points
        rho = points.rho if self.groups == 1 else float(k)
        if self.first:
            sign, share = np.array([1.0, -1.0]), np.array([rho, 1.0 - rho])
            return Sides(sign, share, 0 * share, share, -sign, 0 * share)
        return sides(
            labels.m, float(labels.roots[k]), labels.bias, rho, points.threshold, points.sharpness,
            labels.gamma,
        )  # fmt: skip

    def at(
        self, x: Array, fields: Array, anchor: float, exponent: float, with_loss: bool = False
    ) -> tuple[Any, Array, int] | None:
        moments, n, labels = blank(self.groups), self.groups, self.labels
        if not self._shares.sum() > EMPTY_SHARE:
            return None
        for k, piece in enumerate(self._sides):
            share = float(piece.zeroth.sum())
            if share == 0.0:
                return None
            shift = fields[0, 0] + (anchor - labels.gamma) * labels.m
            tilt = (fields[1 + k, 0] + (anchor - labels.gamma)) * labels.roots[k]
            d, kappa = piece.sign * shift + x[BIAS] + piece.constant, tilt + piece.slope
            weights = (piece.zeroth / share, piece.first / share, piece.second / share)
            noise, c = fields[1 + n + k, 0], fields[1 + 2 * n + k, 0]
            e = averages(piece.sign, *weights, d, kappa, noise, c)
            e.loss = 0.5 * e.ff
            moments[k] = e
        return moments, self._shares, 4 * n

    def label_mass(self) -> float:
        """The share of the rarer side among hard labels; soft ones have no class to collapse into.
        NaN if nothing is selected.
        """
        total = float(self._shares.sum())
        if not total > EMPTY_SHARE * self.points.alpha:
            return math.nan
        if not math.isinf(self.points.sharpness):
            return 0.5
        parts = zip(self._shares, self._sides, strict=True)
        right = sum(share * piece.zeroth[::2].sum() / piece.zeroth.sum() for share, piece in parts)
        return float(min(right, total - right) / total)

    def explicit(self) -> tuple[Array, Array, float]:
        """See `stage.Averages`: without weights the best bias is the mean label."""
        x, fields = np.zeros(2), _no_fields(self.labels.roots)
        if math.isnan(self.fixed_bias):
            found = self.at(x, fields, 0.0, ROUGH)
            assert found is not None
            x[BIAS] = -float(found[1] @ found[0].f / (found[1] @ found[0].k))
        else:
            x[BIAS] = self.fixed_bias - self.labels.gamma * self.labels.bias
        found = self.at(x, fields, 0.0, ROUGH)
        assert found is not None
        e = found[0]
        bias = float(x[BIAS] + self.labels.gamma * self.labels.bias)
        return np.column_stack([e.sf, e.gf, e.ff, e.k]), found[1].copy(), bias


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
