r"""Random steps in faded, grown and sharpened states, put back into their equations in fifty
digits.

Nothing of the engines is used: trapezoidal sums in both noises, which are exact to all digits that
matter while the logits are of order one or less, proximal points by Newton's method in mpmath, the
conjugates by integration by parts. What is compared is the state itself: each order parameter with
the one that the equations give from it.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from selftrain import Problem, Recipe, Trajectory, solve

STEP = mpf(1) / 2
"""Stride of the sums: an error exp(-2 pi^2/h^2) for the Gaussian, exp(-2 pi d/h) for a pole at
distance d > 4.
"""

NODES = [STEP * j for j in range(-18, 19)]


def slope(label: Any, change: Any) -> Any:
    """sigma(y + u) - sigma(y)."""
    return 1 / (1 + mpmath.exp(-label - change)) - 1 / (1 + mpmath.exp(-label))


def trained(label: Any, field: Any, c: Any) -> tuple[Any, Any]:
    """f and its derivative in the field, at field = logit of the label + `field`."""
    u = field / (1 + c / 4)
    for _ in range(60):
        p = 1 / (1 + mpmath.exp(-label - u))
        move = (field - u - c * slope(label, u)) / (1 + c * p * (1 - p))
        u += move
        if abs(move) <= mpf(10) ** -45 * abs(u):
            break
    p = 1 / (1 + mpmath.exp(-label - u))
    return slope(label, u), p * (1 - p) / (1 + c * p * (1 - p))


def averages(run: Trajectory, t: int) -> dict[str, Any]:
    """E of f, |f|, s f, g f, f^2 and k over the two classes and both noises."""
    rho, delta = (mpf(float(column[t - 1])) for column in run.problem.unlabeled[1:])
    gamma = mpf(float(run.recipe.at_steps(run.problem.steps).sharpness[t - 1]))
    m, bias, chi, overlap = (
        mpf(float(getattr(run, name)[t])) for name in ("m", "bias", "chi", "overlap")
    )
    old_m, old_v, old_bias = (mpf(float(getattr(run, name)[t - 1])) for name in ("m", "v", "bias"))
    old_q = old_m**2 + old_v
    chi_hat, m_hat = (mpf(float(getattr(run, name)[t])) for name in ("chi_hat", "m_hat"))
    fresh = chi * mpmath.sqrt(delta * (chi_hat + m_hat**2 * old_v / old_q))
    root, along = mpmath.sqrt(delta * old_q), overlap * mpmath.sqrt(delta / old_q)
    total = dict.fromkeys(("f", "size", "sf", "gf", "ff", "k"), mpf(0))
    weight = [STEP * mpmath.npdf(g) for g in NODES]
    for s, share in ((1, rho), (-1, 1 - rho)):
        for g, outer in zip(NODES, weight, strict=True):
            label = gamma * (s * old_m + old_bias + root * g)
            centre = s * m + bias + along * g - label
            for n, inner in zip(NODES, weight, strict=True):
                w = share * outer * inner
                if w < mpf(10) ** -24:
                    continue
                f, k = trained(label, centre + fresh * n, chi * delta)
                for name, value in zip(total, (f, abs(f), s * f, g * f, f * f, k), strict=True):
                    total[name] += w * value
    return total


def distances(run: Trajectory, t: int) -> dict[str, float]:
    """Relative distance of every order parameter from what the equations make of the state."""
    with mp.workdps(50):
        alpha, delta = (mpf(float(run.problem.unlabeled[i][t - 1])) for i in (0, 2))
        ridge = mpf(float(run.recipe.at_steps(run.problem.steps).lambda_u[t - 1]))
        e = averages(run, t)
        old_m, old_v = (mpf(float(getattr(run, name)[t - 1])) for name in ("m", "v"))
        old_q, overlap = old_m**2 + old_v, mpf(float(run.overlap[t]))
        q_hat, chi_hat, m_hat = alpha * delta * e["k"], alpha * delta * e["ff"], -alpha * e["sf"]
        r_hat = -alpha * mpmath.sqrt(delta / old_q) * e["gf"] + overlap / old_q * q_hat
        chi = 1 / (q_hat + ridge)
        found = {
            "chi": chi,
            "chi_hat": chi_hat,
            "m": (m_hat + r_hat * old_m) * chi,
            "v": (chi_hat + r_hat**2 * old_v) * chi**2,
            "overlap": (m_hat * old_m + r_hat * old_q) * chi,
        }
        norm = {"m": math.sqrt(run.q[t]), "overlap": math.sqrt(run.q[t] * run.q[t - 1])}
        apart = {}
        for name, value in found.items():
            stored = mpf(float(getattr(run, name)[t]))
            apart[name] = float(abs(value - stored) / mpf(norm.get(name, abs(float(stored)))))
        if not run.recipe.fix_bias:
            apart["bias"] = float(abs(e["f"]) / e["size"])
        return apart


def random_case(seed: int) -> tuple[Problem, Recipe, int]:
    """Ridges that let the weights fade by orders of magnitude, labels that are sharpened a little
    or much.
    """
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(2, 12))
    problem = Problem(
        10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-1, 1), rng.uniform(0.05, 0.5),
        10 ** rng.uniform(-1, 0), steps=steps,
    )  # fmt: skip
    near_one = 1.0 + rng.choice([-1, 1]) * 10 ** rng.uniform(-13, -1)
    recipe = Recipe(
        10 ** rng.uniform(0, 3), 10 ** rng.uniform(-0.5, 2), sharpness=float(near_one),
        fix_bias=True,
    )  # fmt: skip
    return problem, recipe, int(rng.integers(1, steps + 1))


def test_the_named_state() -> None:
    """Sharpness 1 + 1e-12, the bias fixed, weights faded: B' - gamma B' must not be a rounded
    difference.
    """
    problem = Problem(1.0, 2.6, 0.38, 0.095, steps=10)
    run = solve(problem, Recipe(24.0, 42.0, sharpness=1 + 1e-12, fix_bias=True))
    assert max(distances(run, 10).values()) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_random_states(seed: int) -> None:
    problem, recipe, t = random_case(seed)
    run = solve(problem, recipe)
    assert run.stats.accuracy[t] < 1e-9
    assert max(distances(run, t).values()) < 1e-8, distances(run, t)


def test_the_check_is_sharp() -> None:
    problem, recipe, t = random_case(0)
    run = solve(problem, recipe)
    run.chi_hat[t] *= 1 + 1e-6
    assert max(distances(run, t).values()) > 1e-7
