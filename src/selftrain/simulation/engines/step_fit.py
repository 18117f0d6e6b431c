"""The fit of one step on rows that are there, with its failure as an error of that step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ..linear.fit import Fit, FitError, fit
from ..plan import StepPlan

CLOSER = 0.01
"""The fit is more accurate than its q, m and B have to be, by this factor."""


class FitRows(NamedTuple):
    """The rows of a fit, their targets and weights."""

    design: Any
    targets: Array
    weights: Array


def fit_step(
    step: StepPlan, rows: FitRows, trained: bool, weights: Array, bias: float, tolerance: float
) -> Fit:
    """The minimiser on these rows, from the weights and the bias of the step before."""
    try:
        return fit(
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
        state = {"bias": bias, "norm": float(np.linalg.norm(weights))}
        raise ConvergenceError(step.t, str(error), state, float("nan")) from None
