r"""The paper's own procedure: damped fixed-point iteration (Algorithm `algo: fixed-point
iteration`).

It solves the equations of Definition `def: self-consistent equations` in the form they are written,
with Gauss-Hermite quadrature, or Monte Carlo where a threshold rejects points (Appendix
`app: numerical recipe`). It is the baseline of the benchmark and an independent check of
`solve`, with which it shares no quadrature, no moments and no iteration. Logistic loss and
soft labels only.

Where the text is silent or slips: the noises have variance $\Delta$, $\hat m$ has a minus sign,
step t uses the converged $\Theta^{(t-1)}$, B solves `eq:rs-saddle-b` in every sweep, and a sweep
uses the $\Theta_s$ it has just computed (Algorithm 1 writes $\Theta_{s-1}$, which only delays it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError, InvalidInput, StageError
from ...labelers import SoftLabels
from ...losses import Logistic
from ...observables import generalization_error
from ...problem import Problem
from ...recipe import Recipe
from ..step.ending import Ending
from .averages import (
    GaussRule,
    PreviousField,
    WeightedPoints,
    averages,
    edge_points,
    gauss_hermite,
    labeled_points,
    sampled_points,
    tensor_points,
)

Start = Literal["previous", "no-update"]


@dataclass(frozen=True)
class PicardRun:
    """What the iteration found; every array runs over t = 0..T, with the names of `Trajectory`.

    Attributes:
        iterations: of each step.
        evaluations: evaluations of the averages in each step (a sweep may need several for B).
        residual: largest change of an order parameter in the last sweep.
        tolerance: what `residual` had to fall below.
        failure: why the run ended early (only with `on_failure="partial"`), or None; from that
            step on everything is NaN.
    """

    problem: Problem
    recipe: Recipe
    m: Array
    v: Array
    bias: Array
    chi: Array
    overlap: Array
    q_hat: Array
    chi_hat: Array
    m_hat: Array
    r_hat: Array
    iterations: Array
    evaluations: Array
    residual: Array
    tolerance: float
    failure: StageError | None = None

    @property
    def q(self) -> Array:
        """Squared norm of the weights."""
        return self.m**2 + self.v

    @property
    def error(self) -> Array:
        """Generalisation error on the test mixture (`eq: rs generalization error`)."""
        rho, delta = (np.asarray(value) for value in self.problem.test_mixture)
        return generalization_error(self.m, self.q, self.bias, rho, delta)

    @property
    def converged(self) -> bool:
        """Whether every step fell below the tolerance."""
        return bool((self.residual < self.tolerance).all())


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
    start: Start = "previous",
    on_failure: Literal["raise", "partial"] = "raise",
) -> PicardRun:
    r"""Solve the self-consistent equations by Algorithm 1 of the paper.

    Arguments:
        damping: $\eta_d$, the weight of the new conjugates in a sweep.
        rule: quadrature of the steps without a threshold, and of $\xi_2$ at a threshold; step 0
            uses its outer part. Default: `gauss_hermite()`.
        samples: Monte-Carlo samples of a step with a threshold, drawn once per step.
        tolerance: a step ends when no order parameter changed by more in one sweep. As in the
            paper it is absolute: a state of size 1e-4 is known to four digits less.
        start: "previous" begins a step with the conjugates of the one before, as the paper does;
            at t = 1 and small $\lambda_U$ this can wander to a huge norm, where no fixed rule is
            accurate. "no-update" begins at the weights of t-1 themselves, to which the solution
            tends as $\lambda_U \to 0$ (`eq: no update`): $\hat R = \hat Q + \lambda = 1/\chi'$,
            $\hat m = \hat\chi = 0$.
        on_failure: "raise" a typed error, or return the "partial" run.

    Returns:
        A `PicardRun`, off by the error of the rule and by tolerance/(1 - contraction rate).

    >>> run = picard(Problem(0.5, 2.0, 0.4, 0.75**2, steps=1), Recipe())
    >>> run.q.round(8).tolist(), run.converged
    ([2.19824047, 1.20120524], True)
    """
    problem.needs_sphere("Algorithm 1")
    problem.needs_fresh_rows("Algorithm 1")
    _check(problem, recipe, damping, tolerance)
    rule = gauss_hermite() if rule is None else rule
    rng = np.random.default_rng(seed)
    columns = {name: np.full(problem.steps + 1, np.nan) for name in _Solution._fields}
    failure, solution = None, None
    for t in range(problem.steps + 1):
        try:
            if solution is None:
                stage = _supervised(problem, recipe, rule)
            else:
                stage = _self_training(problem, recipe, rule, t, solution, samples, rng, start)
            solution = _iterate(stage, damping, tolerance, max_iterations)
        except StageError as error:
            if on_failure == "raise":
                raise
            failure = error
            break
        for name, value in solution._asdict().items():
            columns[name][t] = value
    return PicardRun(problem, recipe, **columns, tolerance=tolerance, failure=failure)


class _Hats(NamedTuple):
    r"""$\hat\Theta$: the conjugates $\hat Q, \hat\chi, \hat m, \hat R$."""

    q: float
    chi: float
    m: float
    r: float


class _Order(NamedTuple):
    r"""$\Theta$ without B; `along` is $R/\sqrt{q'}$, `across` is $\sqrt{q - R^2/q'}$."""

    m: float
    v: float
    chi: float
    overlap: float
    along: float
    across: float


class _Solution(NamedTuple):
    """One step of a `PicardRun`."""

    m: float
    v: float
    bias: float
    chi: float
    overlap: float
    q_hat: float
    chi_hat: float
    m_hat: float
    r_hat: float
    iterations: int
    evaluations: int
    residual: float


class _Stage(NamedTuple):
    """The equations of one step; `edges` carry the delta functions at the threshold."""

    t: int
    alpha: float
    delta: float
    ridge: float
    points: WeightedPoints
    edges: WeightedPoints | None
    previous: tuple[float, float] | None
    start: _Hats
    bias: float
    fix_bias: bool


def _supervised(problem: Problem, recipe: Recipe, rule: GaussRule) -> _Stage:
    """Step 0, begun at the conjugates of w = 0."""
    alpha, (rho, delta) = problem.alpha_l, problem.labeled
    points = labeled_points(problem.labeled, rule)
    spread = alpha * rho * (1 - rho)
    start = _Hats(spread * delta, spread * delta, 2 * spread, 0.0)
    bias = math.log(rho / (1 - rho))
    return _Stage(0, alpha, delta, recipe.lambda_l, points, None, None, start, bias, False)


def _self_training(
    problem: Problem,
    recipe: Recipe,
    rule: GaussRule,
    t: int,
    last: _Solution,
    samples: int,
    rng: np.random.Generator,
    start: Start,
) -> _Stage:
    """Step t, with its points labelled by the solution of step t-1."""
    alpha, rho, delta = (float(values[t - 1]) for values in problem.unlabeled)
    settings = recipe.at_steps(problem.steps)
    ridge, threshold, sharpness = (float(values[t - 1]) for values in settings)
    root = math.sqrt(last.m**2 + last.v)
    previous = PreviousField(
        last.m, last.bias, math.sqrt(delta) * root, threshold * root, sharpness
    )
    edges = None
    if threshold == 0.0:
        points = tensor_points(rho, previous, rule)
    else:
        points = sampled_points(rho, previous, samples, rng)
        edges = edge_points(rho, previous, rule)
    if not points.weight.size:
        state = {"m": last.m, "v": last.v, "bias": last.bias}
        raise Ending.EMPTY.error(t, state, threshold=threshold)
    hats = _Hats(last.q_hat, last.chi_hat, last.m_hat, 0.0 if t == 1 else last.r_hat)
    if start == "no-update":
        hats = _Hats(1.0 / last.chi - ridge, 0.0, 0.0, 1.0 / last.chi)
    before = (last.m, last.v)
    return _Stage(t, alpha, delta, ridge, points, edges, before, hats, last.bias, recipe.fix_bias)


def _iterate(stage: _Stage, damping: float, tolerance: float, max_iterations: int) -> _Solution:
    r"""Sweeps $\Theta \leftarrow \mathcal F(\hat\Theta)$, $\hat\Theta \leftarrow
    (1-\eta_d)\hat\Theta + \eta_d\hat{\mathcal F}(\Theta)$ of one step.
    """
    hats, bias = stage.start, stage.bias
    order = _order(stage, hats)
    residual, iterations, evaluations = math.inf, 0, 0
    while iterations < max_iterations and residual >= tolerance:
        accuracy = 0.1 * max(tolerance, min(residual, 1e-2))
        try:
            target, new_bias, count = _conjugates(stage, order, bias, accuracy)
            pairs = zip(hats, target, strict=True)
            hats = _Hats(*((1 - damping) * old + damping * new for old, new in pairs))
            new_order = _order(stage, hats)
        except ArithmeticError:
            residual = math.nan
            break
        residual = _change(order, bias, new_order, new_bias)
        order, bias = new_order, new_bias
        iterations, evaluations = iterations + 1, evaluations + count
    solution = _Solution(*order[:2], bias, *order[2:4], *hats, iterations, evaluations, residual)
    if not residual < tolerance:
        reason = f"the fixed-point iteration did not converge in {iterations} iterations"
        shown = {name: getattr(solution, name) for name in ("m", "v", "bias", "chi", "overlap")}
        raise ConvergenceError(stage.t, reason, shown, residual)
    if stage.previous is None:
        solution = solution._replace(overlap=math.nan, r_hat=math.nan)
    return solution


def _change(old: _Order, old_bias: float, new: _Order, new_bias: float) -> float:
    r"""$\max|\Theta_s - \Theta_{s-1}|$ over q, $\chi$, m, R and B; NaN if one of them is."""
    before = (old.m**2 + old.v, old.chi, old.m, old.overlap, old_bias)
    after = (new.m**2 + new.v, new.chi, new.m, new.overlap, new_bias)
    return float(np.max(np.abs(np.subtract(after, before))))


def _order(stage: _Stage, hats: _Hats) -> _Order:
    r"""$\mathcal F$: `eq:rs-saddle-q`, `eq:rs-saddle-chi`, `eq:rs-saddle-m`, `eq:rs-saddle-r`.

    The differences $v = q - m^2$ and $q - R^2/q'$ are written without cancellation.
    """
    chi = 1.0 / (hats.q + stage.ridge)
    if stage.previous is None:
        m, v = hats.m * chi, hats.chi * chi**2
        return _Order(m, v, chi, 0.0, math.sqrt(m**2 + v), 0.0)
    m_last, v_last = stage.previous
    q_last = m_last**2 + v_last
    m = (hats.m + hats.r * m_last) * chi
    v = (hats.chi + hats.r**2 * v_last) * chi**2
    overlap = (hats.m * m_last + hats.r * q_last) * chi
    across = math.sqrt(hats.chi + hats.m**2 * v_last / q_last) * chi
    return _Order(m, v, chi, overlap, overlap / math.sqrt(q_last), across)


def _conjugates(
    stage: _Stage, order: _Order, bias: float, accuracy: float
) -> tuple[_Hats, float, int]:
    r"""$\hat{\mathcal F}$: the averages at $\Theta$, with B from `eq:rs-saddle-b`.

    E[f] increases with B; Newton's method is kept inside the bracket found so far.
    """
    root = math.sqrt(stage.delta)
    fields = (root * order.along, root * order.across, order.chi * stage.delta)
    found = averages(stage.points, order.m, bias, *fields)
    low, high, shift, count = -math.inf, math.inf, math.inf, 1
    while not stage.fix_bias and abs(shift) > accuracy and count < 100:
        low, high = (bias, high) if found.mean < 0 else (low, bias)
        shift = -found.mean / found.slope
        limit = 4.0 + abs(bias)
        bias += min(max(shift, -limit), limit)
        if not low <= bias <= high:
            bias = 0.5 * (low + high)
        if abs(shift) > accuracy:
            found, count = averages(stage.points, order.m, bias, *fields), count + 1
    response = found.response
    if stage.edges is not None:
        response -= averages(stage.edges, order.m, bias, *fields).mean
    gain = stage.alpha * stage.delta
    hats = _Hats(
        gain * found.slope, gain * found.square, -stage.alpha * found.signed, gain * response
    )
    return hats, bias, count


def _check(problem: Problem, recipe: Recipe, damping: float, tolerance: float) -> None:
    if not all(isinstance(problem.loss_at(t), Logistic) for t in (0, 1)):
        raise InvalidInput(
            "loss", problem.loss_names, "Algorithm 1 is here for the logistic loss only"
        )
    soft = type(recipe.label_function) is SoftLabels
    if not soft or np.isinf(recipe.at_steps(problem.steps).sharpness).any():
        raise InvalidInput("labeler", recipe.labeler, "Algorithm 1 is here for soft labels only")
    if not 0 < damping <= 1:
        raise InvalidInput("damping", damping, "a number in (0, 1] is accepted")
    if not 0 < tolerance < 1:
        raise InvalidInput("tolerance", tolerance, "a number between 0 and 1 is accepted")
