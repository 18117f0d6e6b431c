# The public names, each with its home, and the public modules: `__init__.py` reads this file.

from . import datasets as datasets
from . import errors as errors
from . import estimator as estimator
from . import expansions as expansions
from . import labelers as labelers
from . import losses as losses
from . import paper as paper
from . import results as results
from . import sweeps as sweeps
from .errors import SelfTrainError as SelfTrainError
from .estimator.classifier import SelfTrainingLinearClassifier as SelfTrainingLinearClassifier
from .estimator.few_labels.classifier import FewLabelClassifier as FewLabelClassifier
from .estimator.planning.plan import plan as plan
from .mixture.clusters import Clusters as Clusters
from .problem import Problem as Problem
from .protocol import Protocol as Protocol
from .recipe import Recipe as Recipe
from .simulation.ensemble import Ensemble as Ensemble
from .simulation.simulate import simulate as simulate
from .sweeps.api import sweep as sweep
from .sweeps.grid import geometric as geometric
from .theory.bayes import bayes_error as bayes_error
from .theory.continuum.continuous_time import continuum as continuum
from .theory.gradients.gradient import gradient as gradient
from .theory.solve import solve as solve
from .theory.trajectory import Trajectory as Trajectory
from .tuning.optimize import optimize as optimize
from .tuning.supervised import supervised_optimum as supervised_optimum

__all__: list[str]
__version__: str
