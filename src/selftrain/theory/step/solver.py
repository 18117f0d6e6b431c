r"""One step, solved for certain: Newton from several starts, continuation in the ridge, the convex
objective.

For steps on which the compiled march did not converge, and for losses that have no compiled engine.
The root is unique, because the equations are the stationarity conditions of a convex function
(`convex`), so whichever way finds it, a Newton step below the tolerance on a refined rule is proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ...arrays import Array
from ..tolerances import ACCEPTED, LEVELS, REFINED, last_step_of
from .continuation import continue_in_ridge
from .convex import minimize
from .ending import Ending
from .newton import newton
from .stage import Counter, IterativeStage, StageSolution, step_from

WAYS: tuple[tuple[str, Callable[[Counter, float, float], Array | None]], ...] = (
    ("continuation", continue_in_ridge),
    ("convex", minimize),
)
"""What is tried, in this order, after Newton's method from the starts of a stage."""

POLISH = 8
"""Newton steps on a refined rule, from a root of the coarser one."""


def solve_stage(stage: IterativeStage, exponent: float, tolerance: float) -> StageSolution:
    """The root of a step, confirmed on a refined rule, or `ConvergenceError`.

    Arguments:
        stage: the equations.
        exponent: rules err by exp(-exponent) to begin with.
        tolerance: relative accuracy of the unknowns.
    """
    evaluate = Counter(stage)
    ridge, enough = stage.frame.ridge, last_step_of(tolerance)
    accepted = max(ACCEPTED, tolerance)
    best, best_accuracy, best_start = None, math.inf, ""
    for start, way in _ways(evaluate, exponent, enough):
        z = way
        for level in range(LEVELS + 1):
            if z is None:
                break
            rule = exponent + (level + 1) * REFINED
            at = evaluate(z, ridge, rule)
            if at is None:
                break
            accuracy, _ = step_from(stage, z, at)
            if accuracy < best_accuracy:
                best, best_accuracy, best_start = z, accuracy, start
            if accuracy <= tolerance:
                return StageSolution(z, start, evaluate.evaluations, evaluate.points, accuracy)
            z = newton(evaluate, z, ridge, rule, enough, POLISH)
        if best_accuracy <= accepted:
            break
    if best is not None and best_accuracy <= accepted:
        return StageSolution(best, best_start, evaluate.evaluations, evaluate.points, best_accuracy)
    names = ("a", "eta", "bias", "log_r", "log_chi")
    state = {} if best is None else dict(zip(names, best, strict=True))
    residual = math.nan if best is None else best_accuracy
    raise Ending.UNCONFIRMED.error(stage.step, state, residual, hint=_hint(stage))


def _ways(evaluate: Counter, exponent: float, enough: float) -> Iterator[tuple[str, Array | None]]:
    stage = evaluate.stage
    for name, z in stage.starts():
        yield name, newton(evaluate, z, stage.frame.ridge, exponent, enough)
    for name, way in WAYS:
        yield name, way(evaluate, exponent, enough)


def _hint(stage: IterativeStage) -> str:
    if stage.frame.first and stage.frame.ridge == 0:
        return (
            "; without ridge the labelled data may be separable, so no finite minimiser exists: "
            "use lambda_l > 0"
        )
    return ""
