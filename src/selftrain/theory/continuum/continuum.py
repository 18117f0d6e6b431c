r"""Self-training in continuous time: the limit $\lambda_U \to 0$ at fixed $\tau = \lambda_U t$.

The first order of a step (`expansion`) is a differential equation (Prediction `pred: differential
equation`). In the variables

    d \ln\sqrt q / d\tau = r
    d \mathrm{artanh}(m/\sqrt q) / d\tau = b
    dB / d\tau = \beta\sqrt q

(r, b, $\beta$: `linear_response`) nothing cancels and nothing overflows, however well
the direction is aligned and however small the weights become; $dM/d\tau = C M(1-M)$ with $M =
m^2/q$ and $C = 2b\sqrt q/m$ is the second of them.
"""

from __future__ import annotations

import math

from ...errors import InvalidInput
from ...fields import number
from ...problem import Problem
from ...recipe import Recipe
from ...runtime.progress import Progress, ProgressOption, checked_progress
from ..solve import checked_tolerance
from .flow import LEVELS, Flow, confirmed, unknowns
from .path import ContinuumPath
from .timeline import check_continuous, start_of, stretches

__all__ = ["continuum", "follow"]


def continuum(
    problem: Problem,
    recipe: Recipe,
    until: float | None = None,
    tolerance: float = 1e-10,
    on_failure: str = "raise",
    progress: ProgressOption = None,
) -> ContinuumPath:
    r"""Integrate the continuous-time limit from the supervised model on.

    Arguments:
        problem: data and loss.
        recipe: $\lambda_L$ of the start, threshold, annealing, whether the bias is fixed. Without
            annealing the ridge $\lambda_U$ only sets the clock; with it the limit is taken at fixed
            $\kappa = a/\lambda_U^2$, and labels at time $\tau$ are sharpened by
            $1 + \lambda_U\kappa\tau$.
        until: time $\tau$ at which to end; default: $\sum_t\lambda_U^{(t)}$, where the discrete run
            ends.
        tolerance: accuracy of $\ln\sqrt q$, $\mathrm{artanh}\cos$ and B (relative where it exceeds
            1) along the path, confirmed by a finer integration.
        on_failure: "raise" a `NoExpansion` if the path runs into $\alpha_U P(\text{selected}) \le
            1$ (a `SelfTrainError` if it overflows), or return the "partial" path
            up to there, with the error in `failure`.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    If batches, thresholds or, with annealing, ridges depend on the step, step t rules the stretch
    of time of length $\lambda_U^{(t)}$ that it takes; after the last step its batches stay, and the
    labels are sharpened further.

    >>> from selftrain import Problem, Recipe
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=100)
    >>> path = continuum(problem, Recipe(lambda_u=0.01))
    >>> path
    ContinuumPath(until=1, error 0.193827 -> 0.4, cosine 0.641744 -> 0.999976)
    >>> path(0.5).cosine > path(0.1).cosine
    True
    >>> continuum(problem, Recipe(lambda_u=0.002, annealing=8e-4, fix_bias=True))
    ContinuumPath(until=0.2, error 0.193827 -> 0.0893753, cosine 0.641744 -> 0.99938)
    """
    if on_failure not in ("raise", "partial"):
        raise InvalidInput("on_failure", on_failure, '"raise" or "partial" is accepted')
    shown = checked_progress(progress)
    partial = on_failure == "partial"
    path = follow(problem, recipe, until, tolerance, progress=shown, partial=partial)
    if path.failure is not None and not partial:
        raise path.failure
    return path


def follow(
    problem: Problem,
    recipe: Recipe,
    until: float | None,
    tolerance: float,
    stop_at: float | None = None,
    progress: ProgressOption = None,
    partial: bool = True,
) -> ContinuumPath:
    """The path until a time, or until |artanh cos| is `stop_at` if that comes first; marked if it
    fails. Without `partial` an overflow is raised at once.
    """
    check_continuous(problem, recipe)
    tolerance = checked_tolerance(tolerance)
    if until is None:
        until = math.fsum(recipe.at_steps(problem.steps).lambda_u)
    positive = "a finite number > 0 is accepted"
    until = number("until", until, lambda value: 0 < value < math.inf, positive)
    last = until * (1 - 1e-12)  # a batch that begins at the end, up to rounding, has no part
    pieces = [piece for piece in stretches(problem, recipe) if piece.begin < last]
    flows = [Flow(problem.loss_at(1), piece, recipe.fix_bias) for piece in pieces]
    times = [*(piece.begin for piece in pieces), until]
    y = unknowns(start_of(problem, recipe))
    with Progress(None, "evaluations", progress, expected=2 * until, often=True) as bar:
        for flow in flows:
            flow.bar = bar
        solution, accuracy, evaluations = confirmed(flows, times, y, tolerance, stop_at, partial)
    half, aligned = (
        0.0 if y[1] >= math.atanh(math.sqrt(level)) else next(iter(found), None)
        for level, found in zip(LEVELS, solution.crossings, strict=True)
    )
    begun = tuple(piece for piece in pieces if piece.begin < solution.until)
    return ContinuumPath(
        problem, recipe, solution.until, begun, half, aligned, accuracy, evaluations,
        solution.failure, solution.dense,
    )  # fmt: skip
