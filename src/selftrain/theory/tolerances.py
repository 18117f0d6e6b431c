"""Every number that decides something in the solver, with its name and its reason.

Compiled kernels freeze these values; changing one recompiles what uses it.
"""

from __future__ import annotations

import math

TOLERANCE = 1e-10
"""Default relative accuracy of the state of a step."""

TOLERANCES = (1e-13, 1e-3)
"""The tolerances that `solve` accepts: rounding forbids less, and more would not be an answer."""

ACCEPTED = 1e-8
"""A step that rounding or a kinked loss keeps above its tolerance is accepted up to this
accuracy.
"""

CONFIRMABLE = 2e-12
"""Below this the rounding of the averages sets the size of a Newton step, so no less is
demanded.
"""

MARGIN = 100.0
"""Rules are sized for an error this many times smaller than the tolerance."""

REFINED = 10.0
"""The refined rule, which confirms, aims at an error smaller by exp(-REFINED)."""

ALTERNATE = 4.0
"""Every other step has a rule with this much more in its exponent: neighbours check one another's
rules.
"""

CONFIRM_EVERY = 16
"""Steps between confirmations on the refined rule, where neighbours confirm one another."""

NEIGHBOURS = 4
"""Steps before that a step must agree with to be confirmed by them."""

LEVELS = 3
"""How often the rule is refined before a step counts as failed."""

LARGEST_LAST_STEP = 1e-4
"""However loose the tolerance, the last Newton step is smaller than this: then its error is its
square.
"""

ROUGH = 14.0
"""Exponent of the rule far from the root: averages to about 1e-6 are enough to get nearer."""

ROUGH_STEP = 2e-3
"""A Newton step this small on the rough rule ends about where that rule can tell no more."""

BACK_TO_ROUGH = 0.05
"""A Newton step this large on the fine rule says that the root is far: the rough rule takes
over.
"""

DAMPED = 0.1
"""Newton steps larger than this are kept inside a plausible range."""

LONGEST_LOG_STEP = 1.5
"""The longest Newton step in the logarithms of conjugates: a factor of 4.5."""

LONGEST_STEP = 2.0
"""The longest Newton step of the weights, in units of their norm."""

LARGEST_LOG = 700.0
"""Beyond this logarithm a conjugate overflows."""

NO_STIFFNESS = 1e-3
"""A stiffness below this share of the ridge hardly matters: starts do not go below it, and Newton
steps from there down are not bounded.
"""

STALLED = 0.3
"""Newton steps near the root that shrink by less than this factor meet the error of their rule."""

START_RULE = 16.0
"""Exponent of the rules of a start: averages to 1e-7."""

STILL = 1e-9
"""The new noise of a model that does not move, in units of the logits: small, and not zero."""

NEWTON_STEPS = 25
"""Newton steps from a start before it is given up; the damped path to the root takes 8 to 15."""

NEWTON_STEPS_NEAR = 7
"""Newton steps from a prediction: near the root each doubles the digits."""

RELATIVE_SHARPNESS = 4.0
"""Up to this sharpness the unknowns are differences to the (sharpened) old state."""

NO_UPDATE = 0.3
"""The state without update is a start while lambda chi is below this."""

SMALLEST, LARGEST = 1e-125, 1e125
"""Norms of the weights beyond these lose digits when they are squared."""

FADED_UNIT = 1e-80
"""Weights below `SMALLEST` are multiplied to about this norm, and their scale is carried apart."""

REGROWN = 1e-40
"""Multiplied weights that have grown to this norm are divided again: what depends on their scale,
of relative order q, must stay below rounding.
"""

SHARPEST_FADED = 1e10
"""Below this sharpness labels of weights below `REGROWN` are linear in the logits to rounding."""

UNDERFLOWN = 1e-150
"""A step that leaves a smaller norm has lost digits: its square underflows."""

ONLY_BIAS = 1e-9
"""A trained bias this many times larger than the weights leaves one class."""

COLLAPSED_MASS = 1e-12
"""Labels collapse when the smaller class has less than this share of their mass."""

EMPTY_LOG_SHARE = -480.0
"""Below this logarithm of the selected share nothing counts as selected: its square must be a
number.
"""

EMPTY_SHARE = 1e-260
"""The same where the share itself is computed."""

NEGLIGIBLE_WEIGHT = 1e-40
"""Nodes of smaller weight are skipped: they change no digit of any average."""

CAPACITY = 24000
"""Outer nodes a rule may have; beyond that the step goes to slower methods, or is rejected."""

INNER_POINTS = 20000
"""Points of one integral over the proximal point before it is given up."""

PANEL_NOISE = 1.5
"""Above this scale of the new noise the integral runs over the proximal point itself."""

PANEL_SPAN = 3.5
"""The longest panel, in units of the Gaussian it integrates."""

TRAPEZOID_DISTANCE = 0.35
"""Nearer singularities than this take panels: the trapezoidal rule would be longer."""

MILD_CHANGE = 0.5
"""Logits that change by less than this have their singularities where the old ones have them."""

CONTINUATION_STEP = 1e-3
"""The shortest stride in ln(ridge) of a continuation."""


def exponent_of(tolerance: float) -> float:
    """Return T of a rule of error exp(-T) for a tolerance."""
    return math.log(MARGIN / tolerance)


def last_step_of(tolerance: float) -> float:
    """Return the size of a last Newton step whose error, of second order, is within tolerance."""
    return min(LARGEST_LAST_STEP, math.sqrt(0.1 * tolerance))


def confirmable(tolerance: float) -> float:
    """Return what the confirmation may demand: the tolerance, but no less than rounding allows."""
    return max(tolerance, CONFIRMABLE)
