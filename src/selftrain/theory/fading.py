r"""Fading weights, which would underflow: their scale is stored separately, as a power of two.

With soft labels and all logits small, $f = \partial_2 l$ is linear in the old and the new logits,
up to a relative $O(q)$ (for the squared loss exactly). A step is then a homogeneous map: weights
and bias that are twice as large lead to ones that are twice as large, since the selection compares
$|\tilde h|$ with $\Gamma\sqrt{q'}$. So a state that is about to underflow is multiplied by a power
of two, whose exponent is stored, and the run continues. Error, cosine and everything else that does
not depend on the scale follow from the multiplied state; q, m, ... are converted back and may
underflow.

All quantities of step t, the state it starts from included, are in units of $2^{-e_t}$, with $e_t$
the exponent of the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..labelers import SoftLabels
from ..losses import Logistic, Squared
from ..problem import Problem
from ..recipe import Recipe
from .tolerances import FADED_UNIT, REGROWN, SHARPEST_FADED, SMALLEST, UNDERFLOWN

DEGREES = {
    "m": 1,
    "v": 2,
    "bias": 1,
    "overlap": 2,
    "chi_hat": 2,
    "m_hat": 1,
    "logit_variances": 2,
    "off_best": 2,
}
"""The power of the scale of the weights to which each quantity is proportional; 0 if not listed."""


@dataclass(frozen=True, eq=False)
class Fading:
    """The scales of a run whose weights would underflow.

    Attributes:
        exponents: $e_t$ of every step, 0 before the first that would underflow.
        scaled: the quantities of `DEGREES` in units of $2^{-e_t}$, by name.
    """

    exponents: NDArray[np.int64]
    scaled: dict[str, Array]


def is_homogeneous(problem: Problem, recipe: Recipe) -> bool:
    """Return whether steps with small weights are homogeneous: soft labels, and the logistic or the
    squared loss, whose derivative is linear in small logits.
    """
    if problem.steps == 0 or type(recipe.label_function) is not SoftLabels:
        return False
    linear = type(problem.loss_at(1)) in (Logistic, Squared)
    return linear and bool((recipe.at_steps(problem.steps).sharpness < SHARPEST_FADED).all())


def shift(norm: float, exponent: int) -> int:
    """Return the exponent of the power of two that brings a norm back into range; 0 if it is in
    range, or so small that it has lost digits already.

    Arguments:
        exponent: the exponent so far; if positive, a norm that has grown again is scaled back.
    """
    if UNDERFLOWN < norm <= SMALLEST:
        return round(math.log2(FADED_UNIT / norm))
    if exponent > 0 and REGROWN <= norm < math.inf:
        return -min(exponent, round(math.log2(norm / FADED_UNIT)))
    return 0


def unscaled(name: str, values: Array, exponents: NDArray[np.int64]) -> Array:
    """Convert a quantity from the units of each step to those of step 0; it may underflow."""
    power = -DEGREES.get(name, 0) * exponents
    return np.ldexp(values, power if values.ndim == 1 else power[:, None])
