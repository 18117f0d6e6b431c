r"""What no linear rule can beat on clusters with a shape.

The Bayes limit of `bayes` counts what the data say about a direction of which nothing is known but
its length. For clusters with a shape it would depend on how mean and covariances are distributed,
which nobody states: it has no meaning here. The error of the best linear rule when everything is
known has one.
"""

from __future__ import annotations

import math

from ..problem import Problem

NO_BAYES_LIMIT = (
    "The Bayes limit with an unknown direction has no meaning for clusters with a shape: "
    "it would need a law of means and covariances."
)


def best_linear_error(problem: Problem) -> float:
    """The error of the best linear rule on the test mixture of a problem with clusters.

    >>> from selftrain import Clusters
    >>> clusters = Clusters(mean=[1.0, 0.0], covariance=[1.0, 4.0])
    >>> problem = Problem(alpha_l=2.0, alpha_u=4.0, rho=0.5, clusters=clusters, steps=1)
    >>> round(best_linear_error(problem), 6)
    0.158655
    """
    shape = problem.test_clusters
    if math.isinf(shape.separation):
        return 0.0
    return shape.best_rule(problem.test_mixture.rho).error
