"""All tolerances, limits and thresholds of the solver, each with its reason.

A *rule* is the quadrature rule of the averages of a step, and its *exponent* T means an error of
about exp(-T). The *refined* rule is the finer one on which a solution is confirmed. The *stiffness*
is the curvature of the mean loss along the weights, to be compared with the ridge. Compiled kernels
contain these values as constants; changing one recompiles the kernels that use it.
"""

from __future__ import annotations

import math

TOLERANCE = 1e-10
"""Default relative accuracy of the state of a step."""

TOLERANCES = (1e-13, 1e-3)
"""Range of the tolerances of `solve`: less is below rounding errors, more is of no use."""

ACCEPTED = 1e-8
"""If rounding or a kinked loss prevents the tolerance, a step is accepted up to this accuracy."""

CONFIRMABLE = 2e-12
"""Smallest tolerance of a confirmation: smaller Newton steps are mere rounding errors."""

MARGIN = 100.0
"""Rules are sized for an error this many times smaller than the tolerance."""

REFINED = 10.0
"""The refined rule, which confirms a solution, has an exponent larger by this."""

ALTERNATE = 4.0
"""Every other step has a rule whose exponent is larger by this, so that consecutive steps check
each other's rules.
"""

CONFIRM_EVERY = 16
"""Largest number of steps between confirmations on the refined rule. The others are confirmed by
agreement with the steps before.
"""

NEIGHBOURS = 4
"""Number of previous steps that a step must agree with to be confirmed by them."""

LEVELS = 3
"""How often the rule is refined before a step counts as failed."""

LARGEST_LAST_STEP = 1e-4
"""The last Newton step is smaller than this however large the tolerance, so that convergence is
quadratic and the error is of the order of its square.
"""

ROUGH = 14.0
"""Exponent of the rough rule, used far from the root: averages accurate to 1e-6 suffice there."""

ROUGH_STEP = 2e-3
"""After a Newton step smaller than this, the rough rule has reached its accuracy."""

BACK_TO_ROUGH = 0.05
"""After a Newton step on the fine rule that is larger than this, the rough rule is used again."""

DAMPED = 0.1
"""Newton steps larger than this are limited by `LONGEST_LOG_STEP` and `LONGEST_STEP`."""

LONGEST_LOG_STEP = 1.5
"""The longest Newton step in the logarithms of conjugates: a factor of 4.5."""

LONGEST_STEP = 2.0
"""The longest Newton step of the weights, in units of their norm."""

LARGEST_LOG = 700.0
"""Beyond this logarithm a conjugate overflows."""

NO_STIFFNESS = 1e-3
"""A stiffness below this fraction of the ridge is negligible: starting points do not go below it,
and Newton steps that decrease it further are not limited.
"""

STALLED = 0.3
"""Near the root, a Newton step larger than this times the last one is an error of its rule."""

START_RULE = 16.0
"""Exponent of the rule for computing starting points: averages accurate to 1e-7."""

STILL = 1e-9
"""Noise of the new logits, relative to the old ones, of a start without update: small, not zero."""

NEWTON_STEPS = 25
"""Largest number of Newton steps from a starting point; with damping, 8 to 15 are needed."""

NEWTON_STEPS_NEAR = 7
"""Largest number of Newton steps from a prediction: near the root each doubles the digits."""

RELATIVE_SHARPNESS = 4.0
"""Up to this sharpness, unknowns are differences from the old state times the sharpness."""

NO_UPDATE = 0.3
"""The state without update is a starting point if lambda chi is below this."""

SMALLEST, LARGEST = 1e-125, 1e125
"""Range of the norm of the weights: its square and products with it stay in the range of floats."""

FADED_UNIT = 1e-80
"""Weights below `SMALLEST` are multiplied to about this norm (`theory.fading`)."""

REGROWN = 1e-40
"""Multiplied weights that grow to this norm are divided again, so that terms that depend on their
scale, of relative order q, stay below rounding errors.
"""

SHARPEST_FADED = 1e10
"""Below this sharpness, and with weights below `REGROWN`, labels are linear in the logits up to
rounding.
"""

UNDERFLOWN = 1e-150
"""A smaller norm after a step has lost digits, because its square underflows."""

ONLY_BIAS = 1e-9
"""Weights smaller than this fraction of a trained bias are negligible: one class is left."""

COLLAPSED_MASS = 1e-12
"""Labels have collapsed if the rarer class has less than this proportion of their total weight."""

EMPTY_LOG_SHARE = -480.0
"""Below this logarithm of the selected proportion no sample counts as selected: its square would
underflow.
"""

EMPTY_SHARE = 1e-260
"""The same limit where the proportion itself is computed, not its logarithm."""

NEGLIGIBLE_WEIGHT = 1e-40
"""Nodes of smaller weight are skipped: they do not change any average."""

CAPACITY = 24000
"""Largest number of outer nodes of a rule; a step that needs more is solved by slower methods, or
fails.
"""

INNER_POINTS = 20000
"""Largest number of points of one integral over the proximal point."""

PANEL_NOISE = 1.5
"""If the new noise is larger than this, the integration variable is the proximal point itself."""

PANEL_SPAN = 3.5
"""The longest panel, in standard deviations of the Gaussian it integrates."""

TRAPEZOID_DISTANCE = 0.35
"""If a singularity is nearer than this, panels are used: the trapezoidal rule would be longer."""

MILD_CHANGE = 0.5
"""If logits change by less than this, their singularities are taken to be those of the old ones."""

CONTINUATION_STEP = 1e-3
"""The shortest step in ln(ridge) of a continuation."""


def exponent_of(tolerance: float) -> float:
    """Return the exponent T of the rule, of error exp(-T), for a tolerance."""
    return math.log(MARGIN / tolerance)


def last_step_of(tolerance: float) -> float:
    """Return the size of the last Newton step such that its error, of second order, is within the
    tolerance.
    """
    return min(LARGEST_LAST_STEP, math.sqrt(0.1 * tolerance))


def confirmable(tolerance: float) -> float:
    """Return the tolerance of a confirmation: `tolerance`, but no less than rounding allows."""
    return max(tolerance, CONFIRMABLE)
