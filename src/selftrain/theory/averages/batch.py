r"""The averages of a step over its batch, compiled, for the logistic and the squared loss.

A batch consists of groups of samples: a class with its own covariance, or both classes if they
share one. The logits of group k are $\tilde h = s m' + B' + \sqrt{q'_k}\,g_1$ under the model that
makes the labels (the *labelling model*, of the step before), and $h = \gamma_0\tilde h + s(m -
\gamma_0 m') + (B - \gamma_0 B') + \dots$ under the new one. `step` passes the fields of every group
and reads one record of averages (`record`) for each.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...labelers import HardLabels, Labeler, SoftLabels
from ...losses import Logistic, Loss, Squared
from ...runtime.kernels import kernel
from ..geometry.modes import BIAS, FIRST, HAT_M
from ..tolerances import (
    CAPACITY,
    EMPTY_LOG_SHARE,
    PANEL_NOISE,
    START_RULE,
    STILL,
)
from .noise_nodes import over_noise_nodes
from .prox_panels import TABLE, over_prox_panels
from .quadrature.rules import SINGULAR, Logits, OldModel, given_labels, inner_rule, outer_rule
from .record import BLANK, Extra, blank
from .squared import squared_averages

LOGISTIC, SQUARED, OTHER = range(3)
"""Kinds of losses: the two whose averages are compiled, and any other."""

TINY = 1e-290
"""Added to a conjugate before its logarithm is taken, because it may be zero."""


class Batch(NamedTuple):
    r"""The samples of a step and their labels.

    Attributes:
        groups: samples per feature $\alpha p_k$ of every group (row 0), and its proportion of s = 1
            (row 1).
        limit: samples with $|\tilde h|$ up to this are rejected.
        sharpness: sharpness of the labels; infinite for hard and for given ones.
        given: whether the labels are given (step 0).
        loss: `LOGISTIC`, `SQUARED` or `OTHER`.
        wrong: proportions of wrong given labels in the negative and the positive class.
    """

    groups: Any
    limit: float
    sharpness: float
    given: bool
    loss: int
    wrong: Any


class Labelling(NamedTuple):
    r"""The labelling model on a batch: $m'$, $\sqrt{q'_k}$ of every group, $B'$.

    `gamma` is $\gamma_0$: the unknowns are differences from $\gamma_0$ times this model.
    """

    m: float
    roots: Any
    bias: float
    gamma: float


class At(NamedTuple):
    r"""The fields at which averages are computed.

    Attributes:
        lift: $B - \gamma_0 B'$.
        fields: fields of the groups (`geometry.modes`), minus `anchor` times the old weights.
        anchor: a of `geometry.modes`.
    """

    lift: float
    fields: Any
    anchor: float


class Room(NamedTuple):
    r"""Buffers for averages and intermediate results.

    Attributes:
        nodes: nodes of the rules; rows s, $g_1$, weight, $\tilde h$, then nodes and weights of
            $g_2$.
        moments: a record of averages for every group.
        near: singularities of the integrand.
        points: the table of `noise_nodes` or `prox_panels`.
        still: the fields of a model without weights.
    """

    nodes: Any
    moments: Any
    near: Any
    points: Any
    still: Any


def room_for(groups: int) -> Room:
    """Return buffers for the averages of a batch."""
    return Room(
        np.empty((6, CAPACITY)), blank(groups), np.empty(SINGULAR), np.empty(TABLE),
        np.zeros((1 + 3 * groups, 1)),
    )  # fmt: skip


def kind_of(loss: Loss, labeler: Labeler) -> int:
    """Return the kind of a loss: `OTHER` unless its averages with this labeler are compiled."""
    if type(labeler) not in (SoftLabels, HardLabels):
        return OTHER
    return {Logistic: LOGISTIC, Squared: SQUARED}.get(type(loss), OTHER)


@kernel(allocates=False)
def logits_of(at: At, labels: Labelling, sharpness: float, k: int) -> Logits:
    """Return the coefficients of the new logits of group k."""
    groups, change = labels.roots.shape[0], at.anchor - labels.gamma
    return Logits(
        labels.gamma, sharpness, at.fields[0, 0] + change * labels.m,
        (at.fields[1 + k, 0] + change) * labels.roots[k], at.lift, at.fields[1 + groups + k, 0],
        at.fields[1 + 2 * groups + k, 0],
    )  # fmt: skip


@kernel(allocates=False)
def batch_averages(
    at: At, labels: Labelling, batch: Batch, exponent: float, extra: Extra | None, room: Room
) -> int:
    """Fill the records of the groups in `room`; return the number of nodes, -1 if a rule would need
    too many, 0 if no sample is selected.
    """
    used = 0
    for k in range(room.moments.shape[0]):
        logits = logits_of(at, labels, batch.sharpness, k)
        old = OldModel(
            labels.m, labels.roots[k], labels.bias, batch.groups[1, k], batch.limit, batch.sharpness
        )
        e = room.moments[k]
        room.moments[k] = BLANK[0]
        if batch.loss == SQUARED:
            more, log_share = squared_averages(old, batch.given, batch.wrong, logits, e)
        else:
            if batch.given:
                more, log_share = given_labels(old.rho, batch.wrong, room.nodes), 0.0
            else:
                more, log_share = outer_rule(old, logits, exponent, room.near, room.nodes)
                if more >= 0 and not log_share > EMPTY_LOG_SHARE:
                    more = 0
            if more > 0:
                more = logistic_averages(more, logits, exponent, extra, room, e)
        if more <= 0:
            return more
        used += more
        e.share = batch.groups[0, k] * math.exp(log_share)
    return used


@kernel(allocates=False)
def logistic_averages(
    count: int, logits: Logits, exponent: float, extra: Extra | None, room: Room, out: Any
) -> int:
    """Add the averages of the logistic loss over the outer nodes in `room` and the new noise to
    the record `out`; return the number of points, -1 if too many.

    Small new noise is integrated on nodes of its own; if it is large, the integration variable is
    the trained logit.
    """
    if logits.noise > PANEL_NOISE:
        near = room.near[0, :3]
        return over_prox_panels(
            room.nodes, count, logits, exponent, extra, room.points, near, out
        )  # fmt: skip
    inner = inner_rule(logits.noise, exponent, room.nodes[4:])
    return over_noise_nodes(room.nodes, count, inner, logits, extra, room.points, out)


@kernel(allocates=False)
def explicit_unknowns(moments: Any, labels: Labelling, bias: float, given: bool, x: Any) -> None:
    r"""Fill x with the unknowns for $\lambda \to \infty$, which follow directly from the averages
    of a model without weights.
    """
    groups = labels.roots.shape[0]
    x[HAT_M] = 0.0
    x[BIAS] = bias - labels.gamma * labels.bias
    for k in range(groups):
        e, share = moments[k], moments[k].share
        x[HAT_M] -= share * e.sf
        x[FIRST + k] = labels.gamma * share * e.k + share * e.gf / labels.roots[k]
        if given:
            x[FIRST + k] = 0.0
        x[FIRST + groups + k] = math.log(share * e.k)
        x[FIRST + 2 * groups + k] = math.log(share * e.ff + TINY)


@kernel(allocates=False)
def explicit_start(labels: Labelling, batch: Batch, fixed_bias: float, room: Room, x: Any) -> float:
    r"""Fill x with the unknowns for $\lambda \to \infty$, where the weights are small.

    Returns the proportion of the rarer class among the selected labels, by which the caller detects
    a collapse; NaN if no sample is selected, -1 if the rule would need too many nodes. For soft
    labels of the squared loss, which cannot collapse, it is 1/2.
    """
    groups = labels.roots.shape[0]
    for k in range(groups):
        room.still[1 + groups + k, 0] = STILL * labels.roots[k]
        room.still[1 + 2 * groups + k, 0] = 1e-12
    bias = mass = 0.0
    for best in range(2):  # first at bias 0, for the mean label; then at the best (or fixed) bias
        at = At(bias - labels.gamma * labels.bias, room.still, 0.0)
        used = batch_averages(at, labels, batch, START_RULE, None, room)
        if used <= 0:
            return -1.0 if used < 0 or best else math.nan
        if best:
            break
        pull = total = 0.0
        for k in range(groups):
            pull += room.moments[k].share * room.moments[k].f
            total += room.moments[k].share
        mean = -pull / total  # the mean label minus the middle of the classes
        if batch.loss == SQUARED:
            mass = 0.5 * (1.0 - abs(mean)) if math.isinf(batch.sharpness) else 0.5
            bias = mean
        else:
            mass = 0.5 - abs(mean)
            positive = min(max(0.5 + mean, 1e-14), 1.0 - 1e-14)
            bias = math.log(positive / (1.0 - positive))
        if not math.isnan(fixed_bias):
            bias = labels.bias
    explicit_unknowns(room.moments, labels, bias, batch.given, x)
    return mass


class CompiledAverages:
    """The averages of a step with logistic or squared loss and soft, hard or given labels.

    Arguments:
        labels: the labelling model (zeros at step 0).
        batch: the samples.
        room: buffers; shared by the steps of a run.
    """

    def __init__(self, labels: Labelling, batch: Batch, room: Room):
        self.labels, self.batch, self.room = labels, batch, room

    def at(self, at: At, exponent: float, with_loss: bool = False) -> tuple[Any, int] | None:
        """Return a record of averages for every group, and the number of nodes; None if there would
        be too many, or averages are not finite.
        """
        extra = Extra(loss=True) if with_loss else None
        used = batch_averages(at, self.labels, self.batch, exponent, extra, self.room)
        return (self.room.moments, used) if used > 0 else None

    def start(self, fixed_bias: float, x: Array) -> float:
        r"""Fill x with the unknowns for $\lambda \to \infty$; return the proportion of the rarer
        class among the selected labels, NaN if none is selected. See `explicit_start`.
        """
        return float(explicit_start(self.labels, self.batch, fixed_bias, self.room, x))
