"""Solved steps put back into the self-consistent equations, averaged by brute force.

Nothing of the engines is used: the equations are those of the paper's definition (with its errata
corrected), the averages are taken on dense grids between the jumps, the proximal map is found
by bisection, and the conjugate of the overlap is an average of the derivative in the previous
logit, with delta functions where the label or the selection jumps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.arrays import Array

X, W = np.polynomial.legendre.leggauss(40)


class Side(NamedTuple):
    """One class: its sign and share, and the mean of the previous logit."""

    sign: float
    share: float
    previous: float


def gaussian_grid(cuts: list[float], panels: int) -> tuple[Array, Array]:
    """Nodes and weights of a standard Gaussian average, on panels that end at the cuts."""
    inner = [cut for cut in sorted(cuts) if -10 < cut < 10]
    edges = [
        np.linspace(lo, hi, panels + 1)
        for lo, hi in zip([-10.0, *inner], [*inner, 10.0], strict=True)
    ]
    lo = np.concatenate([edge[:-1] for edge in edges])
    hi = np.concatenate([edge[1:] for edge in edges])
    half = 0.5 * (hi - lo)[:, None]
    x = (lo[:, None] + half * (1 + X)).ravel()
    return x, (half * W).ravel() * norm.pdf(x)


def prox(h: Array, p: Array, c: float) -> Array:
    """Bisection of x + c (sigma(x) - p) = h."""
    lo, hi = h - c, h + c
    for _ in range(70):
        x = 0.5 * (lo + hi)
        above = x + c * (expit(x) - p) > h
        lo, hi = np.where(above, lo, x), np.where(above, x, hi)
    return 0.5 * (lo + hi)


def trained(h: Array, p: Array, c: float) -> tuple[Array, Array]:
    """f and the slope 1/(1 + c l'') of the proximal map."""
    x = prox(h, p, c)
    return expit(x) - p, 1.0 / (1.0 + c * expit(x) * expit(-x))


class Averages(NamedTuple):
    f: float
    sf: float
    ff: float
    by_field: float
    by_previous: float


def supervised_averages(run: Trajectory) -> Averages:
    rho, delta = run.problem.rho, run.problem.delta
    c = run.chi[0] * delta
    g, w = gaussian_grid([], 60)
    totals = np.zeros(4)
    for sign, share in ((1.0, rho), (-1.0, 1 - rho)):
        h = sign * run.m[0] + run.bias[0] + np.sqrt(delta * run.q[0]) * g
        f, slope = trained(h, np.full(g.size, 0.5 * (1 + sign)), c)
        k = (1 - slope) / c
        totals += share * np.array([w @ f, sign * (w @ f), w @ f**2, w @ k])
    return Averages(*totals, by_previous=np.nan)


def averages(run: Trajectory, t: int) -> Averages:
    if t == 0:
        return supervised_averages(run)
    settings = run.recipe.at_steps(run.problem.steps)
    threshold, gamma = settings.threshold[t - 1], settings.sharpness[t - 1]
    _, rho, delta = (values[t - 1] for values in run.problem.unlabeled)
    m, q, bias, overlap = run.m[t], run.q[t], run.bias[t], run.overlap[t]
    old_m, old_q, old_bias = run.m[t - 1], run.q[t - 1], run.bias[t - 1]
    c, spread = run.chi[t] * delta, np.sqrt(delta * old_q)
    noise = np.sqrt(delta * (q - overlap**2 / old_q))
    n, weight_n = gaussian_grid([], 3)

    def label(previous: Array) -> Array:
        return 1.0 * (previous > 0) if np.isinf(gamma) else expit(gamma * previous)

    def inner(sign: float, g: Array, p: Array) -> Iterator[Array]:
        mean = sign * m + bias + overlap * np.sqrt(delta / old_q) * g
        f, slope = trained(mean[:, None] + noise * n, p[:, None], c)
        yield from (f @ weight_n, f**2 @ weight_n, (1 - slope) / c @ weight_n, slope @ weight_n)

    totals = np.zeros(5)
    for side in (Side(1.0, rho, old_m + old_bias), Side(-1.0, 1 - rho, old_bias - old_m)):
        edge = threshold * np.sqrt(old_q)
        jumps = {edge, -edge} | ({0.0} if np.isinf(gamma) else set())
        g, w = gaussian_grid([(jump - side.previous) / spread for jump in jumps], 12)
        previous = side.previous + spread * g
        w = w * (np.abs(previous) > edge)
        p = label(previous)
        f, ff, k, slope = inner(side.sign, g, p)
        steepness = 0.0 if np.isinf(gamma) else gamma * p * (1 - p)
        by_previous = -(w @ (steepness * slope))
        for jump in jumps:
            # a jump of 1(selected) f at this previous logit is a delta function of its derivative
            at = np.array([(jump - side.previous) / spread])
            for direction in (1.0, -1.0):
                near = jump + direction * 1e-9
                if abs(near) > edge:
                    value = next(inner(side.sign, at, label(np.array([near]))))[0]
                    by_previous += direction * value * norm.pdf(at[0]) / spread
        totals += side.share * np.array([w @ f, side.sign * (w @ f), w @ ff, w @ k, by_previous])
    return Averages(*totals)


def pairs(run: Trajectory, t: int) -> dict[str, tuple[float, float]]:
    """Both sides of every equation of step t."""
    alpha = run.problem.alpha_l if t == 0 else run.problem.unlabeled.alpha[t - 1]
    delta = run.problem.delta if t == 0 else run.problem.unlabeled.delta[t - 1]
    ridge = (
        run.recipe.lambda_l if t == 0 else run.recipe.at_steps(run.problem.steps).lambda_u[t - 1]
    )
    mean = averages(run, t)
    q_hat, chi_hat = alpha * delta * mean.by_field, alpha * delta * mean.ff
    m_hat, r_hat = -alpha * mean.sf, -alpha * delta * mean.by_previous
    chi = 1 / (q_hat + ridge)
    old_m, old_q = (run.m[t - 1], run.q[t - 1]) if t > 0 else (0.0, 0.0)
    if t == 0:
        r_hat = 0.0
    equations = {
        "q_hat": (run.q_hat[t], q_hat),
        "chi_hat": (run.chi_hat[t], chi_hat),
        "m_hat": (run.m_hat[t], m_hat),
        "chi": (run.chi[t], chi),
        "m": (run.m[t], (m_hat + r_hat * old_m) * chi),
        "q": (
            run.q[t],
            (m_hat**2 + chi_hat + r_hat**2 * old_q + 2 * m_hat * r_hat * old_m) * chi**2,
        ),
    }
    if t > 0:
        equations["r_hat"] = run.r_hat[t], r_hat
        equations["overlap"] = run.overlap[t], (m_hat * old_m + r_hat * old_q) * chi
    if t > 0 and run.recipe.fix_bias:
        equations["bias"] = run.bias[t], run.bias[0]
    else:
        equations["bias"] = 0.0, mean.f
    return equations


REFERENCE = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=4)
SHIFTED = Problem(
    alpha_l=0.8,
    alpha_u=(1.0, 3.0, 2.0),
    rho=0.3,
    delta=0.5,
    steps=3,
    rho_u=(0.3, 0.25, 0.4),
    delta_u=(0.5, 0.8, 1.5),
)
CASES = {
    "soft": (REFERENCE, Recipe(), (0, 1, 4)),
    "selection": (REFERENCE, Recipe(threshold=0.5), (1, 3)),
    "hard": (REFERENCE, Recipe(sharpness=np.inf), (1, 4)),
    "hard, selection, bias fixed": (
        REFERENCE,
        Recipe(lambda_u=0.3, sharpness=np.inf, threshold=0.8, fix_bias=True),
        (2,),
    ),
    "annealed, bias fixed": (REFERENCE, Recipe(annealing=0.6, fix_bias=True), (3,)),
    "blunt": (REFERENCE, Recipe(sharpness=0.5, lambda_u=2.0), (1, 2)),
    "strong prox": (
        Problem(alpha_l=0.6, alpha_u=2.0, rho=0.35, delta=0.75**2, steps=1),
        Recipe(lambda_l=0.01),
        (0, 1),
    ),
    "domain shift": (
        SHIFTED,
        Recipe(lambda_u=(0.2, 0.1, 0.4), threshold=(0.0, 0.4, 0.7), sharpness=(1.0, 2.0, 9.0)),
        (1, 2, 3),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_solved_steps_obey_the_definition(name: str) -> None:
    problem, recipe, steps = CASES[name]
    run = solve(problem, recipe)
    for t in steps:
        for quantity, (found, expected) in pairs(run, t).items():
            assert found == pytest.approx(expected, rel=1e-8, abs=1e-10), (quantity, t)


def test_the_check_is_sharp() -> None:
    """A state that is off by 1e-6 does not obey the equations."""
    run = solve(REFERENCE, Recipe(threshold=0.5))
    run.chi[1] *= 1 + 1e-6
    found, expected = pairs(run, 1)["q_hat"]
    assert abs(found / expected - 1) > 1e-7


def test_strength_of_the_prox_that_once_cycled() -> None:
    problem, recipe, _ = CASES["strong prox"]
    assert 38 < solve(problem, recipe).chi[0] * problem.delta < 40
