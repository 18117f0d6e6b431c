r"""The paper's own method: damped fixed-point iteration (Algorithm `algo: fixed-point iteration`).

It solves the equations of Definition `def: self-consistent equations` as written in the paper, with
the averages of Appendix `app: numerical recipe`: Gauss-Hermite quadrature, or, where a threshold
rejects samples, Monte Carlo and the delta functions of `eq:rs-saddle-hatr`. It is the baseline of
the benchmark and an independent check of `solve`; logistic loss and soft labels only.

A sweep is one iteration over all equations of a step. Choices where the paper is silent or has a
misprint (docs/errata.md): the noises have variance $\Delta$, $\hat m$ has a minus sign, step t uses
the converged $\Theta^{(t-1)}$, B solves `eq:rs-saddle-b` in every sweep, and a sweep uses the
$\Theta_s$ that it has just computed, not $\Theta_{s-1}$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator, default_rng
from scipy.special import expit, roots_hermitenorm

from ..arrays import Array
from ..errors import ConvergenceError, InvalidInput, StageError
from ..labelers import SoftLabels
from ..losses import Logistic
from ..observables import generalization_error
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.kernels import kernel


class GaussRule(NamedTuple):
    r"""Nodes and weights of the Gaussian averages over $\xi_1$ (outer) and $\xi_2$ (inner)."""

    outer: Array
    outer_weights: Array
    inner: Array
    inner_weights: Array


def gauss_hermite(outer: int = 120, inner: int = 40) -> GaussRule:
    """Return the Gauss-Hermite rule with these numbers of nodes."""
    (x, x_weights), (y, y_weights) = (roots_hermitenorm(size) for size in (outer, inner))
    return GaussRule(x, x_weights / x_weights.sum(), y, y_weights / y_weights.sum())


@dataclass(frozen=True)
class PicardRun:
    """The solution of a run; arrays over t = 0..T, with the names of `Trajectory`.

    `iterations` counts the sweeps of each step, `residual` is the largest change of an order
    parameter in the last one. All arrays are NaN from the step of a `failure` on.
    """

    q: Array
    chi: Array
    m: Array
    overlap: Array
    bias: Array
    iterations: Array
    residual: Array
    error: Array
    failure: StageError | None

    @property
    def converged(self) -> bool:
        """Whether every step converged to the tolerance."""
        return self.failure is None


def picard(
    problem: Problem,
    recipe: Recipe,
    *,
    damping: float = 0.5,
    rule: GaussRule | None = None,
    samples: int = 10**6,
    tolerance: float = 1e-10,
    max_iterations: int = 10_000,
    seed: int = 0,
    start: Literal["previous", "no-update"] = "previous",
    on_failure: Literal["raise", "partial"] = "raise",
) -> PicardRun:
    r"""Solve the self-consistent equations by Algorithm 1 of the paper.

    Arguments:
        damping: $\eta_d$, the weight of the new conjugates in a sweep.
        rule: quadrature of steps without a threshold, and of $\xi_2$ at one; step 0 uses its outer
            part. Default: `gauss_hermite()`.
        samples: Monte Carlo samples of a step with a threshold, drawn once per step.
        tolerance: largest absolute change of an order parameter in the last sweep.
        start: "previous" starts at the conjugates of the previous step, as in the paper; at t = 1
            and small $\lambda_U$ the norm can become huge, where no fixed rule is accurate.
            "no-update" starts at the weights of t-1 (`eq: no update`).
        on_failure: "raise" the error, or return the "partial" run.

    Returns:
        The run; its error is that of the quadrature plus tolerance/(1 - contraction rate).

    >>> run = picard(Problem(0.5, 2.0, 0.4, 0.75**2, steps=1), Recipe())
    >>> run.q.round(8).tolist(), run.converged
    ([2.19824047, 1.20120524], True)
    """
    _check(problem, recipe, damping)
    rule, rng = rule or gauss_hermite(), default_rng(seed)
    table = np.full((problem.steps + 1, 11), np.nan)
    failure, step = None, _supervised(problem, recipe, rule)
    try:
        for t in range(problem.steps + 1):
            if t:
                step = _self_training(problem, recipe, rule, table[:t], rng, samples)
            if t and start == "no-update":
                step.before[5:9] = 1.0 / step.before[1] - step.ridge, 0.0, 0.0, 1.0 / step.before[1]
            table[t] = _iterate(step, damping, tolerance, max_iterations)
    except StageError as error:
        if on_failure == "raise":
            raise
        failure = error
    table[0, 3] = math.nan  # step 0 has no R
    q, chi, m, overlap, bias, *_, sweeps, residual = table.T
    found = generalization_error(m, q, bias, *problem.test_mixture)
    return PicardRun(q, chi, m, overlap, bias, sweeps, residual, found, failure)


def _check(problem: Problem, recipe: Recipe, damping: float) -> None:
    problem.needs_sphere("Algorithm 1")
    problem.needs_fresh_batches("Algorithm 1")
    if not all(isinstance(problem.loss_at(t), Logistic) for t in (0, 1)):
        raise InvalidInput("loss", problem.loss_names, "Algorithm 1 needs the logistic loss")
    soft = type(recipe.label_function) is SoftLabels
    if not soft or np.isinf(recipe.at_steps(problem.steps).sharpness).any():
        raise InvalidInput("labeler", recipe.labeler, "Algorithm 1 needs soft labels")
    if not 0 < damping <= 1:
        raise InvalidInput("damping", damping, "must be in (0, 1]")


class _Points(NamedTuple):
    r"""Quadrature points: sign s, noises $\xi/\sqrt\Delta$, weight, label p and $dp/d\tilde h$."""

    sign: Array
    first: Array
    second: Array
    weight: Array
    label: Array
    steepness: Array


class _Step(NamedTuple):
    r"""The equations of one step.

    It starts from `before`: $\Theta$, $\hat\Theta$, sweeps and residual of the previous step. The
    `edges` are points of the delta functions at the threshold; None without a threshold.
    """

    t: int
    alpha: float
    delta: float
    ridge: float
    fix_bias: bool
    points: _Points
    edges: _Points | None
    before: Array


def _supervised(problem: Problem, recipe: Recipe, rule: GaussRule) -> _Step:
    """Return step 0, which starts at w = 0; without an earlier model there is no first noise."""
    alpha, (rho, delta) = problem.alpha_l, problem.labeled
    sign = np.repeat([1.0, -1.0], rule.outer.size)
    weight = np.where(sign > 0, rho, 1 - rho) * np.tile(rule.outer_weights, 2)
    zero = np.zeros_like(sign)
    points = _Points(sign, zero, np.tile(rule.outer, 2), weight, 0.5 * (1 + sign), zero)
    hats = alpha * rho * (1 - rho) * np.array([delta, delta, 2.0, 0.0])
    before = np.array([1.0, 0.0, 0.0, 0.0, math.log(rho / (1 - rho)), *hats])
    return _Step(0, alpha, delta, recipe.lambda_l, False, points, None, before)


def _self_training(
    problem: Problem, recipe: Recipe, rule: GaussRule, past: Array, rng: Generator, samples: int
) -> _Step:
    r"""Return the step after those in the table `past`.

    Labels are $\sigma(\gamma\tilde h)$ with $\tilde h = s m' + B' + \sqrt{q'}\xi_1$
    (`eq:rs-saddle-local-field1`), samples are selected by $|\tilde h| > \Gamma\sqrt{q'}$.
    """
    t, (q, _, m, _, bias) = len(past), past[-1, :5].tolist()
    alpha, rho, delta = (float(values[t - 1]) for values in problem.unlabeled)
    ridge, threshold, sharpness = (float(v[t - 1]) for v in recipe.at_steps(problem.steps))
    scale, edge, edges = math.sqrt(delta * q), threshold * math.sqrt(q), None

    def labelled(*columns: Array) -> _Points:
        sign, first, second, weight = (cell.ravel() for cell in np.broadcast_arrays(*columns))
        field = sharpness * (sign * m + bias + scale * first)
        steepness = sharpness * expit(field) * expit(-field)
        return _Points(sign, first, second, weight, expit(field), steepness)

    sign, prior = np.array([1.0, -1.0])[:, None, None], np.array([rho, 1 - rho])[:, None, None]
    if threshold == 0.0:
        weight = prior * rule.outer_weights[:, None] * rule.inner_weights
        points = labelled(sign, rule.outer[:, None], rule.inner, weight)
    else:
        side = np.array([[1.0], [-1.0]])
        first = (side * edge - sign * m - bias) / scale
        density = np.exp(-0.5 * first**2) / (math.sqrt(2 * math.pi) * scale)
        edges = labelled(sign, first, rule.inner, prior * side * density * rule.inner_weights)
        sign = np.where(rng.random(samples) < rho, 1.0, -1.0)
        first, second = rng.standard_normal((2, samples))
        selected = np.abs(sign * m + bias + scale * first) > edge
        drawn = (column[selected] for column in (sign, first, second))
        points = labelled(*drawn, np.array(1.0 / samples))
    return _Step(t, alpha, delta, ridge, recipe.fix_bias, points, edges, past[-1].copy())


def _iterate(step: _Step, damping: float, tolerance: float, max_iterations: int) -> Array:
    r"""Repeat $\Theta \leftarrow \mathcal F(\hat\Theta)$, $\hat\Theta \leftarrow
    (1-\eta_d)\hat\Theta + \eta_d\hat{\mathcal F}(\Theta)$ until $\Theta$ settles to `tolerance`.
    """
    hats, bias, residual, sweeps = step.before[5:9], float(step.before[4]), math.inf, 0
    theta = _order(step, hats, bias)
    try:
        while sweeps < max_iterations and residual >= tolerance:
            accuracy = 0.1 * max(tolerance, min(residual, 1e-2))
            target, bias = _conjugates(step, hats, theta, accuracy)
            hats = (1 - damping) * hats + damping * target
            new = _order(step, hats, bias)
            residual, theta, sweeps = float(np.abs(new - theta).max()), new, sweeps + 1
    except ArithmeticError:
        residual = math.nan
    if not residual < tolerance:
        reason = f"the fixed-point iteration did not converge in {sweeps} iterations"
        state = dict(zip(("q", "chi", "m", "overlap", "bias"), theta.tolist(), strict=True))
        raise ConvergenceError(step.t, reason, state, residual)
    return np.array([*theta, *hats, sweeps, residual])


def _order(step: _Step, hats: Array, bias: float) -> Array:
    r"""Return $\Theta = (q, \chi, m, R, B)$ (`eq:rs-saddle-q` to `eq:rs-saddle-r`)."""
    (q_hat, chi_hat, m_hat, r_hat), (q_last, _, m_last) = hats.tolist(), step.before[:3].tolist()
    chi = 1.0 / (q_hat + step.ridge)
    m = (m_hat + r_hat * m_last) * chi
    v = (chi_hat + r_hat**2 * (q_last - m_last**2)) * chi**2
    return np.array([m**2 + v, chi, m, (m_hat * m_last + r_hat * q_last) * chi, bias])


def _conjugates(step: _Step, hats: Array, theta: Array, accuracy: float) -> tuple[Array, float]:
    r"""Return $\hat{\mathcal F}(\Theta)$ and the B that solves `eq:rs-saddle-b`.

    E[f] increases with B: Newton's method is kept inside a bracket. $q - R^2/q'$ is computed from
    the conjugates, without cancellation.
    """
    _, chi, m, overlap, bias = theta.tolist()
    q_last, _, m_last = step.before[:3].tolist()
    fresh = hats[1] + hats[2] ** 2 * (1 - m_last**2 / q_last)
    along, across = overlap / math.sqrt(q_last), math.sqrt(fresh) * chi
    fields = (math.sqrt(step.delta) * along, math.sqrt(step.delta) * across, step.delta * chi)
    slope, square, signed, response, mean = _averages(step.points, m, bias, *fields)
    low, high = -math.inf, math.inf
    for _ in range(0 if step.fix_bias else 100):
        low, high = (bias, high) if mean < 0 else (low, bias)
        shift, limit = -mean / slope, 4.0 + abs(bias)
        bias += min(max(shift, -limit), limit)
        bias = bias if low <= bias <= high else 0.5 * (low + high)
        if abs(shift) <= accuracy:
            break
        slope, square, signed, response, mean = _averages(step.points, m, bias, *fields)
    if step.edges is not None:
        response -= _averages(step.edges, m, bias, *fields)[4]
    gain = step.alpha * step.delta
    return np.array([gain * slope, gain * square, -step.alpha * signed, gain * response]), bias


@kernel(error_model="numpy")
def _averages(
    points: _Points, m: float, bias: float, along: float, across: float, strength: float
) -> tuple[float, float, float, float, float]:
    r"""Return the means of $\partial f/\partial h = \sigma'/(1+c\sigma')$, $f^2$, $sf$,
    $-\partial f/\partial\tilde h = p'/(1+c\sigma')$, and $f = \sigma(x) - p$.

    The trained logit x solves $x + c(\sigma(x) - p) = h$ (`appeq: effective problem u t`), by
    Newton's method from x = 0, which converges monotonically for every c.
    """
    slope = square = signed = response = mean = 0.0
    for k in range(points.sign.size):
        h = points.sign[k] * m + bias + along * points.first[k] + across * points.second[k]
        x = 0.0
        for _ in range(200):
            s = 1.0 / (1.0 + math.exp(-x))
            step = (x + strength * (s - points.label[k]) - h) / (1.0 + strength * s * (1.0 - s))
            x -= step
            if abs(step) <= 1e-8 + 1e-15 * abs(x):
                break
        s = 1.0 / (1.0 + math.exp(-x))
        f, stiffness = s - points.label[k], 1.0 + strength * s * (1.0 - s)
        slope += points.weight[k] * s * (1.0 - s) / stiffness
        square += points.weight[k] * f * f
        signed += points.weight[k] * points.sign[k] * f
        response += points.weight[k] * points.steepness[k] / stiffness
        mean += points.weight[k] * f
    return slope, square, signed, response, mean
