r"""The headline: what self-training gains with imbalanced classes, and what it needs for that.

Four methods are tuned on the same data within the same bounds: the supervised baseline, naive
self-training, self-training with annealed labels and a fixed bias (`heuristics: annealing`,
`heuristics: bias fixing`), and the fully supervised fit. They are compared with the Bayes errors
and with finite systems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from selftrain.paper.computations.tuned import tuned
from selftrain.parameters import SEARCH_BOUNDS
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.runtime.progress import ProgressOption
from selftrain.theory.bayes import BayesLimits, bayes_error
from selftrain.theory.solve import solve
from selftrain.theory.trajectory import Trajectory
from selftrain.tuning.supervised import SupervisedOptimum, supervised_optimum

if TYPE_CHECKING:
    from selftrain.simulation.ensemble import Ensemble

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=16)

RIDGES = ("lambda_l", "lambda_u")
BOUNDS = {name: SEARCH_BOUNDS[name] for name in (*RIDGES, "annealing")}


@dataclass(frozen=True)
class Contender:
    """A method: a recipe, its theory, and finite systems.

    Attributes:
        name: its name in the table and in the figure.
        tuned: names of the hyperparameters that were tuned.
        run: the theory.
        simulated: finite systems; None if they are not simulated.
    """

    name: str
    tuned: tuple[str, ...]
    run: Trajectory
    simulated: Ensemble | None = field(default=None, repr=False)

    @property
    def at_bounds(self) -> dict[str, str]:
        """Tuned hyperparameters at a bound: name to "lowest" or "highest"."""
        ended = {}
        for name in self.tuned:
            low, high = BOUNDS[name]
            value = getattr(self.run.recipe, name)
            if value <= 1.01 * low or (low == 0 and value <= 1e-9):
                ended[name] = "lowest"
            elif value >= high * 0.99:
                ended[name] = "highest"
        return ended


@dataclass(frozen=True)
class Headline:
    """The results that the headline figure and table show.

    `helped` has both heuristics; `unhelped` is the same recipe without them.
    """

    problem: Problem
    labeled_only: Contender
    naive: Contender
    helped: Contender
    unhelped: Contender
    supervised: SupervisedOptimum
    limits: BayesLimits

    def __iter__(self) -> Iterator[Contender]:
        """Iterate over the methods that have steps."""
        return iter((self.naive, self.helped, self.unhelped))


def headline() -> Headline:
    """Tune every method by theory."""
    start = PROBLEM.replace(steps=0)
    found = tuned(PROBLEM, RIDGES, [Recipe(ridge, ridge) for ridge in (1e-6, 1e-3)])
    alone, naive = Recipe(lambda_l=found.labeled_only.ridge), found.recipe
    helped = tuned(
        PROBLEM,
        tuple(BOUNDS),
        [Recipe(0.05, 3e-3, annealing=annealing, fix_bias=True) for annealing in (0.03, 0.3)],
    ).recipe
    unhelped = helped.replace(annealing=0.0, fix_bias=False)
    return Headline(
        problem=PROBLEM,
        labeled_only=Contender("labelled samples only", RIDGES[:1], solve(start, alone)),
        naive=Contender("naive self-training, tuned", RIDGES, solve(PROBLEM, naive)),
        helped=Contender(
            "annealed labels, bias fixed, tuned", tuple(BOUNDS), solve(PROBLEM, helped)
        ),
        unhelped=Contender("the same, heuristics off", (), solve(PROBLEM, unhelped)),
        supervised=supervised_optimum(PROBLEM),
        limits=bayes_error(PROBLEM),
    )


def simulated(
    story: Headline, features: int = 16384, seeds: int = 8, progress: ProgressOption = None
) -> Headline:
    """Add simulated finite systems for the method with the heuristics.

    The naive optimum is not simulated: its ridge is near 1e-6 and the labelled data are separable,
    so the fit of a finite system is ill-conditioned.

    Arguments:
        features: size N of the simulated systems.
        seeds: number of systems.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
    """
    from selftrain.simulation.simulate import simulate

    recipe = story.helped.run.recipe
    systems = simulate(story.problem, recipe, features, seeds, probes=0, progress=progress)
    return replace(story, helped=replace(story.helped, simulated=systems))
