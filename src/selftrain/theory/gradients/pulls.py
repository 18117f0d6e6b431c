r"""What the reverse pass carries through a step: derivatives of a number L in what the step made
and in what it was given.

A step is two halves, and each is reversed by itself. The linear half (`reversed_geometry`)
makes the new law of the weights and the fields of the logits from the
unknowns, the old law and the ridge. The equations (`adjoint`) tie the unknowns to the fields, the
labelling model and the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ..geometry.modes import FIRST

OLD_M, OLD_BIAS, LIMIT, SHARPNESS, POSITIVE, RIDGE, SCALE, CONDITION, FIELD_M = range(9)
r"""Entries of the pulls, the derivatives of L in what a step is given: $m'$, $B'$, the limit on
$|\tilde h|$, the sharpness (of given labels the proportion of wrong ones, less a factor:
`moved_averages.fill_wrong`), the proportion of positives of a single group, the ridge, the
logarithm of the scale of all covariances of the samples; the condition of the step; the field m.
"""

BY_GROUP = 9
r"""From here on $\psi_k$, noise_k, $c_k$, $\sqrt{q'_k}$ and $\ln a_k$ of every group ($a_k = \alpha
p_k P_k$, the samples per feature that are selected).
"""


def pulls_for(groups: int, steps: int) -> Array:
    """Return zero pulls of every step."""
    return np.zeros((steps, BY_GROUP + 5 * groups))


class SolvedStep(NamedTuple):
    r"""The arrays of a solved step.

    Attributes:
        x: its unknowns.
        fields: the fields there, with their derivatives in the unknowns.
        roots: $\sqrt{q'_k}$ of every group.
        moments: a record of averages for every group.
        sharp: derivatives of E[f], E[s f], E[g f], E[f^2], E[k] in the sharpness, a row for every
            group, where they do not follow from the gain.
        edges: of every group (`moved_averages`).
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
    r"""The numbers of a solved step, apart from its arrays: numba counts references to every array
    of a record that it makes, which takes longer than most steps.

    Attributes:
        ridge, limit: of the step; the limit is what $|\tilde h|$ is compared with.
        gamma, anchor: $\gamma_0$ and the multiple of the old weights that fields are measured from.
        m, bias: of the labelling model.
        gain: $\partial y/\partial\tilde h$ of the logit y of the label.
        soft: whether $y = \gamma\tilde h$, so that the gain gives derivatives in $\gamma$ too.
        given: whether the labels are.
        fixed_bias: whether the bias is.
        mirrored: whether the step is its own mirror image.
        positive: proportion of positives, where all samples are one group.
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
    r"""What the linear half of a step is reversed with: derivatives of L in what it made, and in
    what it was given.

    Attributes:
        new_mean, new_variance: in the new law of the weights.
        ends: in $\beta\cdot\beta'$ and $\mathrm{tr}\,G/N$.
        x: in the unknowns.
        mean, variance: in the old law of the weights.
        room, rows, part: for intermediate results: to allocate them takes as long as to solve a
            system.
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
    """Return zeros in the coordinates of a law of the weights."""
    size, (mean, variance) = FIRST + 3 * groups, law
    return Reversed(
        np.zeros_like(mean), np.zeros_like(variance), np.zeros(2), np.zeros(size),
        np.zeros_like(mean), np.zeros_like(variance), np.zeros((7, groups)),
        np.empty((2 * size + 6, size)), pulls_for(groups, 1)[0],
    )  # fmt: skip


class Carried(NamedTuple):
    """Derivatives of L in the models between steps: law of the weights and bias.

    One row passes from step to step; or there is a row for every step, which is then pulled back by
    itself.
    """

    mean: Any
    variance: Any
    bias: Any


def carried_for(law: Any, rows: int = 1) -> Carried:
    """Return zeros in the coordinates of a law of the weights."""
    mean, variance = (np.zeros((rows, *part.shape)) for part in law)
    return Carried(mean, variance, np.zeros(rows))
