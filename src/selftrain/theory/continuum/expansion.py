r"""One step at a small ridge: first-order coefficients, and the noise, which is of second order.

The formal expansion $\Theta = \Theta_0 + \Theta_1\lambda + \dots$ of the self-consistent equations
(Assumption `assumption: stability`), worked out for any convex loss whose slope vanishes at its own
soft label (Assumption `assumption: loss`), with selection, with the bias trained or fixed.
`first_order` gives the coefficients of Prediction `pred: differential equation`,
`second_order_noise` the limits in Prediction `pred: smoothing`. The averages and the linear system
are in `linear_response`. `start_of` and `stretches` are the start and the stretches of time of a
path in continuous time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput, StateOverflow
from ...fields import expand, whole
from ...labelers import Labeler
from ...losses import Loss
from ...problem import Problem
from ...recipe import Recipe
from ..solve import solve
from ..trajectory import Trajectory
from .linear_response import GivenBatch, Response, State, respond

LARGEST_LOG = 340.0
"""Largest logarithm of the factor by which weights may grow or shrink; squares do not overflow."""

_LOGITS = np.linspace(-6.0, 6.0, 97)
_SHARPER = 1.5
"""Logits and a sharpness at which a labeler is compared with the link of the loss."""


@dataclass(frozen=True)
class FirstOrder:
    r"""Coefficients of a step from a given model. Index 0 is the value at $\lambda = 0$, index 1
    the derivative in $\lambda$ there.

    Attributes:
        m1, q1, v1, bias1: derivatives of $m$, $q$, $v = q - m^2$ and $B$.
        overlap1: that of the overlap $R$ with the old weights, $q_1 = 2R_1$ (`appeq: q1`).
        m_hat1: that of the signal $\hat m$; $\hat m_0 = 0$.
        delta_hat1: $\hat\delta_1 = \hat R_1 - \hat Q_1$ (`appeq: deltahat1`).
        chi0, q_hat0: $\chi_0$ and $\hat Q_0 = \hat R_0 = 1/\chi_0$.
        alignment_rate: $C = 2\hat m_1/(\hat Q_0 m')$, the rate of $\ln(M/(1-M))$; NaN for m' = 0.
        squared_cosine1: derivative of $M = m^2/q$, $M_1 = C M(1-M)$.
        points: $\alpha_U P$, the selected samples per feature at which the second derivative of the
            loss is not zero; the expansion needs more than 1.
    """

    m1: float
    q1: float
    v1: float
    bias1: float
    overlap1: float
    m_hat1: float
    delta_hat1: float
    chi0: float
    q_hat0: float
    alignment_rate: float
    squared_cosine1: float
    points: float


@dataclass(frozen=True)
class SecondOrderNoise:
    r"""The two ratios to $\lambda^2$ of Prediction `pred: smoothing`.

    Attributes:
        chi_hat: $\hat\chi/\lambda^2$, the noise in the weights.
        fresh: $(q - R^2/q')/\lambda^2$, the squared new weights orthogonal to the old ones.
    """

    chi_hat: float | Array
    fresh: float | Array


def first_order(
    problem: Problem, recipe: Recipe, state: State | Trajectory, t: int = 1
) -> FirstOrder:
    r"""Return the first order in $\lambda_U$ of step t (Prediction `pred: differential equation`,
    for any loss).

    Arguments:
        problem: data and loss; the batch is that of step t.
        recipe: threshold, annealing, and whether the bias is fixed. Without annealing its ridge
            $\lambda_U$ does not matter; with it $\epsilon = a t/\lambda_U$ is held fixed as
            $\lambda_U \to 0$.
        state: the model that labels the batch: a `State`, or a run, of which step t - 1 is used.
        t: the step, from 1 to `problem.steps`.

    Raises:
        InvalidInput: labels that are not the link of the loss (hard, sharpened), or a loss whose
            slope does not vanish at its own soft label: then a step without ridge changes the
            model.
        NoExpansion: $\alpha_U$ times the selected proportion is not above 1.
        StateOverflow: a coefficient overflows.

    >>> from selftrain import Problem, Recipe, solve
    >>> problem = Problem(alpha_l=0.5, alpha_u=4.0, rho=0.15, delta=1.2, steps=1)
    >>> for fixed in (True, False):
    ...     recipe = Recipe(lambda_l=0.005, fix_bias=fixed)
    ...     print(round(first_order(problem, recipe, solve(problem, recipe)).alignment_rate, 2))
    -7.27
    8.77
    """
    old, _, answer = _answer(problem, recipe, state, t)
    return coefficients(old, answer, t)


def _answer(
    problem: Problem, recipe: Recipe, state: State | Trajectory, t: int
) -> tuple[State, GivenBatch, Response]:
    """Return the labelling model, the batch of step t, and the response of the step."""
    check_expandable(problem, recipe)
    batch = batch_of(problem, recipe, t)
    annealing = expand("annealing", recipe.annealing, problem.steps)
    sharpening = float(annealing[t - 1] * t / recipe.at_steps(problem.steps).lambda_u[t - 1])
    old = _labelling_model(state, t)
    return old, batch, respond(problem.loss_at(1), old, batch, recipe.fix_bias, sharpening)


def coefficients(old: State, answer: Response, t: int = 1) -> FirstOrder:
    r"""Return the first order of a step from `old`; `t` is the step index for error messages."""
    omega, mu, nu2 = old.norm, old.cosine, old.misalignment
    found = FirstOrder(
        m1=omega * (answer.shrink * mu + nu2 * answer.turn),
        q1=2 * answer.shrink * old.q,
        v1=2 * (answer.shrink - mu * answer.turn) * old.v,
        bias1=answer.drift * omega,
        overlap1=answer.shrink * old.q,
        m_hat1=omega * answer.turn / answer.chi,
        delta_hat1=1.0 - (mu * answer.turn - answer.shrink) / answer.chi,
        chi0=answer.chi,
        q_hat0=1.0 / answer.chi,
        alignment_rate=2 * answer.turn / mu if mu != 0 else float("nan"),
        squared_cosine1=2 * mu * nu2 * answer.turn,
        points=answer.points,
    )
    numbers = {name: value for name, value in asdict(found).items() if name != "alignment_rate"}
    _check_range(t, old, **numbers)
    return found


def second_order_noise(
    problem: Problem, recipe: Recipe, state: State | Trajectory, t: int = 1
) -> SecondOrderNoise:
    r"""Return the limits of $\hat\chi/\lambda^2$ and $(q - R^2/q')/\lambda^2$ for $\lambda \to 0$
    (Prediction `pred: smoothing`).

    Arguments as in `first_order`. `measured_noise` gives the same ratios of a solved run.

    >>> from selftrain import Problem, Recipe, solve
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=1)
    >>> run = solve(problem, Recipe(lambda_u=1e-6))
    >>> limit = second_order_noise(problem, Recipe(), run)
    >>> round(float(measured_noise(run).chi_hat[1] / limit.chi_hat), 3)
    1.0
    """
    old, batch, answer = _answer(problem, recipe, state, t)
    alpha, delta, stiffness = batch.alpha, batch.delta, answer.stiffness
    with np.errstate(over="ignore", invalid="ignore"):
        turn = np.float64(answer.turn) / answer.chi
        signal = old.misalignment * turn * turn
        square = alpha * (delta * answer.noise + stiffness * signal) / (1.0 - alpha * stiffness)
        chi_hat, fresh = old.q * square, old.q * answer.chi * answer.chi * (square + signal)
    _check_range(t, old, chi_hat=float(chi_hat), fresh=float(fresh))
    return SecondOrderNoise(float(chi_hat), float(fresh))


def _check_range(t: int, old: State, **values: float) -> None:
    """Raise if coefficients are not finite, with their names."""
    wrong = [name for name, value in values.items() if not math.isfinite(value)]
    if wrong:
        reason = f"{', '.join(wrong)} of the expansion in the ridge overflows"
        raise StateOverflow(t, reason, asdict(old), math.nan)


def measured_noise(run: Trajectory) -> SecondOrderNoise:
    r"""Return $\hat\chi/\lambda^2$ and $(q - R^2/q')/\lambda^2$ at every step of a solved run,
    arrays over t; NaN at t = 0.

    For small $\lambda$ they do not depend on it and equal `second_order_noise`.
    """
    ridge = np.append(np.nan, run.recipe.at_steps(run.problem.steps).lambda_u)
    misalignment = np.append(np.nan, run.v[:-1] / run.q[:-1])
    fresh = run.chi**2 * (run.chi_hat + run.m_hat**2 * misalignment)
    return SecondOrderNoise(run.chi_hat / ridge**2, fresh / ridge**2)


def batch_of(problem: Problem, recipe: Recipe, t: int) -> GivenBatch:
    """Return the parameters of the batch of step t."""
    accepted = f"must be a step from 1 to {problem.steps}"
    t = whole("t", t, lambda n: 1 <= n <= problem.steps, accepted)
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    row = (batches.alpha, batches.rho, batches.delta, values.threshold)
    return GivenBatch(*(float(column[t - 1]) for column in row))


def check_expandable(problem: Any, recipe: Any) -> None:
    """Raise, with the reason, if a step changes the model even without ridge."""
    for name, value, kind in (("problem", problem, Problem), ("recipe", recipe, Recipe)):
        if not isinstance(value, kind):
            raise InvalidInput(name, value, f"must be a selftrain.{kind.__name__}")
    problem.needs_sphere("the expansion in the ridge")
    problem.needs_fresh_batches("the expansion in the ridge")
    recipe.at_steps(problem.steps)
    moves = "with others a step moves the model by O(1) without any ridge"
    if np.any(np.asarray(recipe.sharpness) != 1):
        raise InvalidInput("sharpness", recipe.sharpness, f"must be 1: {moves}")
    loss, labeler = problem.loss_at(1), recipe.label_function
    if not _sharpens(labeler, loss, 1.0):
        accepted = f"must give labels equal to the link of the loss: {moves}"
        raise InvalidInput("labeler", labeler.name, accepted)
    if np.any(np.asarray(recipe.annealing) != 0) and not _sharpens(labeler, loss, _SHARPER):
        accepted = "must, with annealing, give the link of the logit times the sharpness"
        raise InvalidInput("labeler", labeler.name, accepted)
    slope = np.abs(loss.slope(np.asarray(loss.link(_LOGITS), dtype=float), _LOGITS))
    if slope.max() > 1e-9:
        at = _LOGITS[int(np.argmax(slope))]
        accepted = (
            "must be a loss whose slope vanishes at its own soft label: "
            f"at the logit {at:g} and the label link({at:g}) it is {slope.max():.3g}"
        )
        raise InvalidInput("loss", loss.name, accepted)


def _sharpens(labeler: Labeler, loss: Loss, sharpness: float) -> bool:
    """Return whether the labels at this sharpness are the link of the sharpened logit."""
    own = np.asarray(loss.link(sharpness * _LOGITS), dtype=float)
    given = np.asarray(labeler.target(_LOGITS, sharpness, loss), dtype=float)
    return bool(np.abs(given - own).max() <= 1e-12 * (1 + np.abs(own).max()))


def _labelling_model(state: Any, t: int) -> State:
    if isinstance(state, Trajectory):
        if t > state.good_steps:
            accepted = f"must be a step from 1 to {state.good_steps}, which have a labelling model"
            raise InvalidInput("t", t, accepted)
        return State.at(state, t - 1)
    if not isinstance(state, State):
        raise InvalidInput("state", state, "must be a State(m, v, bias) or a Trajectory")
    return state


class Stretch(NamedTuple):
    r"""A stretch of time over which the batches do not change.

    Attributes:
        begin: the time at which it begins.
        batch: parameters of its batches.
        sharpened: sharpening $\epsilon = (\gamma - 1)/\lambda_U$ of the labels at its beginning.
        sharpens: the rate $\kappa = a/\lambda_U^2$ at which that grows.
    """

    begin: float
    batch: GivenBatch
    sharpened: float
    sharpens: float

    def sharpening(self, tau: float) -> float:
        r"""Return the sharpening $\epsilon$ at time tau, which lies in this stretch."""
        return self.sharpened + self.sharpens * (tau - self.begin)


def check_continuous(problem: Any, recipe: Any) -> None:
    """Raise, with the reason, if there is no limit of many steps with a small ridge."""
    check_expandable(problem, recipe)
    if problem.steps == 0:
        raise InvalidInput("steps", 0, "must be 1 or more, to say what a batch is")


def start_of(problem: Problem, recipe: Recipe) -> State:
    """Return the supervised model, from which a path starts."""
    first = problem.labeled_alone()
    return State.at(solve(first, Recipe(lambda_l=recipe.lambda_l), tolerance=1e-13), 0)


def stretches(problem: Problem, recipe: Recipe) -> Iterator[Stretch]:
    """Yield the stretches of time with the same batches and the same rate of sharpening."""
    begin, before = 0.0, None
    ridges = recipe.at_steps(problem.steps).lambda_u.tolist()
    annealing = expand("annealing", recipe.annealing, problem.steps).tolist()
    for t, (a, ridge) in enumerate(zip(annealing, ridges, strict=True), start=1):
        batch = batch_of(problem, recipe, t)
        now = (batch, a / ridge if a else 0.0, ridge if a else 0.0)
        if now != before:
            yield Stretch(begin, batch, a * (t - 1) / ridge, a / ridge / ridge)
        begin, before = begin + ridge, now
