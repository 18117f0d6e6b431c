"""The averages of a solved step and how they move, for every loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel
from ..engines.generic.engine import MASS, SHARP
from ..shapes.averages import At, GenericGroup, Room, logistic_groups, logistic_labelled
from ..shapes.modes import BIAS, FIRST
from ..shapes.points import GenericAverages, LogisticAverages, SquaredAverages
from ..step.averages import Extra, blank, named
from ..tolerances import REFINED
from .edges import COLUMNS, edges_for, fill_edges, fill_sharp
from .equations import Moves

LABELS = Extra(loss=False, labels=True)

SMALL_STEP = 1e-4
r"""Below this $\lambda/(\lambda + \hat Q)$ a step changes the weights by less than the solver's
tolerance can resolve.
"""

LARGE_LOGITS = 5.0
"""Beyond this scale of the old logits the averages of k' are small differences and need a finer
rule.
"""

STRONG_PROX = 1e3
"""Beyond this strength c the prox bends sharply, and k' lives in its bends: averages of f are right
long before those of k' are. They take twice the refinement.
"""


@kernel(error_model="numpy")
def is_small(x: Any, ridge: float, softness: Any) -> bool:
    """Whether a step changes the weights by so little that its unknowns are to be made more
    exact.
    """
    groups = softness.shape[0]
    stiffness = 0.0
    for k in range(groups):
        stiffness += math.exp(x[FIRST + groups + k]) * softness[k]
    return ridge < SMALL_STEP * (ridge + stiffness)


@kernel(error_model="numpy")
def rule_of(exponent: float, small: bool, first: bool, roots: Any, fields: Any) -> float:
    """The exponent of the rule that derivatives are taken on."""
    groups = roots.shape[0]
    large = small or first
    for k in range(groups):
        if fields[1 + 2 * groups + k, 0] > STRONG_PROX:
            return exponent + 2.0 * REFINED
        large = large or roots[k] > LARGE_LOGITS
    return exponent + REFINED if large else exponent


def moves_of(
    averages: Any, x: Array, fields: Array, anchor: float, exponent: float
) -> Moves | None:
    """The averages of a step at its solution and how they move; None if they are not finite."""
    if isinstance(averages, GenericAverages):
        return _of_any(averages, x, fields, anchor, exponent)
    labels, points, groups = averages.labels, averages.points, averages.groups
    at, squared = At(x, fields, anchor), isinstance(averages, SquaredAverages)
    if squared:
        found = averages.at(x, fields, anchor, exponent)
        if found is None:
            return None
        moments, shares, _ = found
    else:
        assert isinstance(averages, LogisticAverages)
        moments, shares = blank(groups), np.zeros(groups)
        room = Room(averages.nodes, moments, shares)
        if averages.first:
            used = logistic_labelled(at, points, exponent, LABELS, room)
        else:
            used = logistic_groups(at, labels, points, exponent, LABELS, room)
        if used <= 0:
            return None
    edges, sharp, gain = edges_for(groups), np.zeros((groups, 5)), 0.0
    if not averages.first:
        if not fill_edges(at, labels, points, squared, exponent, shares, edges):
            return None
        gain = fill_sharp(labels, points.sharpness, moments, sharp)
    return Moves(moments, shares, np.full(groups, points.rho), gain, sharp, edges)


def _of_any(
    averages: GenericAverages, x: Array, fields: Array, anchor: float, exponent: float
) -> Moves | None:
    """The same for any loss and any labeler, whose labels are differentiated by differences."""
    n, labels, rho = averages.groups, averages.labels, averages.points.rho
    if averages.first:
        found = averages.at(x, fields, anchor, exponent)
        if found is None:
            return None
        return Moves(*found[:2], np.full(n, rho), 0.0, np.zeros((n, 5)), edges_for(n))
    moments, shares, sharp, edges = blank(n), averages._parts.copy(), np.zeros((n, 5)), []
    for k, group in enumerate(averages._of):
        assert isinstance(group, GenericGroup)
        root = float(labels.roots[k])
        m, tilt = fields[0, 0] + anchor * labels.m, (fields[1 + k, 0] + anchor) * root
        z = np.array([m, x[BIAS], tilt, fields[1 + n + k, 0], fields[1 + 2 * n + k, 0]])
        integrals, _ = group._integrals(z, exponent, with_labels=True)
        if not np.isfinite(integrals).all():
            return None
        moments[k] = named(integrals)
        shares[k] *= integrals[MASS]
        sharp[k] = integrals[SHARP]
        rows = group._edges(z, exponent, float(integrals[MASS]))
        edges.append(np.column_stack([rows[:, :6], rows[:, 7] / root, rows[:, 8]]))
    table = np.array(edges).reshape(n, -1, COLUMNS)
    return Moves(moments, shares, np.full(n, rho), 1.0, sharp, table)
