"""Types of the results of public functions, besides `Trajectory` and `Ensemble`."""

from .estimator.planning.plan import Plan
from .runtime.progress import ProgressReport
from .simulation.comparison import Comparison
from .sweeps.dataset import Sweep
from .theory.bayes import BayesLimits
from .theory.causal.classes import ClassTrajectory
from .theory.continuum.path import ContinuumPath
from .theory.gradients.gradient import Gradient
from .theory.solved_run import ThinnedRun
from .tuning.optimum import Answer, Optimum
from .tuning.supervised import SupervisedFit, SupervisedOptimum

__all__ = [
    "Answer", "BayesLimits", "ClassTrajectory", "Comparison", "ContinuumPath", "Gradient",
    "Optimum", "Plan", "ProgressReport", "SupervisedFit", "SupervisedOptimum", "Sweep",
    "ThinnedRun",
]  # fmt: skip
