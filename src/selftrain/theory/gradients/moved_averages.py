r"""The averages of a solved step and their derivatives, for every loss.

An *edge* is a point at which the integrand jumps: at the thresholds of the selection, and where
labels jump. In a group it is at the previous noise $g_e = (\tilde h_e - s m' - B')/\sqrt{q'_k}$.
The row of an edge has the decreases of f, $f^2$ and k across it, averaged over the new noise, and
the derivatives of the logit $\tilde h_e$ in the threshold and in the sharpness.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel
from ..averages.batch import (
    SQUARED,
    At,
    Batch,
    CompiledAverages,
    Labelling,
    Room,
    batch_averages,
    logistic_averages,
    logits_of,
)
from ..averages.generic.averages import Averages
from ..averages.generic.panels import MASS, SHARP
from ..averages.quadrature.rules import Logits
from ..averages.record import BLANK, Extra, blank, named
from ..step.equations import stiffness_of
from ..tolerances import REFINED

LABELS = Extra(loss=False)
"""Request for the averages that derivatives need besides those of the equations."""

E_CLASS, E_PLACE, E_WEIGHT, E_F, E_FF, E_K, E_LIMIT, E_SHARPNESS = range(8)
r"""Columns of an edge: class s, position $g_e$, weight, decreases of the averages of f, f^2 and k
across it, derivatives of its logit in the limit on $|\tilde h|$ and in the sharpness.
"""

SMALL_STEP = 1e-4
r"""Below this $\lambda/(\lambda + \hat Q)$ the change of the weights is so small that unknowns of
the solver's tolerance are too inaccurate for derivatives.
"""

LARGE_LOGITS = 5.0
"""Beyond this scale of the old logits the averages of k' are small differences of large terms and
need a finer rule.
"""

STRONG_PROX = 1e3
"""Beyond this strength c the proximal map bends sharply, and k' is concentrated at the bends: its
averages need a finer rule than those of f, with twice the refinement.
"""


class AllWrong(NamedTuple):
    """Buffer for averages over given labels that are all wrong, and proportions of 1 for them."""

    moments: Any
    shares: Any


def all_wrong_for(groups: int) -> AllWrong:
    """Return the buffers for a step with this many groups."""
    return AllWrong(blank(groups), np.ones(2))


def edges_for(groups: int) -> Array:
    """Return a buffer for the edges of a step with soft or hard labels: two limits, two classes."""
    return np.zeros((groups, 4, 8))


@kernel(allocates=False)
def is_small(x: Any, ridge: float, softness: Any) -> bool:
    """Return whether a step changes the weights so little that its unknowns must be refined."""
    return ridge < SMALL_STEP * (ridge + stiffness_of(x, softness))


@kernel(allocates=False)
def rule_of(exponent: float, small: bool, first: bool, roots: Any, fields: Any) -> float:
    """Return the exponent of the rule for derivatives: `exponent`, or a larger one for steps that
    are small, the first, have large old logits (`roots`) or a strong proximal map (`fields`).
    """
    groups = roots.shape[0]
    large = small or first
    for k in range(groups):
        if fields[1 + 2 * groups + k, 0] > STRONG_PROX:
            return exponent + 2.0 * REFINED
        large = large or roots[k] > LARGE_LOGITS
    return exponent + REFINED if large else exponent


@kernel(allocates=False)
def fill_edges(
    at: At, labels: Labelling, batch: Batch, exponent: float, room: Room, found: Any, edges: Any
) -> bool:
    """Fill the edges of every group, for labels that are soft or hard; return False if a rule would
    need too many nodes. `found` is a buffer for the averages at one edge.

    Without a threshold and with soft labels there is no jump; the edges at logit 0 then give the
    derivative in the threshold, which opens a gap there.
    """
    groups, nodes, moments = labels.roots.shape[0], room.nodes, room.moments
    together = batch.limit == 0.0 and not math.isinf(batch.sharpness)
    e = found[0]
    for k in range(groups):
        rho, selected = batch.groups[1, k], moments[k].share / batch.groups[0, k]
        root, logits = labels.roots[k], logits_of(at, labels, batch.sharpness, k)
        for place in range(2):
            side = 1.0 - 2.0 * place
            # One rule for both classes: the average of class s is (E[X] + s E[s X])/2.
            for i in range(2):
                s = 1.0 - 2.0 * i
                nodes[0, i] = s
                nodes[1, i] = (side * batch.limit - s * labels.m - labels.bias) / root
                nodes[2, i] = 1.0
                nodes[3, i] = side * max(batch.limit, 1e-300)
            if not (together and place == 1):
                found[0] = BLANK[0]
                if batch.loss == SQUARED:
                    _squared(logits, nodes, side * batch.limit, side, e)
                elif logistic_averages(2, logits, exponent, LABELS, room, e) < 0:
                    return False
            for i in range(2):
                s, g, j = nodes[0, i], nodes[1, i], 2 * place + i
                weight = (rho if s > 0.0 else 1.0 - rho) * math.exp(-0.5 * g * g)
                edges[k, j, E_CLASS], edges[k, j, E_PLACE] = s, g
                edges[k, j, E_LIMIT], edges[k, j, E_SHARPNESS] = side, 0.0
                edges[k, j, E_WEIGHT] = weight / (math.sqrt(2.0 * math.pi) * selected)
                edges[k, j, E_F] = -0.5 * side * (e.f + s * e.sf)
                edges[k, j, E_FF] = -0.5 * side * (e.ff + s * e.sff)
                edges[k, j, E_K] = -0.5 * side * (e.k + s * e.sk)
    return True


@kernel(allocates=False)
def fill_wrong(
    at: At, labels: Labelling, batch: Batch, exponent: float, room: Room, wrong: AllWrong
) -> bool:
    r"""Fill the fields `y`, `sy`, `fy`, `ky` of the records, which have the derivatives in a
    pseudo-label, with those of averages over given labels in the proportion $\eta$ of wrong ones;
    return False if a rule would need too many nodes.

    Averages are linear in $\eta$, so $(1 - \eta)\,\partial E[X]/\partial\eta$ is E[X] with all
    labels wrong minus E[X]. The caller divides by the common factor $1 - \eta$.
    """
    for k in range(room.moments.shape[0]):
        wrong.moments[k] = room.moments[k]
    every = Batch(batch.groups, batch.limit, batch.sharpness, True, batch.loss, wrong.shares)
    if batch_averages(at, labels, every, exponent, LABELS, room) <= 0:
        return False
    for k in range(room.moments.shape[0]):
        other, e = room.moments[k], wrong.moments[k]
        e.y, e.sy, e.gy, e.ky = other.f - e.f, other.sf - e.sf, 0.0, other.k - e.k
        e.fy = 0.5 * (other.ff - e.ff)  # f times the change of f
        room.moments[k] = wrong.moments[k]
    return True


@kernel(allocates=False)
def _squared(logits: Logits, nodes: Any, logit: float, side: float, e: Any) -> None:
    """Add the averages of the squared loss at one previous logit, over one node of each class."""
    gain = 1.0 / (1.0 + logits.strength)
    if math.isinf(logits.sharpness):
        off = logits.base * logit - side
    else:
        off = (logits.base - logits.sharpness) * logit
    for i in range(2):
        s, g = nodes[0, i], nodes[1, i]
        f = gain * (off + s * logits.shift + logits.bias + logits.tilt * g)
        ff = f * f + (gain * logits.noise) ** 2
        e.f += f
        e.sf += s * f
        e.ff += ff
        e.sff += s * ff
        e.k += gain
        e.sk += s * gain


def moves_of(
    averages: Averages, at: At, exponent: float
) -> tuple[Any, Array, Array, float, bool] | None:
    """Return the averages of a step at its solution and their derivatives: `moments`, `sharp` and
    `edges` of a `SolvedStep`, `gain` and `soft` of its `StepNumbers`; None if they are not finite.

    Labels of losses and labelers without compiled averages are differentiated by finite
    differences.
    """
    batch, n = averages.batch, len(averages.labels.roots)
    moments, sharp, edges = blank(n), np.zeros((n, 5)), edges_for(n)
    if isinstance(averages, CompiledAverages):
        labels, room = averages.labels, averages.room
        if batch_averages(at, labels, batch, exponent, LABELS, room) <= 0:
            return None
        if batch.given:
            moved = fill_wrong(at, labels, batch, exponent, room, all_wrong_for(n))
        else:
            moved = fill_edges(at, labels, batch, exponent, room, BLANK.copy(), edges)
        if not moved:
            return None
        soft = not batch.given and math.isfinite(batch.sharpness)
        return room.moments, sharp, edges, float(batch.sharpness) if soft else 0.0, soft
    if batch.given:
        found, wrong = averages.at(at, exponent), averages.all_wrong().at(at, exponent)
        if found is None or wrong is None:
            return None
        e, other = found[0], wrong[0]
        e.y, e.sy, e.ky = other.f - e.f, other.sf - e.sf, other.k - e.k  # as in `fill_wrong`
        e.fy = 0.5 * (other.ff - e.ff)
        return e, sharp, edges, 0.0, False
    rows = []
    for k, group in enumerate(averages.groups):
        new = averages.new_fields(k, at)
        integrals, _ = group.integrals(new, exponent, with_labels=True)
        if not np.isfinite(integrals).all():
            return None
        share = float(integrals[MASS])
        moments[k] = named(integrals)
        moments[k].share = batch.groups[0, k] * share
        sharp[k] = integrals[SHARP]
        rows.append(group.edges(new, exponent, share))
    # A label jumps at the same logits in all groups, so that all have the same number of edges.
    return moments, sharp, np.array(rows), 1.0, False
