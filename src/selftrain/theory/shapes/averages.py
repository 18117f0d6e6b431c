r"""The averages of every group of points of a step: compiled for the logistic loss, in numpy for
any other.

A group sees the logits $\tilde h = s m' + B' + \sqrt{q'_k}\,g_1$ and $h = \gamma_0\tilde h + s(m -
\gamma_0 m') + (B - \gamma_0 B') + \dots$, which is what the averages of a sphere of variance 1 see
with the norm $\sqrt{q'_k}$: the rules and the averages are those of `engines`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...labelers import Labeler
from ...losses import Loss
from ...runtime.kernels import kernel
from ..engines.generic.averages import gather
from ..engines.generic.engine import MASS, GenericStage
from ..engines.generic.noise import Effort, Fields, noise_averages
from ..engines.logistic.averages import logistic_averages
from ..engines.logistic.logits import Logits
from ..quadrature.outer import NewModel, outer_rule
from ..step.averages import BLANK, Extra, named
from ..step.given import Given
from ..tolerances import EMPTY_LOG_SHARE
from .equations import Labelling
from .modes import BIAS


class PointSet(NamedTuple):
    r"""A set of points: $\alpha$, share of positives, threshold on $|\tilde h|$, sharpness of the
    labels.
    """

    alpha: float
    rho: float
    threshold: float
    sharpness: float


class At(NamedTuple):
    r"""Where averages are taken: the unknowns, the fields of the groups, the anchor $\gamma_0$ of
    the fields.
    """

    x: Any
    fields: Any
    anchor: float


class Room(NamedTuple):
    """Where averages are put: nodes of the rules, averages and weights of the groups."""

    nodes: Any
    moments: Any
    shares: Any


@kernel(error_model="numpy")
def logistic_groups(
    at: At, labels: Labelling, points: PointSet, exponent: float, extra: Extra | None, room: Room
) -> int:
    """Averages and weights of the groups of a step; the nodes used, -1 if too many, 0 if nothing is
    selected.
    """
    x, fields, anchor = at
    nodes, moments, shares = room
    groups = moments.shape[0]
    used = 0
    for k in range(groups):
        part = 1.0 if groups == 1 else (1.0 - points.rho if k == 0 else points.rho)
        rho = points.rho if groups == 1 else float(k)
        root = labels.roots[k]
        wide = fields[1 + groups + k, 0]
        c = fields[1 + 2 * groups + k, 0]
        m = fields[0, 0] + anchor * labels.m
        psi = fields[1 + k, 0] + anchor
        bias = x[BIAS] + labels.gamma * labels.bias
        given = Given(
            root, labels.m / root, 0.0, labels.bias, points.alpha, rho, 1.0, 0.0,
            points.threshold / root, points.sharpness, False,
        )  # fmt: skip
        new = NewModel(abs(psi) * root, m, bias, wide, c)
        count, log_share = outer_rule(given, new, exponent, nodes)
        if count < 0:
            return -1
        if count == 0 or not log_share > EMPTY_LOG_SHARE:
            return 0
        shift = fields[0, 0] + (anchor - labels.gamma) * labels.m
        tilt = (fields[1 + k, 0] + (anchor - labels.gamma)) * root
        logits = Logits(labels.gamma, points.sharpness, shift, tilt, x[BIAS], wide, c)
        moments[k] = BLANK[0]
        more = logistic_averages(nodes, count, logits, exponent, extra, moments[k])
        if more < 0:
            return -1
        used += more
        shares[k] = points.alpha * part * math.exp(log_share)
    return used


@kernel(error_model="numpy")
def logistic_labelled(
    at: At, points: PointSet, exponent: float, extra: Extra | None, room: Room
) -> int:
    """The same for labelled points, step 0."""
    x, fields = at.x, at.fields
    nodes, moments, shares = room
    groups = moments.shape[0]
    used = 0
    for k in range(groups):
        rho = points.rho if groups == 1 else float(k)
        count = 0
        for side in range(2):
            s = 1.0 - 2.0 * side
            weight = rho if side == 0 else 1.0 - rho
            if weight > 0.0:
                nodes[0, count] = s
                nodes[1, count] = 0.0
                nodes[2, count] = weight
                nodes[3, count] = s
                count += 1
        wide, c = fields[1 + groups + k, 0], fields[1 + 2 * groups + k, 0]
        logits = Logits(0.0, math.inf, fields[0, 0], 0.0, x[BIAS], wide, c)
        moments[k] = BLANK[0]
        used += logistic_averages(nodes, count, logits, exponent, extra, moments[k])
        part = 1.0 if groups == 1 else (1.0 - points.rho if k == 0 else points.rho)
        shares[k] = points.alpha * part
    return used


class GenericGroup(GenericStage):
    """The averages of one group of a step for any loss and labeler.

    Arguments:
        loss, labeler: of the problem and the recipe.
        t: the step.
        labels: the labelling model.
        k: which group.
        points: the batch.
    """

    def __init__(
        self, loss: Loss, labeler: Labeler, t: int, labels: Labelling, k: int, points: PointSet
    ):
        root = float(labels.roots[k])
        rho = points.rho if len(labels.roots) == 1 else float(k)
        super().__init__(
            loss, labeler, t, np.array([root, labels.m / root, 0.0, labels.bias]),
            np.array([1.0, rho, 1.0]), 1.0, points.threshold / root, points.sharpness, False,
        )  # fmt: skip

    def averages(self, z: Array, exponent: float) -> tuple[Any, float, int]:
        r"""Averages, selected share and nodes at $z = (m, B, \psi\sqrt{q'}, $ noise, c)."""
        integrals, points = self._integrals(z, exponent)
        return named(integrals), float(integrals[MASS]), points

    def selected(self, exponent: float) -> tuple[Array, Array, Array, Array, float]:
        """Selected points: class, g1, weight (sum one), target; and the selected share."""
        return self._points(self._cuts(exponent))

    def _fields(self, z: Array, s: Array, g: Array, target: Array, weight: Array) -> Fields:
        m, bias, tilt, wide, c = z
        return Fields(target, s * m + bias + tilt * g, weight, wide, c)


def generic_labelled(loss: Loss, z: Array, rho: float, exponent: float, effort: Effort) -> Any:
    """The averages of a group of labelled points for any loss, at z = (m, B, 0, noise, c)."""
    m, bias, _, wide, c = z
    low, high = loss.classes
    sign, target = np.array([1.0, -1.0]), np.array([high, low])
    share = np.array([rho, 1 - rho])
    fields = Fields(target, sign * m + bias, share, wide, c)
    inner, _ = noise_averages(loss, fields, exponent, effort=effort)
    return named(gather(sign, 0 * sign, share, inner))
