r"""Checks of the numbered predictions of the paper, by finite systems and by the solver.

Predictions 1 to 4 are limiting distributions: finite systems are compared with them
(`laws_of_a_system`), with a threshold and batches that differ from step to step. Predictions 5, 6
and 8 and Proposition 7 are about small ridges: steps of the solver are compared with them
(`small_step`, `squared_run`, `turn`). `infinite_ridge` and `sweeps` check two more statements of
the appendices.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...arrays import Array
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation
from ...theory.bayes import bayes_error
from ...theory.continuum.best_direction import best_direction
from ...theory.continuum.expansion import first_order, measured_noise
from ...theory.solve import solve
from ...theory.trajectory import Trajectory
from ..algorithm1 import picard
from .outputs import outputs
from .tuned import one_system

STEPS = 4
CHANGING: dict[str, Any] = {
    "alpha_u": (2.0, 1.5, 3.0, 2.0),
    "rho_u": (0.4, 0.3, 0.5, 0.35),
    "delta_u": (0.5625, 0.7, 0.5625, 0.8),
}
"""Batches that differ from step to step."""

RECIPE = Recipe(lambda_l=0.05, lambda_u=0.05, threshold=0.3)
DRAWN = 400_000
"""Number of sample paths of the Gaussian process over which functions of the weights are averaged:
the standard error is below a fiftieth of that of all finite systems together.
"""

LEVELS = np.linspace(0.1, 0.9, 9)
GROUPS = [(t, y, chosen) for t in range(1, STEPS + 1) for chosen in (True, False) for y in (0, 1)]
"""Groups of training samples: step, class, and whether selected."""

SHOWN = 121
SWEEPS = 600
"""Number of sweeps after which a step of Algorithm 1 counts as not converged."""


@lru_cache(maxsize=1)
def _run() -> Trajectory:
    return solve(Problem(0.5, rho=0.4, delta=0.75**2, steps=STEPS, **CHANGING), RECIPE)


@lru_cache(maxsize=1)
def _waves() -> Array:
    """Return random wave vectors k over the steps, scaled so that k times the weights is of order
    one.
    """
    random = np.random.default_rng(0)
    return np.asarray(random.standard_normal((8, STEPS + 1)) / np.sqrt(_run().q))


def _functions(paths: Array) -> Array:
    """Return four test functions of the weights of all steps (one row per weight): a kink, a jump,
    a maximum, a product.
    """
    first, second, third, last = paths[:, 0], paths[:, 1], paths[:, 2], paths[:, -1]
    return np.array(
        [np.abs(last), (first * last < 0).astype(float), paths.max(axis=1), second * third * last]
    )


@lru_cache(maxsize=1)
def _of_the_process() -> tuple[Array, Array, Array]:
    """Return properties of the Gaussian process of the weights: the characteristic function at
    `_waves`, and mean and standard deviation of `_functions`.
    """
    law = _run().weights
    phase = _waves() @ law.mean
    decay = np.exp(-0.5 * np.einsum("ki,ij,kj->k", _waves(), law.covariance, _waves()))
    values = _functions(law.sample(DRAWN, seed=0))
    return (
        np.concatenate([decay * np.cos(phase), decay * np.sin(phase)]),
        values.mean(axis=1),
        values.std(axis=1),
    )


@lru_cache(maxsize=1)
def _logit_law() -> tuple[Array, Array]:
    """Return, for each of `GROUPS`, logits at which the law has about the probabilities `LEVELS`,
    and its distribution function there.
    """
    points, below = [], []
    for t, y, chosen in GROUPS:
        law = _run().training_logits(t)
        drawn = law.sample(50_000, seed=t)
        points.append(np.quantile(drawn.u[(drawn.y == y) & (drawn.selected == chosen)], LEVELS))
        below.append(law.cdf(points[-1], y=y, selected=chosen))
    return np.array(points), np.array(below)


def laws_of_a_system(features: int, seed: int) -> dict[str, Any]:
    """Simulate one system; return the deviations of its weights, bias, errors and training logits
    from Predictions 1 to 4.
    """
    run = _run()
    ensemble = one_system(
        run.problem, run.recipe, features, seed, keep_weights=True, keep_logits=True
    )
    (vectors,) = ensemble.vectors
    paths = np.array(vectors.weights).T
    waves, means, deviations = _of_the_process()
    phase = paths @ _waves().T
    measured = np.concatenate([np.cos(phase).mean(axis=0), np.sin(phase).mean(axis=0)])
    return {
        "waves": measured - waves,
        "functions": (_functions(paths).mean(axis=1) - means) / deviations,
        "bias": (ensemble.values("bias")[0] - run.bias) / run.m,
        "error": ensemble.values("error")[0] / run.error - 1,
        "logits": np.ravel(_logit_shares(vectors) - _logit_law()[1]),
    }


def _logit_shares(vectors: Any) -> Array:
    """Return the proportions of the training logits of each of `GROUPS` below the points of the
    law.
    """
    shares = []
    for (t, y, chosen), points in zip(GROUPS, _logit_law()[0], strict=True):
        of_group = (vectors.classes[t] == (y == 1)) & (vectors.selected[t] == chosen)
        group = np.sort(vectors.logits[t][of_group])
        shares.append(np.searchsorted(group, points, side="right") / max(group.size, 1))
    return np.array(shares)


def small_step(
    lambda_l: float, lambda_u: float, threshold: float, fix_bias: bool, **setting: Any
) -> dict[str, Any]:
    r"""Solve one step with a small ridge: return $\hat\chi$ and $q - R^2/q'$ (Prediction 5), and
    the change of M compared with $C M'(1 - M')\lambda_U$ (Prediction 6).
    """
    problem = Problem(**setting, steps=1)
    recipe = Recipe(lambda_l, lambda_u, threshold=threshold, fix_bias=fix_bias)
    run = solve(problem, recipe, 1e-12)
    noise = measured_noise(run)
    squared = run.m**2 / run.q
    rate = first_order(problem, recipe, run).alignment_rate
    # M - M' is computed from 1 - M = v/q, which avoids cancellation if M is near one
    change = run.v[0] / run.q[0] - run.v[1] / run.q[1]
    expected = rate * squared[0] * (run.v[0] / run.q[0]) * lambda_u
    return {
        "chi_hat": float(np.ravel(noise.chi_hat)[1]) * lambda_u**2,
        "fresh": float(np.ravel(noise.fresh)[1]) * lambda_u**2,
        "rate": rate,
        "off": abs(change / expected - 1),
    }


def squared_run(
    alpha_l: float, alpha_u: float, rho: float, delta: float, lambda_l: float, lambda_u: float
) -> dict[str, Any]:
    r"""Solve a run with the squared loss over two time scales $\tau_M$, and return the largest
    differences of M, m and B from the curves of Prediction 8 as the paper writes them.
    """
    variance = 4 * rho * (1 - rho)
    tau_direction = 0.5 * delta / variance * (alpha_u - 1) * (delta + variance)
    tau_overlap = (alpha_u - 1) * (delta + variance)
    steps = math.ceil(2 * tau_direction / lambda_u)
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=steps, loss="squared")
    run = solve(problem, Recipe(lambda_l, lambda_u), 1e-10)
    time = lambda_u * run.t
    squared = run.m**2 / run.q
    fading = np.exp(-time / tau_overlap)
    direction = 1 / (1 + (1 / squared[0] - 1) * np.exp(-time / tau_direction))
    bias = run.bias[0] + (2 * rho - 1) * run.m[0] * (1 - fading)
    return {
        "M": float(np.abs(squared - direction).max()),
        "m": float(np.abs(run.m - run.m[0] * fading).max()),
        "B": float(np.abs(run.bias - bias).max()),
    }


def turn(lambda_l: float, fix_bias: bool, **setting: Any) -> dict[str, Any]:
    """Follow the path in continuous time until the direction is found; return 1 - M, |bias| over
    the norm, the norm, and the smallest rate C.
    """
    problem = Problem(**setting, steps=1)
    found = best_direction(problem, Recipe(lambda_l, fix_bias=fix_bias), tolerance=1e-7)
    path = found.path
    at = path(np.linspace(0.0, path.until, SHOWN))
    return {
        "share": np.linspace(0.0, 1.0, SHOWN),
        "misaligned": at.v / at.q,
        "bias_to_norm": np.abs(at.bias_to_norm),
        "norm": np.sqrt(at.q),
        "smallest_rate": float(found.rates.min()),
        "last_m": float(at.m[-1]),
    }


def infinite_ridge(alpha: float, delta: float, ridge: float) -> dict[str, float]:
    """Return the supervised error of balanced classes at a large ridge, and the Bayes error."""
    problem = Problem(alpha, 1.0, 0.5, delta, steps=0)
    run = solve(problem, Recipe(lambda_l=ridge), 1e-12)
    return {"error": float(run.error[0]), "bayes": bayes_error(problem).labeled_only}


def sweeps(lambda_l: float, lambda_u: float, damping: float, **setting: Any) -> dict[str, Any]:
    """Run Algorithm 1, started as in the paper; return the largest number of sweeps of a step and
    the largest difference of an error from the solver's, both NaN if it does not converge.
    """
    problem, recipe = Problem(**setting), Recipe(lambda_l, lambda_u)
    settled: Any = {"tolerance": 1e-8, "max_iterations": SWEEPS}
    run = picard(problem, recipe, damping=damping, **settled, on_failure="partial")
    off = float(np.abs(run.error - solve(problem, recipe).error).max())
    return {"sweeps": float(run.iterations.max()) if run.converged else math.nan, "off": off}


LAWS = Computation(
    laws_of_a_system,
    {
        **outputs("", "wave", waves=r"\frac1N\sum_i e^{ik\cdot w_i} - E e^{ik\cdot w}"),
        **outputs("", "function", functions=r"\frac1N\sum_i g(w_i) - E g(w)"),
        **outputs(
            "",
            "t",
            bias=r"(\hat B^{(t)} - B^{(t)})/m^{(t)}",
            error=r"\bar\epsilon_g^{(t)}/\epsilon_g^{(t)} - 1",
        ),
        **outputs("", "place", logits=r"P(u \le x), sample less law"),
    },
    seconds=lambda features, **_: 0.05 + features * 3e-4,
)
SMALL_STEP = Computation(
    small_step,
    outputs(
        "",
        chi_hat=r"\hat\chi^{(1)}",
        fresh="q^{(1)} - (R^{(1)})^2/q^{(0)}",
        rate="C^{(1)}",
        off=r"|\Delta M/(C M (1 - M)\lambda_U) - 1|",
    ),
)
SQUARED_RUN = Computation(
    squared_run,
    outputs("", **{name: rf"\max|{name}^{{(t)}} - {name}_\tau|" for name in ("M", "m", "B")}),
    seconds=lambda lambda_u, **_: 0.05 + 1e-5 / lambda_u,
)
TURN = Computation(
    turn,
    {
        **outputs(
            "",
            "share",
            share=r"\tau/\tau_{end}",
            misaligned=r"1 - M_\tau",
            bias_to_norm=r"|B_\tau|/\sqrt{q_\tau}",
            norm=r"\sqrt{q_\tau}",
        ),
        **outputs("", smallest_rate=r"\min C_\tau", last_m=r"m_\tau"),
    },
    seconds=lambda **_: 2.0,
)
INFINITE_RIDGE = Computation(infinite_ridge, outputs("bayes", error=r"\epsilon_g"))
ALGORITHM1 = Computation(
    sweeps,
    outputs("", sweeps="sweeps", off=r"|\epsilon - \epsilon_{solve}|"),
    seconds=lambda steps, **_: 0.5 * steps,
)
