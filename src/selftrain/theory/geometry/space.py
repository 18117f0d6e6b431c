"""Which coordinates suit the covariances of a problem, and what both kinds have in common."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from ...arrays import Array
from ...mixture.clusters import Clusters
from ...problem import Problem
from ...runtime.parallel import one_thread
from .matrices import MatrixSpace
from .spectrum import Spectrum

Space = Spectrum | MatrixSpace


def space_of(sets: list[Clusters]) -> Space:
    """Return the coordinates that suit these sets of samples: modes where covariances have common
    axes.
    """
    return Spectrum(sets) if Spectrum.fits(sets) else MatrixSpace(sets)


def space_of_problem(problem: Problem) -> Space:
    """Return the coordinates that suit all sets of samples of a problem."""
    return space_of(list(problem.distinct_clusters))


def threads_of(space: Space) -> AbstractContextManager[object]:
    """Return a context with the threads that suit these coordinates; modes need no linear
    algebra.
    """
    return one_thread() if isinstance(space, MatrixSpace) else nullcontext()


def mean_variance(covariance: Array, features: int) -> float:
    """Return the trace of a covariance per feature."""
    if covariance.ndim == 2:
        return float(np.trace(covariance)) / features
    return float(np.mean(covariance))
