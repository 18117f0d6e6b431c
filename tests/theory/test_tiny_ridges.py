"""Runs from separable labelled points at ridges where numbers end."""

from selftrain import Problem, Recipe, solve


def test_tiny_ridges_of_separable_points_are_confirmed() -> None:
    """Fields of steep models (scale 11) bend at +-ln c too, c the strength of the prox."""
    problem = Problem(0.5, 2.0, 0.2, 0.5625, steps=8)
    for ridges in ((1e-10, 1e-10), (1e-11, 4e-11), (1e-12, 1e-12)):
        run = solve(problem, Recipe(*ridges))
        assert run.stats.accuracy.max() < 1e-8
