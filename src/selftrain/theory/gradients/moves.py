"""The averages of a solved step and how they move, for every loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel
from ..averages.batch import At, batch_averages
from ..averages.compiled import CompiledAverages
from ..averages.generic.averages import GenericAverages
from ..averages.generic.panels import MASS, SHARP
from ..averages.record import blank, named
from ..geometry.modes import FIRST
from ..tolerances import REFINED
from .edges import LABELS, edges_for, fill_edges, fill_sharp
from .equations import Moves

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


def moves_of(averages: CompiledAverages | GenericAverages, at: At, exponent: float) -> Moves | None:
    """The averages of a step at its solution and how they move; None if they are not finite."""
    if isinstance(averages, GenericAverages):
        return _of_any(averages, at, exponent)
    labels, batch, room = averages.labels, averages.batch, averages.room
    groups = len(labels.roots)
    if batch_averages(at, labels, batch, exponent, LABELS, room) <= 0:
        return None
    edges, sharp, gain = edges_for(groups), np.zeros((groups, 5)), 0.0
    if not batch.given:
        if not fill_edges(at, labels, batch, exponent, room.moments, edges):
            return None
        gain = fill_sharp(labels, batch.sharpness, room.moments, sharp)
    return Moves(room.moments, batch.groups[1], gain, sharp, edges)


def _of_any(averages: GenericAverages, at: At, exponent: float) -> Moves | None:
    """The same for any loss and any labeler, whose labels are differentiated by differences."""
    batch, n = averages.batch, len(averages.labels.roots)
    if batch.given:
        found = averages.at(at, exponent)
        if found is None:
            return None
        return Moves(found[0], batch.groups[1], 0.0, np.zeros((n, 5)), edges_for(n))
    moments, sharp, edges = blank(n), np.zeros((n, 5)), []
    for k, group in enumerate(averages.groups):
        new = averages.new_fields(k, at)
        integrals, _ = group.integrals(new, exponent, with_labels=True)
        if not np.isfinite(integrals).all():
            return None
        share = float(integrals[MASS])
        moments[k] = named(integrals)
        moments[k].share = batch.groups[0, k] * share
        sharp[k] = integrals[SHARP]
        edges.append(group.edges(new, exponent, share))
    return Moves(moments, batch.groups[1], 1.0, sharp, _table(edges))


def _table(edges: list[Array]) -> Array:
    """The edges of all groups, as many for each: a label jumps at the same logits in all."""
    return np.array(edges)
