"""Derivatives at the edge of a collapse, after a tiny ridge, and of steep labels under a strong
prox.

The values come from `python -m benchmarks gradient-study`: derivatives carried forward by complex
steps through the equations of `benchmarks/confirmation/extended.py`, which shares no code with the
package.
"""

from __future__ import annotations

import math

import pytest

from selftrain import Problem, Recipe, gradient, solve

CLOSE = 1e-7


def test_on_the_verge_of_a_collapse() -> None:
    """The bias is two hundred times the weights, and at the next step one class is left: equations
    and unknowns differ by many orders. Without scales the annealing was off by 2e-3.
    """
    problem = Problem(3.465, 0.12, 0.01139, 0.07743, steps=3, test="labeled")
    recipe = Recipe(1.643e-6, 0.09258, sharpness=2.363, annealing=0.2796)
    run = solve(problem, recipe, tolerance=1e-12)
    assert run.collapsed_at == 3
    slope = gradient(run, "one_minus_cosine", 2)
    assert slope["annealing"] == pytest.approx(-0.00011635320455189889, rel=CLOSE)
    assert slope["lambda_l"] == pytest.approx(569.9999720071469, rel=CLOSE)
    assert slope["alpha_l"] == pytest.approx(-0.012692749751396646, rel=CLOSE)


def test_after_a_tiny_ridge() -> None:
    """A first step with ridge 3e-8 has a susceptibility of 2e7; the derivatives were off by
    5e-5.
    """
    problem = Problem(1.079, 10.64, 0.114, 3.746, steps=6, test="labeled")
    recipe = Recipe(2.743e-8, 0.0367, sharpness=math.inf, fix_bias=True)
    slope = gradient(solve(problem, recipe, tolerance=1e-12), "one_minus_cosine")
    assert slope["lambda_l"] == pytest.approx(13.466187706625533, rel=CLOSE)
    assert slope["alpha_l"] == pytest.approx(-2.2437904140105817e-06, rel=CLOSE)


def test_steep_labels_under_a_strong_prox() -> None:
    """A label moves the slope of its point by 1 - c k, here about 1e-6: as the difference of one
    and an average it lost six digits, and the derivatives were off by 3e-6.
    """
    problem = Problem(5.717, 0.1317, 0.03146, 0.1999, steps=4, test="labeled")
    recipe = Recipe(8.162, 3.402e-8, sharpness=13.15, fix_bias=True)
    slope = gradient(solve(problem, recipe, tolerance=1e-12), "one_minus_cosine")
    assert slope["lambda_l"] == pytest.approx(-4.689580953122595e-06, rel=CLOSE)
    assert slope["alpha_l"] == pytest.approx(6.722667770593949e-06, rel=CLOSE)
