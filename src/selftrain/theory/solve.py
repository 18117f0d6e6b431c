r"""`solve`: the large-system limit of iterative self-training, for any problem and recipe, and of
any other training protocol.

It selects one of two engines. `exact` solves problems of two classes in which every sample is used
once. `causal` solves problems with data reuse (from the first reuse on; `exact` solves the steps
before it), K > 2 classes, and protocols.
"""

from __future__ import annotations

from typing import Any, overload

from ..errors import InvalidInput
from ..fields import number
from ..problem import Problem
from ..protocol import Protocol
from ..recipe import Recipe
from ..runtime.progress import ProgressOption, checked_progress
from .causal.classes import ClassTrajectory
from .causal.setting import Setting, before_reuse, ended_early, setting_of
from .causal.solve import solve_causal
from .exact import solve_exact
from .tolerances import TOLERANCE, TOLERANCES
from .trajectory import Trajectory

__all__ = ["solve"]


@overload
def solve(
    problem: Problem,
    recipe: Recipe,
    tolerance: float | None = None,
    on_failure: str = "raise",
    warm_start: Trajectory | None = None,
    progress: ProgressOption = None,
) -> Trajectory: ...


@overload
def solve(
    problem: Protocol,
    recipe: None = None,
    tolerance: float | None = None,
    on_failure: str = "raise",
    warm_start: None = None,
    progress: ProgressOption = None,
) -> ClassTrajectory: ...


def solve(
    problem: Problem | Protocol,
    recipe: Recipe | None = None,
    tolerance: float | None = None,
    on_failure: str = "raise",
    warm_start: Trajectory | None = None,
    progress: ProgressOption = None,
) -> Any:
    """Solve the self-consistent equations of every step (Definition `def: self-consistent
    equations`).

    Arguments:
        problem: data and loss; or a `Protocol`, groups of samples and fits to them.
        recipe: hyperparameters; none for a protocol, which has its own.
        tolerance: relative accuracy of the state of each step, between 1e-13 and 1e-3; default:
            1e-10. If rounding or a kinked loss prevents it, a step is accepted up to 1e-8;
            `stats.accuracy` reports the accuracy reached. With data reuse (`Problem(batches=...,
            keep_labeled=...)`) averages are over quasi-Monte Carlo samples, and the smallest
            tolerance is 1e-7. Its default is then 1e-5; 1e-4 with hard labels or a threshold, for
            general covariances, and for 3 or 4 classes; 1e-3 for more classes. A step is accepted
            up to ten times that if more than 131,072 points per replicate would be needed. The
            squared loss with soft labels and no threshold stays exact.
        on_failure: "raise" a `StageError`, or return the "partial" trajectory up to the failure,
            with NaN after it and the error in `failure`.
        warm_start: the run of a similar problem and recipe with the same number of steps, from
            which this one needs fewer evaluations. It changes the result within the tolerance only.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    Returns:
        A `Trajectory` over t = 0..steps; for more than two classes, and for a protocol, a
        `results.ClassTrajectory`. A run ends early if the pseudo-labels collapse: all are of one
        class (with K classes: one class is missing). This is a result, marked in `collapsed_at`,
        and not a failure.

    >>> from selftrain import Problem, Recipe
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
    >>> run = solve(problem, Recipe(lambda_l=0.05, lambda_u=0.05))
    >>> run
    Trajectory(steps=16, error 0.193827 -> 0.399977, cosine 0.641744 -> 0.966967)
    """
    asked = None if tolerance is None else checked_tolerance(tolerance)
    if isinstance(problem, Protocol):
        _check_protocol(recipe, on_failure, warm_start)
        return solve_causal(Setting.of(problem), asked, on_failure, checked_progress(progress))
    problem, recipe = _checked(problem, recipe, on_failure, warm_start)
    checked_progress(progress)
    recipe.at_steps(problem.steps)
    if problem.classes > 2:
        return solve_causal(setting_of(problem, recipe), asked, on_failure, progress)
    if problem.every_sample_once:
        wanted = TOLERANCE if asked is None else asked
        return solve_exact(problem, recipe, wanted, on_failure, warm_start, progress)
    first = solve(*before_reuse(problem, recipe), on_failure=on_failure, progress=False)
    if first.collapsed_at is not None or first.failure is not None:
        return ended_early(problem, recipe, first)
    return solve_causal(setting_of(problem, recipe, first), asked, on_failure, progress)


def checked_tolerance(tolerance: Any) -> float:
    """Return a validated tolerance."""
    least, most = TOLERANCES
    accepted = "must be between 1e-13 and 1e-3"
    return number("tolerance", tolerance, lambda value: least <= value <= most, accepted)


def _check_protocol(recipe: Any, on_failure: Any, warm_start: Any) -> None:
    for name, value in (("recipe", recipe), ("warm_start", warm_start)):
        if value is not None:
            accepted = "must not be given: a protocol states what is fitted, and how"
            raise InvalidInput(name, value, accepted)
    _check_ending(on_failure)


def _check_ending(on_failure: Any) -> None:
    if not isinstance(on_failure, str) or on_failure not in ("raise", "partial"):
        raise InvalidInput("on_failure", on_failure, 'must be "raise" or "partial"')


def _checked(problem: Any, recipe: Any, on_failure: Any, warm_start: Any) -> tuple[Problem, Recipe]:
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem or a Protocol")
    if not isinstance(recipe, Recipe):
        raise InvalidInput("recipe", recipe, "must be a selftrain.Recipe")
    _check_ending(on_failure)
    if warm_start is not None and not isinstance(warm_start, Trajectory):
        accepted = "must be a result of selftrain.solve for two classes, or None"
        raise InvalidInput("warm_start", warm_start, accepted)
    if warm_start is not None and warm_start.problem.steps != problem.steps:
        accepted = f"must be a run of as many steps as the problem has, {problem.steps}"
        raise InvalidInput("warm_start", warm_start, accepted)
    return problem, recipe
