r"""What the reverse pass carries through a step: derivatives of a number L in what the step made
and in what it was given.

A step is two halves, and each is pulled back by itself. The linear half (`modes`, `matrices`) makes
the new law of the weights and the fields of the logits from the unknowns, the old law and the
ridge. The equations (`equations`) tie the unknowns to the fields, the labelling model and the
batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array

OLD_M, OLD_BIAS, LIMIT, SHARPNESS, POSITIVE, LIFT = range(6)
r"""First entries of the pulls on fields and labels: $m'$, $B'$, the limit on $|\tilde h|$, the
sharpness, the proportion of positives of a single group, the unknown $B - \gamma_0 B'$.
"""

FIRST_FIELD = 6
r"""From here on: the field m, then $\psi_k$, noise_k, $c_k$, $\sqrt{q'_k}$ and $\ln a_k$ of every
group ($a_k = \alpha p_k P_k$, the samples per feature that are selected).
"""


def pulls_for(groups: int, steps: int) -> Array:
    """Return zero pulls of every step."""
    return np.zeros((steps, FIRST_FIELD + 1 + 5 * groups))


class LinearStep(NamedTuple):
    r"""Where the linear half of a step is taken: unknowns, ridge, $\gamma_0$, the anchor of the
    fields, and the fields there with their derivatives in the unknowns.
    """

    x: Any
    ridge: float
    gamma: float
    anchor: float
    fields: Any


class Bars(NamedTuple):
    r"""Derivatives of L in what a step made.

    Attributes:
        mean, variance: in the new law of the weights.
        overlap: in $\beta\cdot\beta'$.
        response: in $\mathrm{tr}\,G/N$.
    """

    mean: Any
    variance: Any
    overlap: float
    response: float


class Pulled(NamedTuple):
    r"""Derivatives of L in what the linear half of a step was given.

    Attributes:
        x: in the unknowns.
        mean, variance: in the old law of the weights.
        rest: in the ridge, and in the logarithm of the scale of all covariances of the samples.
    """

    x: Any
    mean: Any
    variance: Any
    rest: Any


RIDGE, SCALE = range(2)
"""Entries of `Pulled.rest`."""


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


class Slopes(NamedTuple):
    """Derivatives of L in what every step is given: a row for every step, with the pulls on fields
    and labels, those on ridge and scale, and the condition of the step.
    """

    table: Any

    @property
    def pulls(self) -> Array:
        """Derivatives in fields and labels."""
        return np.asarray(self.table[:, :-3])

    @property
    def rest(self) -> Array:
        """Derivatives in the ridge and in the scale of the noise."""
        return np.asarray(self.table[:, -3:-1])

    @property
    def condition(self) -> Array:
        """The conditions of the steps."""
        return np.asarray(self.table[:, -1])
