r"""A protocol at finite size: how many samples every group has, and which fit draws them.

At N features a group has $M = \mathrm{round}(\alpha N)$ samples; the ridge on $c = w/\sqrt N$ is
$\lambda N$.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..problem import Problem
from ..protocol import Protocol, Use, protocol_of
from ..recipe import Recipe


class RunPlan(NamedTuple):
    """What a seed runs.

    Attributes:
        problem, recipe: as they were given.
        features: N.
        protocol: which fit uses which samples.
        sizes: the number of samples of every group.
    """

    problem: Problem
    recipe: Recipe
    features: int
    protocol: Protocol
    sizes: tuple[int, ...]

    @property
    def embedded(self) -> bool:
        """Whether the number of features is free: the clusters are spheres around means that lie
        in any space.
        """
        return self.problem.clusters is None

    def new_groups(self, t: int) -> tuple[int, ...]:
        """Return the groups that fit t is the first to use."""
        uses = self.protocol.uses
        return tuple(use.group for use in self.protocol.fits[t].uses if min(uses[use.group]) == t)

    def batch(self, t: int) -> tuple[Use, ...]:
        """Return the uses that measurements of fit t are about: those with pseudo-labels, or all
        if there are none.
        """
        uses = self.protocol.fits[t].uses
        return tuple(use for use in uses if use.labels is not None) or uses

    def rows(self, t: int) -> int:
        """Return the number of samples that measurements of fit t are about."""
        return sum(self.sizes[use.group] for use in self.batch(t))

    def ridge(self, t: int) -> float:
        r"""Return $\lambda N$ of fit t."""
        return self.protocol.fits[t].ridge * self.features

    @property
    def alphas(self) -> Array:
        """Samples per feature as drawn, M/N, of each fit."""
        return np.array([self.rows(t) for t in range(len(self.protocol.fits))]) / self.features


MOST_ROWS = 2.0**53
"""Beyond this the number of samples is not exact."""

VARIANCES = (1e-60, 1e60)
"""The simulators keep samples in single precision, whose numbers go from 1e-38 to 1e38."""


def plan_run(problem: Problem, recipe: Recipe, features: int) -> RunPlan:
    """Return the plan of a simulation with `features` features, validated.

    >>> problem = Problem(alpha_l=0.5, alpha_u=2, rho=0.4, delta=0.5, steps=2)
    >>> plan_run(problem, Recipe(), 100).sizes
    (50, 200, 200)
    """
    protocol = protocol_of(problem, recipe)
    for group in protocol.groups:
        name = "alpha_l" if group.labeled else "alpha_u"
        if group.alpha * features > MOST_ROWS:
            accepted = (
                f"at most {MOST_ROWS:.0e} samples can be drawn, not {group.alpha * features:.0e}: "
                "fewer features or a smaller value"
            )
            raise InvalidInput(name, getattr(problem, name), accepted)
        delta = group.law.sphere
        if problem.clusters is None and not VARIANCES[0] <= delta <= VARIANCES[1]:
            name = "delta" if group.labeled or problem.delta_u is None else "delta_u"
            accepted = "a simulation needs variances from 1e-60 to 1e60"
            raise InvalidInput(name, getattr(problem, name), accepted)
    alphas = np.array([group.alpha for group in protocol.groups])
    sizes = np.rint(alphas * features).astype(int)
    if sizes.min() < 2:
        least = int(np.ceil(1.5 / alphas.min()))
        least += int(np.rint(least * alphas.min()) < 2)  # a half is rounded to the even number
        name = protocol.groups[int(sizes.argmin())].name
        accepted = (
            f"2 samples are needed, and {name!r} would have {sizes.min()}: give {least} features"
            " or more"
        )
        raise InvalidInput("features", features, accepted)
    return RunPlan(problem, recipe, features, protocol, tuple(sizes.tolist()))
