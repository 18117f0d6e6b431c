r"""The averages of a step over its batch, compiled, for the logistic and the squared loss.

A batch consists of groups of samples: a class with its own covariance, or both classes where they
share one. A group sees the logits $\tilde h = s m' + B' + \sqrt{q'_k}\,g_1$ of the labelling model
and $h = \gamma_0\tilde h + s(m - \gamma_0 m') + (B - \gamma_0 B') + \dots$ of the new one. `step`
gives the fields of every group and reads one record of averages (`record`) for each.
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
"""The losses whose averages are compiled, and any other."""

TINY = 1e-290
"""Added before a logarithm is taken: a conjugate of zero has one too."""


class Batch(NamedTuple):
    r"""The samples of a step and their labels.

    Attributes:
        groups: samples per feature $\alpha p_k$ of every group, and its proportion of s = 1.
        limit: what $|\tilde h|$ is compared with.
        sharpness: of the labels; infinite for hard and for given ones.
        given: whether the labels are given (step 0).
        loss: `LOGISTIC`, `SQUARED` or `OTHER`.
        wrong: share of wrong ones among the given labels of the negative and the positive class.
    """

    groups: Any
    limit: float
    sharpness: float
    given: bool
    loss: int
    wrong: Any


class Labelling(NamedTuple):
    r"""The labelling model on a batch: $m'$, $\sqrt{q'_k}$ of every group, $B'$.

    `gamma` is $\gamma_0$: unknowns are measured from $\gamma_0$ times this model.
    """

    m: float
    roots: Any
    bias: float
    gamma: float


class At(NamedTuple):
    r"""Where averages are taken: $B - \gamma_0 B'$, the fields of the groups (`geometry.modes`),
    the multiple of the old weights that they are measured from.
    """

    lift: float
    fields: Any
    anchor: float


class Room(NamedTuple):
    r"""Arrays for averages and intermediate results.

    Attributes:
        nodes: of the rules; rows s, $g_1$, weight, $\tilde h$, then nodes and weights of $g_2$.
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
    """Return arrays for the averages of a batch."""
    return Room(
        np.empty((6, CAPACITY)), blank(groups), np.empty(SINGULAR), np.empty(TABLE),
        np.zeros((1 + 3 * groups, 1)),
    )  # fmt: skip


def kind_of(loss: Loss, labeler: Labeler) -> int:
    """Return `LOGISTIC` or `SQUARED` if the averages with these labels are compiled."""
    if type(labeler) not in (SoftLabels, HardLabels):
        return OTHER
    return {Logistic: LOGISTIC, Squared: SQUARED}.get(type(loss), OTHER)


@kernel(allocates=False, internal=True)
def logits_of(at: At, labels: Labelling, sharpness: float, k: int) -> Logits:
    """Return the new logits of group k."""
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
    """Fill the records of the groups; return the nodes used, -1 if too many, 0 if nothing is
    selected.
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


@kernel(allocates=False, inline="always")  # one level less to compile
def logistic_averages(
    count: int, logits: Logits, exponent: float, extra: Extra | None, room: Room, out: Any
) -> int:
    """Add the averages of the logistic loss over the outer nodes in `room` and the new noise to
    the record `out`; the points used, -1 if too many.

    While the new noise is small it has nodes of its own; where it is large, the integral runs over
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
    r"""Fill in the unknowns for $\lambda \to \infty$, which are explicit, from the averages of a
    model without weights.
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


@kernel(allocates=False, inline="always")  # one level less to compile
def explicit_start(labels: Labelling, batch: Batch, fixed_bias: float, room: Room, x: Any) -> float:
    r"""Fill x with the state for $\lambda \to \infty$, where the weights are small.

    Returns the mass of the rarer class among the selected labels, which shows a collapse; NaN if
    nothing is selected, -1 if the rule would be too long. Soft labels of the squared loss have no
    class to collapse into.
    """
    groups = labels.roots.shape[0]
    for k in range(groups):
        room.still[1 + groups + k, 0] = STILL * labels.roots[k]
        room.still[1 + 2 * groups + k, 0] = 1e-12
    bias = mass = 0.0
    for best in range(2):  # a bias of zero shows the labels; then the averages at the best one
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
        mean = -pull / total  # the mean label off its middle
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
        labels: the labelling model (of zeros at step 0).
        batch: the samples.
        room: where averages are put; shared by the steps of a run.
    """

    def __init__(self, labels: Labelling, batch: Batch, room: Room):
        self.labels, self.batch, self.room = labels, batch, room

    def at(self, at: At, exponent: float, with_loss: bool = False) -> tuple[Any, int] | None:
        """Return a record of averages for every group, and the nodes used; None if they would be
        too many or are not finite.
        """
        extra = Extra(loss=True) if with_loss else None
        used = batch_averages(at, self.labels, self.batch, exponent, extra, self.room)
        return (self.room.moments, used) if used > 0 else None

    def start(self, fixed_bias: float, x: Array) -> float:
        r"""Fill x with the state for $\lambda \to \infty$; return the mass of the rarer class among
        the selected labels, NaN if nothing is selected.
        """
        return float(explicit_start(self.labels, self.batch, fixed_bias, self.room, x))
