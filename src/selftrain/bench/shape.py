"""Clusters with a shape: their solver against the sphere's, against its targets, and against substitution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, roots_hermitenorm

from ..clusters import Clusters
from ..problem import Problem
from ..recipe import Recipe
from ..theory.solve import solve
from .measure import Line, seconds

RECIPE = Recipe(lambda_l=0.05, lambda_u=0.05)


def shape() -> Iterator[Line]:
    """The lines of `selftrain bench shape`."""
    common: dict[str, Any] = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "steps": 16}
    sphere = Problem(**common, delta=0.75**2)
    solve(sphere, RECIPE)
    base = seconds(lambda: solve(sphere, RECIPE), 20)
    yield Line("sphere, 16 steps", 1e3 * base, "ms")
    for modes, repeat in ((1_000, 10), (100_000, 2)):
        problem = Problem(**common, clusters=_log_normal(modes))
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
    problem = Problem(**common, clusters=pair)
    yield Line(
        "two covariances, N = 200", seconds(partial(solve, problem, RECIPE)), "s", 3.0, False
    )
    yield from _against_substitution()


def _against_substitution() -> Iterator[Line]:
    """One step with a common covariance of 1,000 modes, both to 1e-8."""
    clusters = _log_normal(1_000)
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, clusters=clusters, steps=0)
    run = solve(problem, RECIPE)
    fast = seconds(lambda: solve(problem, RECIPE), 10)
    found: list[float] = []
    slow = seconds(lambda: found.append(_substitution(clusters, 0.5, 0.4, RECIPE.lambda_l)))
    gap = abs(found[0] / float(run.m[0]) - 1)
    yield Line(
        "step 0 against substitution on the same equations", slow / fast, "x", 50.0,
        note=f"64 x 2 Gauss-Hermite nodes, damping 0.5, until changes are below 1e-10; m differs by {gap:.0e}",
    )  # fmt: skip


def _substitution(clusters: Clusters, alpha: float, rho: float, ridge: float) -> float:
    """m of the supervised step by damped substitution, in numpy."""
    s, mean, n = np.asarray(clusters.covariance), clusters.mean, clusters.features
    x, w = roots_hermitenorm(64)
    w = w / w.sum()
    hat_q = hat_chi = hat_m = 0.1
    bias, m = 0.0, 0.0
    for _ in range(100_000):
        gain = 1.0 / (ridge + hat_q * s)
        e = hat_m * mean * gain
        m, q = float(mean @ e), float(s @ (e * e + hat_chi * s * gain**2 / n))
        c = float((s * gain).sum()) / n
        f, k = [], []
        for sign, p in ((1.0, 1.0), (-1.0, 0.0)):
            h = sign * m + bias + math.sqrt(q) * x
            u = np.zeros_like(h)
            for _ in range(60):
                step = (u + c * (expit(u) - p) - h) / (1 + c * expit(u) * expit(-u))
                u -= step
                if np.abs(step).max() < 1e-12:
                    break
            f.append(expit(u) - p)
            k.append(expit(u) * expit(-u) / (1 + c * expit(u) * expit(-u)))
        share = (rho, 1 - rho)
        mean_f = [float(w @ part) for part in f]
        new_q = alpha * sum(a * float(w @ part) for a, part in zip(share, k, strict=True))
        new_chi = alpha * sum(a * float(w @ part**2) for a, part in zip(share, f, strict=True))
        new_m = -alpha * (share[0] * mean_f[0] - share[1] * mean_f[1])
        pull = alpha * (share[0] * mean_f[0] + share[1] * mean_f[1])
        change = max(abs(new_q - hat_q), abs(new_chi - hat_chi), abs(new_m - hat_m), abs(pull))
        hat_q, hat_chi = 0.5 * (hat_q + new_q), 0.5 * (hat_chi + new_chi)
        hat_m, bias = 0.5 * (hat_m + new_m), bias - 0.5 * pull / new_q
        if change < 1e-10:
            break
    return m


def _log_normal(features: int) -> Clusters:
    draw = np.random.default_rng(0)
    mean = draw.normal(size=features)
    return Clusters(1.3 * mean / np.linalg.norm(mean), np.exp(draw.normal(size=features)))
