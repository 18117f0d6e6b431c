"""The solver compared with the paper's Algorithm 1 and with nested quadrature."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

from selftrain.arrays import Array
from selftrain.paper.algorithm1 import GaussRule, PicardRun, gauss_hermite, picard
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.bayes import bayes_path
from selftrain.theory.solve import solve
from selftrain.theory.trajectory import Trajectory

from .measure import Line, seconds, timed
from .reference import PROBLEM as REFERENCE


def measurements() -> Iterator[Line]:
    """Measure all lines, one after the other."""
    solve(REFERENCE, Recipe(threshold=0.5))
    yield from _long_run()
    yield from _annealed()
    yield from _bayes()
    yield from _selection()
    yield from _supervised_point()
    yield from _command()
    yield from _cold_start()


def _long_run() -> Iterator[Line]:
    """Measure 1024 steps of the reference problem at lambda_u = 1e-3, and Algorithm 1 on them."""
    problem, recipe = REFERENCE.replace(steps=1024), Recipe(lambda_u=1e-3)
    exact = solve(problem, recipe, tolerance=1e-13)
    run = solve(problem, recipe)
    ours = seconds(lambda: solve(problem, recipe), repeat=7)
    yield Line("1024 steps", 1e3 * ours, "ms", 10, False, "reference problem, lambda_u = 1e-3")
    yield Line("error of 1024 steps", _distance(run, exact), "", 1e-10, False, "q, m, B, chi, R")
    per_step = float(run.stats.evaluations.mean())
    yield Line("evaluations per step", per_step, "", 1.2, False, "confirmations included")
    rate = exponential_seconds()
    floor = rate * float(run.stats.nodes.sum())
    note = (
        f"{run.stats.nodes.mean():.0f} points per step, one exponential each of {1e9 * rate:.1f} ns"
    )
    yield Line("1024 steps over their floor", ours / floor, "x", 2.5, False, note)
    start = REFERENCE
    head = solve(start, recipe, tolerance=1e-13)
    for name, target, candidates in (
        ("our quadrature", 20, [_our_rule()]),
        ("fixed Gauss-Hermite", 1000, [gauss_hermite(n, n) for n in (20, 30, 40, 50, 60, 80)]),
    ):
        rule = _first_good(candidates, start, recipe, head)
        theirs, found = timed(partial(_baseline, problem, recipe, rule))
        steps = f"{found.iterations[1:].mean():.0f} iterations per step"
        reached = f"error {_distance(found, exact):.1e}"
        note = f"{len(rule.outer)} x {len(rule.inner)} nodes, {steps}, {reached}, {theirs:.1f} s"
        yield Line(f"Algorithm 1, {name}", theirs / ours, "x", target, True, note)


def exponential_seconds(count: int = 4096, repeat: int = 200) -> float:
    """Return the processor time of one exponential in numpy's vectorised code on cached data."""
    x, out = np.linspace(-30.0, 0.0, count), np.empty(count)

    def many() -> None:
        for _ in range(repeat):
            np.exp(x, out=out)

    return seconds(many, repeat=5) / (count * repeat)


def _annealed() -> Iterator[Line]:
    """Measure annealed labels: predicting the next state from the last ones hardly helps, and
    quadratures need many points.
    """
    for fixed, name in ((False, "trained"), (True, "fixed")):
        recipe = Recipe(annealing=0.2, fix_bias=fixed)
        run = solve(REFERENCE, recipe)
        spent = seconds(partial(solve, REFERENCE, recipe), repeat=5)
        evaluations = f"{int(run.stats.evaluations.sum())} evaluations"
        note = f"{evaluations}, {run.stats.nodes.max()} points at most"
        if run.collapsed_at is not None:
            note += f", collapses at step {run.collapsed_at}"
        yield Line(f"16 annealed steps, bias {name}", 1e3 * spent, "ms", 4, False, note)


def _bayes() -> Iterator[Line]:
    """Measure the Bayes errors after each of 1,024 different batches."""
    t = np.arange(1024)
    shares, spreads = 0.3 + 0.2 * t / 1024, 0.5 + 0.3 * np.cos(t)
    problem = REFERENCE.replace(steps=1024, rho_u=shares, delta_u=spreads)
    spent = seconds(lambda: bayes_path(problem), repeat=3)
    yield Line("bayes_path, 1024 batches", spent, "s", 0.7, False, "distinct shares and variances")


def _cold_start() -> Iterator[Line]:
    """Measure the first logistic solve of a process without cached kernels."""
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-c", _FIRST_SOLVE]
        no_kernels = {**os.environ, "NUMBA_CACHE_DIR": empty}
        found = subprocess.run(command, check=True, capture_output=True, text=True, env=no_kernels)
    note = "processor time of a process, imports included"
    yield Line("first solve, nothing compiled", float(found.stdout), "s", 8, False, note)


_FIRST_SOLVE = """
import time
from selftrain import Problem, Recipe, solve
solve(Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16), Recipe())
print(time.process_time())
"""


def _first_good(
    candidates: list[GaussRule], problem: Problem, recipe: Recipe, exact: Trajectory
) -> GaussRule:
    """Return the first rule with which Algorithm 1 is accurate to 1e-10; the last if none is."""
    for rule in candidates:
        if _distance(_baseline(problem, recipe, rule), exact) < 1e-10:
            return rule
    return candidates[-1]


def _selection() -> Iterator[Line]:
    """Measure the reference problem with a threshold, and Algorithm 1 with a million samples."""
    problem, recipe = REFERENCE, Recipe(threshold=0.5)
    exact = solve(problem, recipe, tolerance=1e-13)
    run = solve(problem, recipe)
    ours = seconds(lambda: solve(problem, recipe), repeat=5)
    theirs, found = timed(partial(picard, problem, recipe, tolerance=1e-6, samples=10**6))
    yield Line("16 steps with selection", 1e3 * ours, "ms", None)
    yield Line("Algorithm 1, 10^6 samples", theirs / ours, "x", 1000, True, "Gamma = 0.5, 16 steps")
    ratio = _distance(found, exact) / max(_distance(run, exact), 1e-16)
    yield Line("its error over ours", ratio, "x", 1e5, True, f"{_distance(found, exact):.1e}")


def _supervised_point() -> Iterator[Line]:
    """Measure one supervised fit, and nested quadrature with a scalar minimisation inside."""
    problem, recipe = REFERENCE.replace(steps=0), Recipe(lambda_l=0.05)
    run = solve(problem, recipe)
    ours = seconds(lambda: solve(problem, recipe), repeat=20)
    theirs, found = timed(partial(nested_quadrature, problem, recipe.lambda_l, 1e-6))
    apart = float(np.abs(found - [run.m[0], run.q[0], run.bias[0]]).max())
    yield Line("one supervised point", 1e3 * ours, "ms", None)
    note = f"quad over minimize_scalar, {theirs:.0f} s, differs by {apart:.0e}"
    yield Line("nested quadrature", theirs / ours, "x", 1000, True, note)


def _command() -> Iterator[Line]:
    """Measure the command line, including the start of Python."""
    command = [sys.executable, "-m", "selftrain", "solve", "--json"]
    for name in ("alpha_l", "alpha_u", "rho", "delta", "steps"):
        command += ["--" + name.replace("_", "-"), str(getattr(REFERENCE, name))]
    yield Line(
        "selftrain solve, 16 steps",
        seconds(lambda: subprocess.run(command, check=True, capture_output=True), 3, wall=True),
        "s", 2, False, "wall clock with cached kernels",
    )  # fmt: skip
    command = [sys.executable, "-m", "selftrain", "--help"]
    yield Line(
        "selftrain --help",
        seconds(lambda: subprocess.run(command, check=True, capture_output=True), 5, wall=True),
        "s", 0.5, False, "wall clock",
    )  # fmt: skip


def nested_quadrature(problem: Problem, ridge: float, tolerance: float) -> Array:
    """Return m, q and B of the supervised step by the textbook method: damped iteration with `quad`
    and `minimize_scalar`.
    """
    alpha, rho, delta = problem.alpha_l, problem.rho, problem.delta
    m, q, chi, bias = 0.5, 1.0, 1.0, 0.0

    def derivative(target: float, field: float) -> float:
        def energy(u: float) -> float:
            x = field + u
            return u * u / (2 * chi * delta) + float(np.logaddexp(0.0, x)) - target * x

        u = float(minimize_scalar(energy).x)
        return 1.0 / (1.0 + math.exp(-field - u)) - target

    def average(function: str) -> float:
        total = 0.0
        for sign, share, target in ((1.0, rho, 1.0), (-1.0, 1 - rho, 0.0)):

            def integrand(g: float, sign: float = sign, target: float = target) -> float:
                f = derivative(target, sign * m + bias + math.sqrt(delta * q) * g)
                value = {"f": f, "sf": sign * f, "ff": f * f, "gf": g * f}[function]
                return value * math.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)

            total += share * quad(integrand, -6, 6, epsabs=1e-7, epsrel=1e-6)[0]
        return total

    def mean_slope(at: float) -> float:
        nonlocal bias
        bias = at
        return average("f")

    width = 3.0
    for _ in range(200):
        bias = float(brentq(mean_slope, bias - width, bias + width, xtol=1e-6))
        width = 0.2
        stiffness = alpha * delta * average("gf") / math.sqrt(delta * q)
        new = np.array([-alpha * average("sf"), alpha * delta * average("ff"), stiffness])
        total = new[2] + ridge
        before = np.array([m, q, chi])
        after = np.array([new[0] / total, (new[0] ** 2 + new[1]) / total**2, 1 / total])
        m, q, chi = 0.5 * before + 0.5 * after
        if np.abs(after - before).max() < tolerance * max(1.0, chi):
            break
    return np.array([m, q, bias])


def _baseline(problem: Problem, recipe: Recipe, rule: GaussRule) -> PicardRun:
    return picard(problem, recipe, rule=rule, start="no-update", tolerance=1e-12)


def _our_rule() -> GaussRule:
    """Return the tensor-product quadrature that our solver uses on this run: trapezoidal rule for
    the old logit, Gauss-Hermite for the noise.
    """
    step = 0.55
    nodes: Array = step * np.arange(-14.0, 15.0)
    weights = step * np.exp(-0.5 * nodes**2) / math.sqrt(2 * math.pi)
    inner = gauss_hermite(1, 5)
    return GaussRule(nodes, weights, inner.inner, inner.inner_weights)


def _distance(run: Trajectory | PicardRun, exact: Trajectory) -> float:
    """Return the largest relative difference of the order parameters."""
    worst = 0.0
    for name in ("q", "m", "bias", "chi", "overlap"):
        a, b = getattr(run, name), getattr(exact, name)
        apart = np.abs(a - b) / np.maximum(np.abs(b), 1e-3)
        worst = max(worst, float(np.nanmax(apart)))
    return worst
