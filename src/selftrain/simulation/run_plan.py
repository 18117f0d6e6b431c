r"""A protocol at finite size: the numbers of samples, the fits that draw them, the memory needed.

At N features a group has $M = \mathrm{round}(\alpha N)$ samples; the ridge on $c = w/\sqrt N$ is
$\lambda N$.
"""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..mixture.clusters import Clusters
from ..protocol import Protocol, Use


class RunPlan(NamedTuple):
    """The plan of a run, the same for all seeds.

    Attributes:
        protocol: groups of samples and fits.
        features: N.
        sizes: the number of samples of every group.
    """

    protocol: Protocol
    features: int
    sizes: tuple[int, ...]

    @property
    def embedded(self) -> bool:
        """Whether the clusters are spheres without a number of features of their own, which are
        embedded in N features.
        """
        return chooses_features(self.protocol)

    @property
    def directions(self) -> Array:
        """Directions that span the class means of embedded clusters, one row each; if there is only
        one, it is chosen such that all features have the same law.
        """
        count = self.protocol.groups[0].law.features
        if count == 1:
            return np.full((1, self.features), self.features**-0.5)
        return np.eye(count, self.features)

    def means(self, law: Clusters) -> Array:
        """Return the class means in the space of the run, one row per class."""
        return np.asarray(law.means @ self.directions) if self.embedded else law.means

    def new_groups(self, t: int) -> tuple[int, ...]:
        """Return the groups that fit t is the first to use."""
        uses = self.protocol.uses
        return tuple(use.group for use in self.protocol.fits[t].uses if min(uses[use.group]) == t)

    def batch(self, t: int) -> tuple[Use, ...]:
        """Return the uses that make up the batch of fit t, on which it is measured: those with
        pseudo-labels, or all if there are none.
        """
        uses = self.protocol.fits[t].uses
        return tuple(use for use in uses if use.labels is not None) or uses

    def rows(self, t: int) -> int:
        """Return the number of samples in the batch of fit t."""
        return sum(self.sizes[use.group] for use in self.batch(t))

    def ridge(self, t: int) -> float:
        r"""Return $\lambda N$ of fit t."""
        return self.protocol.fits[t].ridge * self.features

    @property
    def alphas(self) -> Array:
        """Samples per feature as drawn, M/N, of each fit."""
        return np.array([self.rows(t) for t in range(len(self.protocol.fits))]) / self.features


MOST_ROWS = 2.0**53
"""Largest number of samples; larger numbers are not exact as floats."""

FRAME_DIRECTIONS, REVEALED_DIRECTIONS = 20, 60
"""Usual numbers of directions of a fit, for an estimate of the memory."""

VARIANCES = (1e-60, 1e60)
"""Range of delta: samples, with its square root, are in single precision (1e-38 to 1e38)."""


def chooses_features(protocol: Protocol) -> bool:
    """Return whether the number of features can be chosen: all clusters are spheres, of two classes
    given by `delta`, or of K classes.
    """
    laws = [group.law for group in (*protocol.groups, protocol.test)]
    return all(law.is_sphere for law in laws) and (protocol.classes > 2 or laws[0].features == 1)


def drawn_sizes(protocol: Protocol, features: int) -> Array:
    """Return the number of samples of every group."""
    alphas = np.array([group.alpha for group in protocol.groups])
    return np.asarray(np.rint(alphas * features).astype(int))


def plan_run(protocol: Protocol, features: int) -> RunPlan:
    """Return the validated plan of a protocol with `features` features.

    >>> from selftrain import Problem, Recipe
    >>> from selftrain.protocol import protocol_of
    >>> problem = Problem(alpha_l=0.5, alpha_u=2, rho=0.4, delta=0.5, steps=2)
    >>> plan_run(protocol_of(problem, Recipe()), 100).sizes
    (50, 200, 200)
    """
    alphas = np.array([group.alpha for group in protocol.groups])
    largest = float(alphas.max()) * features
    if largest > MOST_ROWS:
        accepted = f"at most {MOST_ROWS:.0e} samples can be drawn, not {largest:.0e}"
        raise InvalidInput("features", features, accepted)
    if chooses_features(protocol):
        for law in (group.law for group in (*protocol.groups, protocol.test)):
            if not VARIANCES[0] <= float(law.covariance) <= VARIANCES[1]:
                accepted = "must be from 1e-60 to 1e60 in a simulation"
                raise InvalidInput("delta", float(law.covariance), accepted)
        needed = protocol.groups[0].law.features
        if features < needed:
            raise InvalidInput("features", features, f"must be {needed} or more for these means")
    sizes, fewest = drawn_sizes(protocol, features), protocol.classes
    if sizes.min() < fewest:
        least = int(np.ceil((fewest - 0.5) / alphas.min()))
        least += int(np.rint(least * alphas.min()) < fewest)  # a half is rounded to the even number
        name = protocol.groups[int(sizes.argmin())].name
        accepted = (
            f"{fewest} samples are needed, one per class, and {name!r} would have {sizes.min()}:"
            f" give {least} features or more"
        )
        raise InvalidInput("features", features, accepted)
    return RunPlan(protocol, features, tuple(sizes.tolist()))


def available_memory() -> float:
    """Return the number of bytes that can be allocated without swapping; infinity if unknown."""
    with suppress(OSError):  # only Linux has this file
        free = re.search(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text())
        if free:
            return 1024 * int(free[1])
    if not hasattr(os, "sysconf"):  # Windows
        return math.inf
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def needed_memory(plan: RunPlan, method: str) -> int:
    """Return the number of bytes that one worker needs at the peak."""
    rows = max(plan.rows(t) for t in range(len(plan.protocol.fits)))
    if method == "matrix-free":
        return 8 * rows * (FRAME_DIRECTIONS + 6)
    pairs = zip(plan.sizes, plan.protocol.uses, strict=True)
    stored = sum(size for size, uses in pairs if len(uses) > 1)
    if method == "revealed":
        asked = REVEALED_DIRECTIONS * (len(plan.protocol.fits) if stored else 1)
        return 16 * (rows + stored + plan.features) * min(asked, plan.features)
    return 8 * (rows + stored) * (plan.features + 10)


def check_memory(
    plan: RunPlan, method: str, workers: int, seeds: int, kept: int, limit: int | None
) -> None:
    """Raise if a run does not fit into memory; the message has what it needs and what would fit.

    Arguments:
        seeds: number of seeds.
        kept: count of numbers stored for every seed: measured quantities, and vectors if requested.
        limit: bytes that may be used; None for the available memory.
    """
    room = available_memory() if limit is None else limit
    working, stored = workers * needed_memory(plan, method), 8 * kept * seeds
    needed = working + stored
    if needed <= room:
        return
    there = f"{room / 1e9:.3g} GB {'are free' if limit is None else 'are allowed'}"
    fitting = int((room - working) / (8 * kept))
    if working <= stored and fitting > 0:
        what = f"their results would take {stored / 1e9:.3g} GB of memory, {there}"
        raise InvalidInput("seeds", seeds, f"{what}; about {fitting:,} seeds would fit")
    share = needed / room
    share = share if method in ("matrix-free", "revealed") else share**0.5
    advice = f"about {int(plan.features / share):,} features would fit"
    if method == "dense":
        advice += ", and method='matrix-free' needs no matrix"
    elif workers > 1:
        advice += f", or fewer workers than {workers}"
    what = f"method {method!r} would take {needed / 1e9:.3g} GB of memory, {there}"
    raise InvalidInput("features", plan.features, f"{what}; {advice}")
