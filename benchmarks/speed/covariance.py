"""General covariances: time of the solver compared with the sphere, and with plain substitution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, roots_hermitenorm

from selftrain.arrays import Array
from selftrain.mixture.clusters import Clusters
from selftrain.problem import Problem
from selftrain.theory.solve import solve

from .measure import Line, seconds, timed
from .reference import PROBLEM as SPHERE
from .reference import RECIPE


def measurements() -> Iterator[Line]:
    """Measure all lines, one after the other."""
    solve(SPHERE, RECIPE)
    base = seconds(lambda: solve(SPHERE, RECIPE), 20)
    yield Line("sphere, 16 steps", 1e3 * base, "ms")
    for modes, repeat in ((1_000, 10), (100_000, 2)):
        problem = _problem(_log_normal(modes))
        solve(problem, RECIPE)
        taken = seconds(partial(solve, problem, RECIPE), repeat)
        yield Line(f"one covariance, {modes} modes", 1e3 * taken, "ms")
        if modes == 1_000:
            yield Line("the same against the sphere", taken / base, "x", 5.0, False)
        else:
            yield Line("the same in seconds", taken, "s", 1.0, False)
    small = _log_normal(200)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(200, 200)))[0]
    pair = Clusters(small.mean, (small.covariance, (turn * small.covariance) @ turn.T))
    problem = _problem(pair)
    yield Line(
        "two covariances, N = 200", seconds(partial(solve, problem, RECIPE)), "s", 3.0, False
    )
    yield from _against_substitution()


def _problem(clusters: Clusters) -> Problem:
    return Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, clusters=clusters, steps=16)


def _against_substitution() -> Iterator[Line]:
    """Measure a run with one covariance of 1,000 modes, solved to 1e-10, and substitution on it."""
    problem = _problem(_log_normal(1_000))
    run = solve(problem, RECIPE)
    fast = seconds(lambda: solve(problem, RECIPE), 10)
    for warm, how in ((False, "plain"), (True, "warm")):
        slow, found = timed(partial(_substitution, problem, warm))
        gap = float(np.abs(found / run.m - 1).max())
        yield Line(
            f"17 steps against {how} substitution on the same equations", slow / fast, "x",
            None if warm else 50.0, note=f"{HOW[warm]}; m differs by {gap:.0e}",
        )  # fmt: skip


OUTER, INNER = 64, 24
"""Numbers of Gauss-Hermite nodes for the old and the new noise."""

SETTLED = 3e-12
"""Change of the conjugates at which m is accurate to 1e-10."""

HOW = {
    False: (
        f"{OUTER} x {INNER} x 2 Gauss-Hermite nodes, damping 0.5, until changes are below"
        f" {SETTLED:g}"
    ),
    True: "the same, each step from the conjugates of the last one and proximal points",
}


class _Sums(NamedTuple):
    r"""Averages over both classes: the new $\hat Q$, $\hat\chi$, $\hat m$, $-E[g_1 f]$, and
    the derivative of the loss with respect to the bias.
    """

    hat_q: float
    hat_chi: float
    hat_m: float
    along: float
    pull: float


def _substitution(problem: Problem, warm: bool) -> Array:
    """Return m of every step by damped substitution, in numpy; `warm`: each step starts from the
    conjugates and proximal points of the previous one.
    """
    clusters = problem.clusters
    assert clusters is not None
    s, mean, n = np.asarray(clusters.covariance), clusters.mean, clusters.features
    e_old, v_old, m_old, bias_old, bias = np.zeros(n), np.zeros(n), 0.0, 0.0, 0.0
    hats = np.array([0.1, 0.1, 0.1, 0.0])  # Q, chi, m, R
    found = []
    for t in range(problem.steps + 1):
        alpha = problem.alpha_l if t == 0 else float(problem.unlabeled.alpha[t - 1])
        q_old = float(s @ (e_old**2 + v_old)) if t else 1.0
        points = np.zeros((2, OUTER if t else 1, INNER if t else OUTER))
        if not warm:
            hats = np.array([0.1, 0.1, 0.1, 0.0])
        for _ in range(100_000):
            gain = 1.0 / (RECIPE.lambda_l + hats[0] * s)
            keep = gain * hats[3] * s
            e = hats[2] * mean * gain + keep * e_old
            v = keep**2 * v_old + hats[1] * s * gain**2 / n
            m, q = float(mean @ e), float(s @ (e * e + v))
            r, c = float(s @ (e * e_old + keep * v_old)), float((s * gain).sum()) / n
            old = None if t == 0 else (m_old, bias_old, math.sqrt(q_old))
            points = points if warm else np.zeros_like(points)
            new = _averages((m, bias, q, r, c), old, problem.rho, points)
            hat_r = alpha * (new.along / math.sqrt(q_old) + r / q_old * new.hat_q) if t else 0.0
            better = np.array([alpha * new.hat_q, alpha * new.hat_chi, alpha * new.hat_m, hat_r])
            change = max(float(np.abs(better - hats).max()), abs(alpha * new.pull))
            hats = 0.5 * (hats + better)
            bias -= 0.5 * new.pull / new.hat_q
            if change < SETTLED:
                break
        e_old, v_old, m_old, bias_old = e, v, m, bias
        found.append(m)
    return np.array(found)


def _averages(
    state: tuple[float, ...], old: tuple[float, ...] | None, rho: float, points: Array
) -> _Sums:
    """Return the averages at (m, B, q, R, c); `points` are proximal points, improved in place."""
    m, bias, q, r, c = state
    g, weight = _hermite(OUTER)
    sums = np.zeros(5)
    for side, share in enumerate((1 - rho, rho)):
        sign = 2.0 * side - 1.0
        target: Array | float = float(side)
        h, w, first = sign * m + bias + math.sqrt(q) * g[None], weight[None], 0.0 * g[None]
        if old is not None:
            m_old, bias_old, root = old
            inner, inner_weight = _hermite(INNER)
            target = expit(sign * m_old + bias_old + root * g[:, None])
            left = math.sqrt(q - (r / root) ** 2)
            h = sign * m + bias + r / root * g[:, None] + left * inner
            w, first = weight[:, None] * inner_weight, g[:, None]
        u = points[side]
        for _ in range(60):
            slope = expit(u)
            step = (u + c * (slope - target) - h) / (1 + c * slope * (1 - slope))
            u -= step
            if np.abs(step).max() < 1e-12:
                break
        slope = expit(u)
        f, k = slope - target, slope * (1 - slope) / (1 + c * slope * (1 - slope))
        parts = (k, f * f, -sign * f, -first * f, f)
        sums += [share * float((w * part).sum()) for part in parts]
    return _Sums(*sums.tolist())


@cache
def _hermite(nodes: int) -> tuple[Array, Array]:
    x, w = roots_hermitenorm(nodes)
    return x, w / w.sum()


def _log_normal(features: int) -> Clusters:
    draw = np.random.default_rng(0)
    mean = draw.normal(size=features)
    return Clusters(1.3 * mean / np.linalg.norm(mean), np.exp(draw.normal(size=features)))
