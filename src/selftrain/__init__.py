"""Theory, simulation and practice of self-training linear classifiers.

>>> from selftrain import Problem, Recipe, solve
>>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
>>> run = solve(problem, Recipe(lambda_l=0.05, lambda_u=0.05))
>>> round(float(run.error[0]), 6)
0.193827
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        ConvergenceError,
        EmptySelection,
        InvalidInput,
        NoExpansion,
        NoGradient,
        SelfTrainError,
        StageError,
        StateOverflow,
    )
    from .estimator.classifier import SelfTrainingLinearClassifier
    from .estimator.planning.plan import Plan, plan
    from .mixture.clusters import Clusters
    from .problem import Problem
    from .recipe import Recipe
    from .runtime.progress import ProgressReport
    from .simulation.ensemble import Ensemble, SeedError
    from .simulation.simulate import simulate
    from .sweeps.api import sweep
    from .sweeps.cluster import Unreachable
    from .sweeps.grid import geometric
    from .sweeps.store import StoreError
    from .theory.bayes import bayes_error
    from .theory.continuum.best_direction import best_direction
    from .theory.continuum.continuum import continuum
    from .theory.continuum.expansion import first_order, second_order_noise
    from .theory.continuum.path import ContinuumPath
    from .theory.continuum.squared_closed_form import squared_closed_form
    from .theory.gradients.gradient import Gradient, gradient
    from .theory.solve import solve
    from .theory.state import State
    from .theory.trajectory import Trajectory
    from .tuning.optimize import optimize
    from .tuning.optimum import Optimum
    from .tuning.supervised import supervised_optimum

_homes = {
    "StateOverflow": ".errors",
    "EmptySelection": ".errors",
    "ConvergenceError": ".errors",
    "Clusters": ".mixture.clusters",
    "ContinuumPath": ".theory.continuum.path",
    "Ensemble": ".simulation.ensemble",
    "Gradient": ".theory.gradients.gradient",
    "InvalidInput": ".errors",
    "NoExpansion": ".errors",
    "NoGradient": ".errors",
    "Optimum": ".tuning.optimum",
    "Plan": ".estimator.planning.plan",
    "Problem": ".problem",
    "ProgressReport": ".runtime.progress",
    "Recipe": ".recipe",
    "SeedError": ".simulation.ensemble",
    "SelfTrainError": ".errors",
    "SelfTrainingLinearClassifier": ".estimator.classifier",
    "StageError": ".errors",
    "StoreError": ".sweeps.store",
    "Unreachable": ".sweeps.cluster",
    "State": ".theory.state",
    "Trajectory": ".theory.trajectory",
    "bayes_error": ".theory.bayes",
    "best_direction": ".theory.continuum.best_direction",
    "continuum": ".theory.continuum.continuum",
    "first_order": ".theory.continuum.expansion",
    "geometric": ".sweeps.grid",
    "gradient": ".theory.gradients.gradient",
    "optimize": ".tuning.optimize",
    "plan": ".estimator.planning.plan",
    "second_order_noise": ".theory.continuum.expansion",
    "simulate": ".simulation.simulate",
    "solve": ".theory.solve",
    "squared_closed_form": ".theory.continuum.squared_closed_form",
    "supervised_optimum": ".tuning.supervised",
    "sweep": ".sweeps.api",
}

__all__ = [
    "Clusters",
    "ContinuumPath",
    "ConvergenceError",
    "EmptySelection",
    "Ensemble",
    "Gradient",
    "InvalidInput",
    "NoExpansion",
    "NoGradient",
    "Optimum",
    "Plan",
    "Problem",
    "ProgressReport",
    "Recipe",
    "SeedError",
    "SelfTrainError",
    "SelfTrainingLinearClassifier",
    "StageError",
    "State",
    "StateOverflow",
    "StoreError",
    "Trajectory",
    "Unreachable",
    "bayes_error",
    "best_direction",
    "continuum",
    "first_order",
    "geometric",
    "gradient",
    "optimize",
    "plan",
    "second_order_noise",
    "simulate",
    "solve",
    "squared_closed_form",
    "supervised_optimum",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that the command line starts fast."""
    if name == "__version__":
        return import_module("importlib.metadata").version("selftrain")
    if name == "sweeps":
        return import_module(".sweeps", __name__)
    if name == "paper":
        import_module(".paper.figure", __name__)
        return import_module(".paper", __name__)
    if name in _homes:
        return getattr(import_module(_homes[name], __name__), name)
    raise AttributeError(f"module 'selftrain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
