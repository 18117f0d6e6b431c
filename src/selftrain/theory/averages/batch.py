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

from ...labelers import HardLabels, Labeler, SoftLabels
from ...losses import Logistic, Loss, Squared
from ...runtime.kernels import kernel
from ..tolerances import CAPACITY, EMPTY_LOG_SHARE, RELATIVE_SHARPNESS
from .given_labels import given_labels
from .logistic.logistic import logistic_averages
from .logistic.logits import Logits
from .quadrature.outer import NewModel, OldModel, outer_rule
from .record import BLANK, Extra, blank
from .squared import squared_averages

LOGISTIC, SQUARED, OTHER = range(3)
"""The losses whose averages are compiled, and any other."""


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
    """Where averages are put: nodes of the rules, a record of averages for every group."""

    nodes: Any
    moments: Any


def room_for(groups: int) -> Room:
    """Return arrays for the averages of a batch."""
    return Room(np.empty((4, CAPACITY)), blank(groups))


def kind_of(loss: Loss, labeler: Labeler) -> int:
    """Return `LOGISTIC` or `SQUARED` if the averages with these labels are compiled."""
    if type(labeler) not in (SoftLabels, HardLabels):
        return OTHER
    return {Logistic: LOGISTIC, Squared: SQUARED}.get(type(loss), OTHER)


@kernel(error_model="numpy")
def reference_sharpness(loss: int, sharpness: float) -> float:
    r"""$\gamma_0$: the sharpness if labels and logits are comparable, else 0. Labels of the squared
    loss are linear in the old logits, so that any finite sharpness will do.
    """
    if loss == OTHER:
        return 0.0
    most = 1e300 if loss == SQUARED else RELATIVE_SHARPNESS
    return sharpness if sharpness <= most else 0.0


@kernel(error_model="numpy")
def batch_averages(
    at: At, labels: Labelling, batch: Batch, exponent: float, extra: Extra | None, room: Room
) -> int:
    """Fill the records of the groups; the nodes used, -1 if too many, 0 if nothing is
    selected.
    """
    groups = room.moments.shape[0]
    used = 0
    for k in range(groups):
        shift = at.fields[0, 0] + (at.anchor - labels.gamma) * labels.m
        tilt = (at.fields[1 + k, 0] + (at.anchor - labels.gamma)) * labels.roots[k]
        noise, strength = at.fields[1 + groups + k, 0], at.fields[1 + 2 * groups + k, 0]
        logits = Logits(
            labels.gamma, batch.sharpness, shift, tilt, at.lift, noise, strength
        )  # fmt: skip
        old = OldModel(
            labels.m, labels.roots[k], labels.bias, batch.groups[1, k], batch.limit, batch.sharpness
        )
        room.moments[k] = BLANK[0]
        if batch.loss == SQUARED:
            more, log_share = squared_averages(
                old, batch.given, batch.wrong, logits, room.moments[k]
            )
        else:
            more, log_share = _logistic(old, batch, logits, at, exponent, extra, room, k)
        if more <= 0:
            return more
        used += more
        room.moments[k].share = batch.groups[0, k] * math.exp(log_share)
    return used


@kernel(error_model="numpy", inline="always")  # called once: one level less to compile
def _logistic(
    old: OldModel, batch: Batch, logits: Logits, at: At, exponent: float, extra: Extra | None,
    room: Room, k: int,
) -> tuple[int, float]:  # fmt: skip
    """The averages of one group, and the logarithm of its selected share."""
    if batch.given:
        count, log_share = given_labels(old.rho, batch.wrong, room.nodes), 0.0
    else:
        psi = at.fields[1 + k, 0] + at.anchor
        m = at.fields[0, 0] + at.anchor * old.mean
        new = NewModel(
            abs(psi) * old.spread, m, at.lift + logits.base * old.bias, logits.noise,
            logits.strength,
        )  # fmt: skip
        count, log_share = outer_rule(old, new, exponent, room.nodes)
        if count >= 0 and not log_share > EMPTY_LOG_SHARE:
            count = 0
    if count <= 0:
        return count, log_share
    return logistic_averages(room.nodes, count, logits, exponent, extra, room.moments[k]), log_share
