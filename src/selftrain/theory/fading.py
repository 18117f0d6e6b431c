r"""Weights that fade below the range of floating-point numbers: their scale is carried apart.

With soft labels and all logits small, $f = \partial_2 l$ is linear in the old and the new logits,
up to a relative $O(q)$ (for the squared loss exactly). A step is then a homogeneous map: weights
and bias that are twice as large lead to ones that are twice as large, since the selection compares
$|\tilde h|$ with $\Gamma\sqrt{q'}$. So a state that is about to underflow is multiplied by a power
of two, and the run continues; the exponent is carried along. Error, cosine and everything else that
does not depend on the scale follow from the multiplied state; q, m, ... are multiplied back, and
underflow where they must.

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
"""How quantities grow with the scale of the weights; those that are not listed do not."""


@dataclass(frozen=True, eq=False)
class Fading:
    """What a run with faded weights has besides its quantities.

    Attributes:
        exponents: $e_t$ of every step, 0 up to the first that would underflow.
        scaled: the quantities of `DEGREES` in units of $2^{-e_t}$, by name.
    """

    exponents: NDArray[np.int64]
    scaled: dict[str, Array]


def is_homogeneous(problem: Problem, recipe: Recipe) -> bool:
    """Return whether steps from small weights are homogeneous: soft labels, a loss known to be
    linear there.
    """
    if problem.steps == 0 or type(recipe.label_function) is not SoftLabels:
        return False
    linear = type(problem.loss_at(1)) in (Logistic, Squared)
    return linear and bool((recipe.at_steps(problem.steps).sharpness < SHARPEST_FADED).all())


def shift(norm: float, exponent: int) -> int:
    """Return the power of two that brings a norm back into range; 0: it is in range, or lost its
    digits.
    """
    if UNDERFLOWN < norm <= SMALLEST:
        return round(math.log2(FADED_UNIT / norm))
    if exponent > 0 and REGROWN <= norm < math.inf:
        return -min(exponent, round(math.log2(norm / FADED_UNIT)))
    return 0


def unscaled(name: str, values: Array, exponents: NDArray[np.int64]) -> Array:
    """Return a quantity in its own units; it underflows where it must."""
    power = -DEGREES.get(name, 0) * exponents
    return np.ldexp(values, power if values.ndim == 1 else power[:, None])
