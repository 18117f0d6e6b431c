r"""Tuned runs against their continuous-time limit: the nine panels of `fig: vs continuous squared loss`, for any loss.

For each number of steps T and share $\rho$ the ridges are tuned for the error of the last step, as in the paper; the squared cosine of
that run then stands next to the path of the limit $\lambda_U \to 0$, with the time scale $\tau_M$ of the direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..problem import Problem
from ..recipe import Recipe
from ..theory.continuum import continuum
from ..theory.direction import best_direction
from ..theory.path import ContinuumPath
from ..theory.solve import solve
from ..theory.trajectory import Trajectory
from ..tuning.optimize import optimize

STEPS = (64, 256, 1024)
SHARES = (0.2, 0.4, 0.5)
MEMORY = 6.0
"""The path is drawn over this many time scales of the direction at least."""


@dataclass(frozen=True, eq=False)
class Panel:
    r"""One tuned run and its limit.

    Attributes:
        run: the discrete run at its best ridges.
        path: the continuous-time limit from the same start, at least to the end of the run.
        tau_squared_cosine: $\tau_M$, the time in which the odds M/(1 - M) grow by a factor e, on average until
            M = 0.99; for the squared loss the one of Prediction `pred: squared loss`.
    """

    run: Trajectory
    path: ContinuumPath
    tau_squared_cosine: float

    @property
    def elapsed(self) -> float:
        r"""$\lambda_U^* T$, the time the run takes."""
        return float(np.sum(self.run.recipe.at_steps(self.run.problem.steps).lambda_u))


def continuum_panels(
    loss: str = "squared", steps: Sequence[int] = STEPS, shares: Sequence[float] = SHARES
) -> tuple[Panel, ...]:
    r"""The panels at $(\alpha_L, \alpha_U, \Delta) = (0.5, 2, 0.75^2)$, one for each T and $\rho$.

    >>> (panel,) = continuum_panels("squared", steps=(16,), shares=(0.4,))
    >>> round(panel.tau_squared_cosine, 4), panel.elapsed < 2 * panel.tau_squared_cosine
    (0.446, True)
    """
    return tuple(_panel(loss, count, rho) for count in steps for rho in shares)


def _panel(loss: str, steps: int, rho: float) -> Panel:
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=rho, delta=0.75**2, steps=steps, loss=loss)
    recipe = tuned(problem)
    scale = best_direction(problem, recipe).time_scale
    assert scale is not None
    elapsed = steps * float(recipe.at_steps(steps).lambda_u[0])
    path = continuum(problem, recipe, until=max(elapsed, MEMORY * scale))
    return Panel(solve(problem, recipe), path, scale)


def tuned(problem: Problem) -> Recipe:
    """Naive self-training with the ridges that give the last step the lowest error."""
    return optimize(problem, over=("lambda_l", "lambda_u")).recipe
