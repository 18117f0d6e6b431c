r"""Self-training runs of T = 1, 2, 4, ... steps, tuned for each T or at fixed ridges.

The figures of Sections 4 and 5 of the paper use it: errors relative to supervised learning,
cosines, optimal ridges and annealing, hardness of the labels, susceptibilities. A point of a sweep
is a whole chain of T, because the search at T starts at the optimum of T/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.optimize import minimize

from ...errors import NoGradient, StageError
from ...parameters import LARGEST_RIDGE, SEARCH_BOUNDS, SMALLEST_RIDGE
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation
from ...theory.bayes import BayesLimits, bayes_error
from ...theory.solve import solve
from ...tuning.optimum import Optimum
from ...tuning.supervised import (
    SupervisedFit,
    SupervisedOptimum,
    labeled_optimum,
    supervised_optimum,
)
from .outputs import outputs
from .tuned import TOLERANCE, better, constant, constants, tuned

MEASURED = ("error", "one_minus_cosine", "q", "m", "bias", "chi")
RIDGES = ("lambda_l", "lambda_u")
SETTLED = 32
"""Longer runs are searched only from the optimum of half the length: no better local minimum was
ever found elsewhere.
"""
CHOSEN = ("lambda_l", "lambda_u", "threshold", "annealing")
ALONG = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Steps at which the hardness of the labels is measured, as fractions of T; 0 is step 1."""

REACH = 12.0
"""Range of Gaussian integrals in standard deviations; the neglected tails are below 1e-32."""

PANELS, NODES = 64, 12

FADED_SEARCH = 60
"""Largest number of runs per coordinate of a search among recipes whose weights fade (shrink to
zero over the steps)."""


def chain(selection: bool, heuristics: bool, longest: int, **setting: Any) -> dict[str, Any]:
    """Tune the run of every T = 1, 2, 4, ..., `longest`, and measure its last step.

    Batches of less than one sample per feature shrink the weights by a factor in every step: the
    weights fade. If they underflow, balanced classes still have a direction (`theory.faded`);
    imbalanced ones do not, and quantities that depend on it are NaN.

    Arguments:
        selection: tune the threshold too.
        heuristics: fix the bias, and tune the annealing of the labels too.
        longest: the last T, a power of two.
        setting: the other fields of the problem.
    """
    lengths = 2 ** np.arange(int(longest).bit_length())
    rows: list[dict[str, Any]] = []
    plain: Optimum | None = None
    best: Optimum | None = None
    faded: Recipe | None = None
    for length in lengths.tolist():
        problem = Problem(**setting, steps=length)
        try:
            if faded is not None:
                raise NoGradient("shorter runs have faded already")
            if heuristics:
                best = tuned(problem, (*RIDGES, "annealing"), helped_starts(length, best))
            else:
                plain = tuned(problem, RIDGES, plain_starts(length, plain))
                best = selected(problem, plain, best) if selection else plain
            if best.trajectory.fading is not None:
                raise NoGradient("the weights of this run fade")
            rows.append(_row(best))
        except NoGradient:
            faded = faded or (best.recipe if best is not None else Recipe(lambda_u=LARGEST_RIDGE))
            faded, row = _faded_row(problem, faded, selection)
            rows.append(row)
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {"T": lengths, "along": np.array(ALONG), **columns}


def plain_starts(length: int, last: Optimum | None = None) -> Iterator[Recipe]:
    """Yield starts of a search: the optimum `last` of half the length, and the two local minima.

    One local minimum has lambda_u near its upper bound, the other far below. The optimum of half
    the length starts with half its ridge, because the best ridge falls as 1/T; it also starts
    unchanged if half the ridge may be too small for the solver.
    """
    if last is not None:
        yield longer(last.recipe)
        if constant(last.recipe, "lambda_u") < 1e-8:
            yield last.recipe
    if last is None or length <= SETTLED:
        yield Recipe(lambda_l=0.05, lambda_u=min(0.5 / length, 0.9 * LARGEST_RIDGE))
        yield Recipe(lambda_l=1e-3 / length, lambda_u=0.05 / length)


def helped_starts(length: int, last: Optimum | None = None) -> Iterator[Recipe]:
    """Yield starts of a search with both heuristics: the optimum `last` of half the length, strong
    annealing, and weak annealing.
    """
    if last is not None:
        yield longer(last.recipe)
    if last is None or length <= SETTLED:
        ridge = min(0.2 / length, 0.9 * LARGEST_RIDGE)
        for annealing in (2.0 / length, 0.2 / length):
            yield Recipe(0.05, ridge, annealing=annealing, fix_bias=True)


def selected(problem: Problem, plain: Optimum, last: Optimum | None = None) -> Optimum:
    """Tune the ridges and the threshold; return `plain`, the optimum without threshold, if better.

    `last` is the optimum of half the length.
    """
    starts = [] if last is None else [longer(last.recipe)]
    if last is None or problem.steps <= SETTLED:
        starts.append(plain.recipe.replace(threshold=0.3))
    try:
        found = tuned(problem, (*RIDGES, "threshold"), starts)
    except NoGradient:
        return plain
    return better(found, plain)


def longer(recipe: Recipe) -> Recipe:
    """Return a recipe for twice the steps: half the ridge, unless that is at its upper bound."""
    ridge = constant(recipe, "lambda_u")
    return recipe.replace(
        lambda_u=ridge if ridge > 0.5 * LARGEST_RIDGE else max(ridge / 2, 2 * SMALLEST_RIDGE),
        annealing=constant(recipe, "annealing") / 2,
    )


def _row(best: Optimum) -> dict[str, Any]:
    run = best.trajectory
    return {
        **{name: float(getattr(run, name)[-1]) for name in MEASURED},
        **constants(best.recipe, *CHOSEN),
        **_references(best.labeled_only, best.supervised, best.bayes),
        "hardness": np.array([_hardness_at(best, share) for share in ALONG]),
        "hardness_soft": _hardness_at(best, 1.0, sharpness=1.0),
        "first_order": math.inf if _at_the_end(best) else best.first_order,
        "faded": 0.0,
    }


def _hardness_at(best: Optimum, share: float, sharpness: float | None = None) -> float:
    """Return the hardness of the labels of a step, from the model that labels; `share`: the step as
    a fraction of T.
    """
    run, steps = best.trajectory, best.problem.steps
    before = max(1, round(share * steps)) - 1
    used = best.recipe.at_steps(steps).sharpness if sharpness is None else [sharpness] * steps
    batches = best.problem.unlabeled
    columns = (run.m, run.q, run.bias, batches.rho, batches.delta, used)
    return hardness(*(float(column[before]) for column in columns))


def hardness(m: float, q: float, bias: float, rho: float, delta: float, sharpness: float) -> float:
    r"""Compute the hardness of soft labels: $E|\tanh(\gamma\tilde h/2)|$, that is, $E|2p - 1|$, for
    logits $\tilde h = s m + B + \sqrt{q\Delta}\,g$. It is 1 for hard labels.

    Arguments:
        m, q, bias: of the model that labels.
        rho, delta: of the batch.
        sharpness: $\gamma$.

    >>> round(hardness(0.0, 1.0, 0.0, 0.5, 1.0, 1e9), 6)
    1.0
    >>> abs(hardness(1e-9, 1e-12, 0.5, 0.3, 1.0, 2.0) - math.tanh(0.5)) < 1e-6
    True
    """
    nodes, weights = leggauss(NODES)
    spread = math.sqrt(q * delta)
    total = 0.0
    for sign, share in ((1.0, rho), (-1.0, 1.0 - rho)):
        kink = float(np.clip(-(sign * m + bias) / spread, -REACH, REACH))
        scale = 1.0 / (sharpness * spread)
        fine = kink + np.outer([-1.0, 1.0], np.geomspace(min(scale, 1.0) * 1e-2, 2 * REACH, PANELS))
        edges = np.unique(np.clip(np.append(fine, [kink, -REACH, REACH]), -REACH, REACH))
        half, centre = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
        g = centre[:, None] + half[:, None] * nodes
        density = np.exp(-0.5 * g**2) / math.sqrt(2 * math.pi)
        values = np.abs(np.tanh(0.5 * sharpness * (sign * m + bias + spread * g))) * density
        total += share * float(half @ values @ weights)
    return total


def _at_the_end(best: Optimum) -> bool:
    """Return whether lambda_u is at a lower bound that was raised because the solver could not
    confirm runs below it.
    """
    low = best.bounds["lambda_u"][0]
    return low > SMALLEST_RIDGE and constant(best.recipe, "lambda_u") < 1.05 * low


def _faded_row(problem: Problem, start: Recipe, selection: bool) -> tuple[Recipe, dict[str, Any]]:
    """Return the best recipe whose weights fade, and its row of results.

    The direction no longer depends on step 0, so lambda_l stays that of the start.
    """
    bounds = [(math.log(SMALLEST_RIDGE), math.log(LARGEST_RIDGE)), SEARCH_BOUNDS["threshold"]]
    bounds = bounds if selection else bounds[:1]

    def recipe(at: Any) -> Recipe:
        threshold = float(at[1]) if selection else 0.0
        return start.replace(lambda_u=math.exp(min(at[0], bounds[0][1])), threshold=threshold)

    def error(at: Any) -> float:
        try:
            run = solve(problem, recipe(at))
        except StageError:
            return 1.0
        return 1.0 if run.collapsed_at is not None else float(run.error[-1])

    row: dict[str, Any] = {
        **dict.fromkeys((*MEASURED, *CHOSEN, "hardness_soft"), math.nan),
        "hardness": np.full(len(ALONG), math.nan),
        **_references(
            labeled_optimum(problem, (SMALLEST_RIDGE, LARGEST_RIDGE), TOLERANCE),
            supervised_optimum(problem, bounds=(0.0, LARGEST_RIDGE)),
            bayes_error(problem),
        ),
        "first_order": math.nan,
        "faded": 1.0,
    }
    if problem.unlabeled.rho[0] != 0.5:
        return start, row
    begin = [math.log(constant(start, "lambda_u")), constant(start, "threshold")][: len(bounds)]
    found = minimize(
        error,
        begin,
        method="Nelder-Mead",
        bounds=bounds,
        options={"xatol": 1e-6, "fatol": 1e-12, "maxfev": FADED_SEARCH * len(bounds)},
    )
    best = recipe(found.x)
    end = solve(problem, best)
    row |= constants(best, *CHOSEN)
    row |= {name: float(getattr(end, name)[-1]) for name in ("error", "one_minus_cosine", "chi")}
    row |= {"q": math.exp(end.log_q[-1]), "m": 0.0, "bias": 0.0}
    return best, row


def _references(
    alone: SupervisedFit, supervised: SupervisedOptimum, limits: BayesLimits
) -> dict[str, float]:
    anything = supervised.unbounded or supervised
    return {
        "labeled_only": alone.error,
        "supervised": supervised.error,
        "supervised_any_ridge": anything.error,
        "supervised_one_minus_cosine": 1 - supervised.cosine,
        "bayes": limits.semi_supervised,
        "bayes_all_labeled": limits.all_labeled,
        "bayes_one_minus_cosine": 1 - float(np.sqrt(limits.overlap_semi_supervised)),
    }


CHAIN = Computation(
    chain,
    {
        **outputs(
            "T error lambda_l lambda_u threshold annealing labeled_only supervised bayes"
            " first_order",
            "T",
            one_minus_cosine=r"1 - m^{(T)}/\sqrt{q^{(T)}}",
            q="q^{(T)}",
            m="m^{(T)}",
            bias="B^{(T)}",
            chi=r"\chi^{(T)}",
            hardness_soft="E|2p - 1|, a = 0",
            supervised_any_ridge=r"\epsilon_g^{(SL)}",
            supervised_one_minus_cosine=r"1 - m^{(SL)}/\sqrt{q^{(SL)}}",
            bayes_all_labeled=r"\epsilon_{Bayes}^{(SL)}",
            bayes_one_minus_cosine=r"1 - \sqrt{M_{Bayes}}",
            faded="faded",
        ),
        **outputs("", "along", along="t/T"),
        **outputs("", "T", "along", hardness="E|2p - 1|"),
    },
    seconds=lambda selection, heuristics, longest, **_: (
        (2 * longest + 50) * (0.005 if selection else 0.003 if heuristics else 0.0018)
    ),
)


def fixed_ridge(lambda_l: float, lambda_u: float, longest: int, **setting: Any) -> dict[str, Any]:
    """Solve runs of T = 1, 2, 4, ..., `longest` steps at fixed ridges, and return their
    last step.
    """
    lengths = 2 ** np.arange(int(longest).bit_length())
    recipe = Recipe(lambda_l, lambda_u)
    runs = [solve(Problem(**setting, steps=length), recipe) for length in lengths.tolist()]
    return {
        "T": lengths,
        "chi": np.array([run.chi[-1] for run in runs]),
        "error": np.array([run.error[-1] for run in runs]),
    }


FIXED_RIDGE = Computation(
    fixed_ridge,
    outputs("T error", "T", chi=r"\chi^{(T)}"),
    seconds=lambda longest, **_: 0.1 + 0.0005 * longest,
)
