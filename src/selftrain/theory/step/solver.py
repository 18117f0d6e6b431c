r"""One step, solved for certain: Newton's method from several starts, and continuation in the
ridge.

The root is unique (`equations`), so whichever way finds it, a Newton step below the tolerance on a
refined rule is proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ..ending import Ending
from ..tolerances import ACCEPTED, ALTERNATE, CONTINUATION_STEP, LEVELS, REFINED, last_step_of
from .stage import Stage


class Solution(NamedTuple):
    """Unknowns of a solved step and how they were found; `exponent` is that of the rule before the
    one that confirmed.
    """

    x: Array
    start: str
    evaluations: int
    nodes: int
    accuracy: float
    exponent: float


def solve_stage(
    stage: Stage, exponent: float, tolerance: float, guess: Array | None = None
) -> Solution:
    """The root of a step, confirmed on a refined rule, or `ConvergenceError`."""
    best, best_accuracy, best_start, best_rule = None, math.inf, "", exponent
    enough = last_step_of(tolerance)
    for name, x in _ways(stage, exponent, enough, guess):
        if x is None:
            continue
        for level in range(LEVELS + 1):
            rule = exponent + (level + 1) * REFINED
            accuracy, _, step = stage.step_from(x, stage.ridge, rule)
            if accuracy == math.inf and level == 0:
                # bends that rounding does not let a rule resolve so finely: a little finer will do
                rule = exponent + ALTERNATE
                accuracy, _, step = stage.step_from(x, stage.ridge, rule)
            if accuracy < best_accuracy:
                best, best_accuracy, best_start = x, accuracy, name
                best_rule = exponent + level * REFINED
            if accuracy <= tolerance:
                return Solution(x, name, stage.evaluations, stage.used, accuracy, best_rule)
            better: Array | None = x + step
            if accuracy > enough:
                better = stage.newton(x, stage.ridge, rule, enough, 8, may_be_rough=False)
            if better is None:
                break
            x = better
        if best_accuracy <= max(ACCEPTED, tolerance):
            break
    if best is not None and best_accuracy <= max(ACCEPTED, tolerance):
        return Solution(best, best_start, stage.evaluations, stage.used, best_accuracy, best_rule)
    hint = ""
    if stage.t == 0 and stage.ridge == 0:
        hint = (
            "; without ridge there may be no unique minimiser, as with fewer samples than features,"
            " or no finite one, as with separable data: use lambda_l > 0"
        )
    residual = best_accuracy if best is not None else math.nan
    raise Ending.UNCONFIRMED.error(stage.t, residual=residual, hint=hint)


def _ways(
    stage: Stage, exponent: float, enough: float, guess: Array | None
) -> Iterator[tuple[str, Array | None]]:
    for name, x in stage.starts(guess):
        limit = 12 if name == "predicted" else 40
        yield name, stage.newton(x, stage.ridge, exponent, enough, limit)
    yield "continuation", _continue_in_ridge(stage, exponent, enough)


def _continue_in_ridge(stage: Stage, exponent: float, enough: float) -> Array | None:
    r"""Follow the root from large $\lambda$, where it is explicit, down to the ridge of the
    step.
    """
    target = math.log(stage.ridge) if stage.ridge > 0 else -30.0
    start = stage.explicit()
    stiffness = float(np.exp(start[stage.log_q]) @ stage.algebra.softness)
    here = max(target, math.log(10.0 * stiffness))
    x = None
    while x is None and here < 60.0:
        x = stage.newton(start, math.exp(here), exponent, 1e-4, 12, may_be_rough=False)
        here += 0.0 if x is not None else 2.0
    stride, before, last = 1.0, None, here
    while x is not None and here > target:
        while True:
            there = max(target, here - stride)
            ahead = x if before is None else x + (x - before) * (there - here) / (here - last)
            found = stage.newton(ahead, math.exp(there), exponent, 1e-4, 10, may_be_rough=False)
            if found is None and before is not None:
                found = stage.newton(x, math.exp(there), exponent, 1e-4, 10, may_be_rough=False)
            if found is not None:
                break
            stride *= 0.4
            if stride < CONTINUATION_STEP:
                return None
        before, last = x, here
        x, here, stride = found, there, min(stride * 1.6, 3.0)
    if x is None:
        return None
    return stage.newton(x, stage.ridge, exponent, enough, 12, may_be_rough=False)
