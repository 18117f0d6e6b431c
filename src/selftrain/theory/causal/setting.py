"""The input of the replicates of a run: a protocol in coordinates, and the fits that are known.

For two classes, the steps before the first reuse of samples are those of fresh batches: the exact
engine solves them, and replicates begin after them.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...labelers import SoftLabels
from ...losses import Squared
from ...problem import Problem
from ...protocol import Protocol, protocol_of
from ...recipe import Recipe
from ...runtime.progress import Progress
from ..stats import SolverStats
from .coordinates import Coordinates
from .draws import PointSource
from .response import Scores, engine_loss
from .unknowns import Law

if TYPE_CHECKING:
    from ..trajectory import Trajectory


class Setting(NamedTuple):
    """The input of the replicates of a run.

    Attributes:
        protocol: the groups of samples and the fits.
        origin: the problem and the recipe that it was made from, or a pair of None.
        exact: the run of the steps before samples are reused, for two classes.
        space: coordinates of the weights.
        losses: the loss of every fit.
        begin: the first fit to solve on points, which is the first that uses reused samples.
        last: the last fit to solve.
        lost: fits to leave out, because they collapsed or depend on one that did.
        bar: progress bar over the fits of all replicates; a fit counts in proportion to its points.
    """

    protocol: Protocol
    origin: tuple[Problem | None, Recipe | None]
    exact: Trajectory | None
    space: Coordinates
    losses: tuple[Scores, ...]
    begin: int
    last: int
    lost: frozenset[int] = frozenset()
    bar: Progress | None = None

    @classmethod
    def of(cls, protocol: Protocol) -> Setting:
        """Return the input of the replicates of a protocol."""
        space = Coordinates([*(group.law for group in protocol.groups), protocol.test.law])
        losses = tuple(engine_loss(fit.loss, protocol.classes) for fit in protocol.fits)
        return cls(protocol, (None, None), None, space, losses, 0, protocol.steps)

    @property
    def test(self) -> Law:
        """The clusters of test samples."""
        law: Law = self.protocol.test.law
        return law

    @property
    def fits(self) -> int:
        """The number of fits."""
        return len(self.protocol.fits)

    @property
    def known(self) -> int:
        """The number of fits that the exact engine has solved."""
        return 0 if self.exact is None else self.exact.good_steps

    @property
    def linear(self) -> bool:
        """Whether labels and slopes are linear in the fields, so that averages are exact."""
        uses = (use for fit in self.protocol.fits for use in fit.uses)
        labels = [use.labels for use in uses if use.labels is not None]
        soft = all(type(made.labeler) is SoftLabels and not made.jumps for made in labels)
        return soft and all(type(fit.loss) is Squared for fit in self.protocol.fits)

    def expect(self, source: PointSource, replicates: int = 1) -> None:
        """Add the fits of some replicates to the total of the progress bar."""
        if self.bar is not None:
            steps = replicates * (self.last + 1 - self.begin)
            self.bar.extend(steps, steps * source.work)


def setting_of(problem: Problem, recipe: Recipe, exact: Trajectory | None = None) -> Setting:
    """Return the input of the replicates of a problem and a recipe.

    Arguments:
        exact: the run of the steps before samples are reused; None for K classes.
    """
    protocol = protocol_of(problem, recipe)
    setting = Setting.of(protocol)._replace(origin=(problem, recipe))
    if exact is None:
        return setting
    begin = min((min(uses) for uses in protocol.uses if len(uses) > 1), default=0)
    return setting._replace(exact=exact, begin=begin)


def before_reuse(problem: Problem, recipe: Recipe) -> tuple[Problem, Recipe]:
    """Return the problem and recipe of the steps before the first that reuses samples."""
    first = protocol_of(problem, recipe).first_reuse
    assert first is not None
    if first == 1:
        alone = problem.labeled_alone().replace(test=problem.test_pair)
        return alone, Recipe(lambda_l=recipe.lambda_l, labeler=recipe.labeler)
    values = recipe.at_steps(problem.steps)
    ridge, threshold, sharpness = (tuple(column[: first - 1].tolist()) for column in values)
    alpha, rho, delta = (tuple(column[: first - 1].tolist()) for column in problem.unlabeled)
    law = (
        {"clusters_u": problem.batch_clusters[: first - 1]}
        if problem.shaped
        else {"delta_u": delta}
    )
    shorter = problem.replace(
        steps=first - 1, alpha_u=alpha, rho_u=rho, **law, test=problem.test_pair, batches="fresh",
        keep_labeled=0.0,
    )  # fmt: skip
    words = {"lambda_u": ridge, "threshold": threshold, "sharpness": sharpness, "annealing": 0.0}
    return shorter, recipe.replace(**words)


def ended_early(problem: Problem, recipe: Recipe, first: Trajectory) -> Trajectory:
    """Return a run that collapsed or failed before any sample was reused."""
    missing, size = problem.steps - first.problem.steps, first.problem.steps + 1
    longer: dict[str, Any] = {}
    for entry in fields(first):
        value = getattr(first, entry.name)
        if isinstance(value, np.ndarray) and value.shape[:1] == (size,):
            longer[entry.name] = np.append(value, np.full((missing, *value.shape[1:]), np.nan), 0)
    stats = first.stats
    nothing = np.zeros(missing, dtype=np.int64)
    spent = SolverStats(
        stats.tolerance,
        np.append(stats.evaluations, nothing),
        np.append(stats.nodes, nothing),
        np.append(stats.accuracy, np.full(missing, np.nan)),
        (*stats.start, *[""] * missing),
    )
    return replace(first, problem=problem, recipe=recipe, stats=spent, fading=None, **longer)
