"""The fit of one step on rows that are there, with its failure as an error of that step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...losses import Logistic, Squared, check_derivatives, check_within
from ..linear.fit import Fit, FitError, fit
from ..plan import StepPlan

CLOSER = 0.01
"""The fit is more accurate than its q, m and B have to be, by this factor."""


CHECKED = 200
"""Logits of a fit at which a loss of the user's own is checked."""


class FitRows(NamedTuple):
    """The rows of a fit, their targets and weights."""

    design: Any
    targets: Array
    weights: Array


def fit_step(
    step: StepPlan, rows: FitRows, trained: bool, weights: Array, bias: float, tolerance: float
) -> Fit:
    """The minimiser on these rows, from the weights and the bias of the step before."""
    users_own = type(step.loss) not in (Logistic, Squared)
    try:
        found = fit(
            rows.design,
            rows.targets,
            step.loss,
            step.ridge,
            rows=rows.weights,
            fit_bias=trained,
            weights=weights,
            bias=bias,
            tolerance=CLOSER * tolerance,
        )
    except FitError as error:
        if users_own and np.isfinite(error.reach):
            check_within(step.loss, 2.0 * error.reach)  # a contradiction is the better reason
        state = {"bias": bias, "norm": float(np.linalg.norm(weights))}
        raise ConvergenceError(step.t, str(error), state, float("nan")) from None
    if users_own:
        some = slice(None, None, max(1, found.logits.size // CHECKED))
        check_derivatives(step.loss, rows.targets[some], found.logits[some])
    return found
