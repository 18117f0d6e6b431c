r"""The arrays of the reverse pass: derivatives of a number L in the outputs and the inputs of a
step (called *pulls*).

A step has two halves, each with its own adjoint. The linear half (`reversed_geometry`) computes the
new law of the weights and the fields of the logits from the unknowns, the old law and the ridge.
The equations (`adjoint`) determine the unknowns from the fields, the labelling model and the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ..geometry.modes import FIRST

OLD_M, OLD_BIAS, LIMIT, SHARPNESS, POSITIVE, RIDGE, SCALE, CONDITION, FIELD_M = range(9)
r"""Positions in the pulls, the derivatives of L in the inputs of a step: $m'$, $B'$, the limit on
$|\tilde h|$, the sharpness (for given labels the proportion of wrong ones, up to a factor:
`moved_averages.fill_wrong`), the proportion of the positive class in a single group, the ridge, the
logarithm of a common factor of all covariances. Then the condition number of the step, and the
derivative in the field m.
"""

BY_GROUP = 9
r"""First position of the derivatives in $\psi_k$, noise_k, $c_k$, $\sqrt{q'_k}$ and $\ln a_k$ of
every group ($a_k = \alpha p_k P_k$, the selected samples per feature).
"""


def pulls_for(groups: int, steps: int) -> Array:
    """Return pulls of zero, one row per step."""
    return np.zeros((steps, BY_GROUP + 5 * groups))


class SolvedStep(NamedTuple):
    r"""The arrays of a solved step.

    Attributes:
        x: its unknowns.
        fields: the fields at x, with their derivatives in the unknowns.
        roots: $\sqrt{q'_k}$ of every group.
        moments: a record of averages for every group.
        sharp: derivatives of E[f], E[s f], E[g f], E[f^2], E[k] in the sharpness, a row for every
            group; zero if they follow from `StepNumbers.gain`.
        edges: edges of every group (`moved_averages`).
        system: residuals and Jacobian of the equations.
    """

    x: Any
    fields: Any
    roots: Any
    moments: Any
    sharp: Any
    edges: Any
    system: Any


class StepNumbers(NamedTuple):
    r"""The numbers of a solved step. (They are separate from its arrays, because numba counts
    references to every array of a record it creates, which takes longer than most steps.)

    Attributes:
        ridge: ridge of the step.
        limit: samples with $|\tilde h|$ up to this are rejected.
        gamma, anchor: $\gamma_0$ and the anchor a of `geometry.modes`.
        m, bias: m and B of the labelling model.
        gain: $\partial y/\partial\tilde h$ of the logit y of the label.
        soft: whether $y = \gamma\tilde h$, so that the gain gives derivatives in $\gamma$ too.
        given: whether the labels are given.
        fixed_bias: whether the bias is fixed.
        mirrored: whether the step is mirror symmetric (`geometry.mirror`).
        positive: proportion of the positive class, if all samples are one group.
    """

    ridge: float
    limit: float
    gamma: float
    anchor: float
    m: float
    bias: float
    gain: float
    soft: bool
    given: bool
    fixed_bias: bool
    mirrored: bool
    positive: float


class Reversed(NamedTuple):
    r"""Derivatives of L in the outputs and the inputs of the linear half of a step.

    Attributes:
        new_mean, new_variance: in the new law of the weights.
        ends: in $\beta\cdot\beta'$ and $\mathrm{tr}\,G/N$.
        x: in the unknowns.
        mean, variance: in the old law of the weights.
        room, rows, part: buffers, because allocating them would take as long as solving a system.
    """

    new_mean: Any
    new_variance: Any
    ends: Any
    x: Any
    mean: Any
    variance: Any
    room: Any
    rows: Any
    part: Any


def reversed_for(law: Any, groups: int) -> Reversed:
    """Return derivatives of zero, with the shapes of a law of the weights."""
    size, (mean, variance) = FIRST + 3 * groups, law
    return Reversed(
        np.zeros_like(mean), np.zeros_like(variance), np.zeros(2), np.zeros(size),
        np.zeros_like(mean), np.zeros_like(variance), np.zeros((7, groups)),
        np.empty((2 * size + 6, size)), pulls_for(groups, 1)[0],
    )  # fmt: skip


class Carried(NamedTuple):
    """Derivatives of L in the models between steps: law of the weights and bias.

    With one row, derivatives are propagated from step to step; with one row per step, each is
    propagated through its own step only.
    """

    mean: Any
    variance: Any
    bias: Any


def carried_for(law: Any, rows: int = 1) -> Carried:
    """Return derivatives of zero, with the shapes of a law of the weights."""
    mean, variance = (np.zeros((rows, *part.shape)) for part in law)
    return Carried(mean, variance, np.zeros(rows))
