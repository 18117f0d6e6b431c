r"""Tuned self-training against its length: T = 1, 2, 4, ..., each T tuned apart.

Behind the figures of Section 4 and 5 of the paper: errors relative to supervised learning, cosines,
optimal ridges and annealing, susceptibilities. A point is a whole chain of T, because the optimum
at T/2 is the natural place to start from at T.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import NoGradient
from ...problem import Problem
from ...recipe import Recipe
from ...sweep import Computation, Output
from ...theory.bayes import BayesLimits, bayes_error
from ...tuning.optimum import Optimum, labeled_optimum
from ...tuning.supervised import SupervisedFit, supervised_optimum
from .tuned import LARGEST_RIDGE, SMALLEST_RIDGE, TOLERANCE, tuned

MEASURED = ("error", "one_minus_cosine", "q", "m", "bias", "chi")
RIDGES = ("lambda_l", "lambda_u")
SETTLED = 32
"""In longer runs than this the best recipe was always found in the valley of the run of half the length."""
CHOSEN = ("lambda_l", "lambda_u", "threshold", "annealing")


def chain(
    alpha_l: float,
    alpha_u: float,
    rho: float,
    delta: float,
    selection: bool,
    heuristics: bool,
    longest: int,
) -> dict[str, Any]:
    """The tuned run of every T = 1, 2, 4, ..., `longest`, at its last step.

    Batches of less than a point per feature shrink the weights by a factor a step. From the T on at
    which they fade to nothing, under every recipe, what depends on them is NaN.

    Arguments:
        selection: tune the threshold too.
        heuristics: fix the bias, and tune the annealing of the labels too.
        longest: the last T, a power of two.
    """
    lengths = 2 ** np.arange(int(longest).bit_length())
    rows: list[dict[str, float]] = []
    plain: Optimum | None = None
    best: Optimum | None = None
    faded = False
    for length in lengths.tolist():
        problem = Problem(alpha_l, alpha_u, rho, delta, steps=length)
        try:
            if faded:
                raise NoGradient("shorter runs have faded already")
            if heuristics:
                best = tuned(problem, (*RIDGES, "annealing"), helped_starts(length, best))
            else:
                plain = tuned(problem, RIDGES, plain_starts(length, plain))
                best = selected(problem, plain, best) if selection else plain
            rows.append(_row(best))
        except NoGradient:
            faded = True
            rows.append(_faded_row(problem))
    return {"T": lengths, **{name: np.array([row[name] for row in rows]) for name in rows[0]}}


def plain_starts(length: int, last: Optimum | None = None) -> Iterator[Recipe]:
    """The two valleys seen, at the upper bound of the first ridge and far below it; the optimum at half the length."""
    if last is not None:
        yield _longer(last.recipe)
    if last is None or length <= SETTLED:
        yield Recipe(lambda_l=0.05, lambda_u=min(0.5 / length, 0.9 * LARGEST_RIDGE))
        yield Recipe(lambda_l=1e-3 / length, lambda_u=0.05 / length)


def helped_starts(length: int, last: Optimum | None = None) -> Iterator[Recipe]:
    """With the bias fixed, labels that are hard at the end or hardly annealed; the optimum at half the length."""
    if last is not None:
        yield _longer(last.recipe)
    if last is None or length <= SETTLED:
        ridge = min(0.2 / length, 0.9 * LARGEST_RIDGE)
        for annealing in (2.0 / length, 0.2 / length):
            yield Recipe(0.05, ridge, annealing=annealing, fix_bias=True)


def selected(problem: Problem, plain: Optimum, last: Optimum | None = None) -> Optimum:
    """The best threshold too: from the best recipe without one, which it is never worse than."""
    starts = [] if last is None else [_longer(last.recipe)]
    if last is None or problem.steps <= SETTLED:
        starts.append(plain.recipe.replace(threshold=0.3))
    found = tuned(problem, (*RIDGES, "threshold"), starts)
    return min(found, plain, key=lambda one: one.error)


def _longer(recipe: Recipe) -> Recipe:
    """A recipe for twice the steps: half the ridge, unless its upper bound holds it."""
    ridge = _number(recipe.lambda_u)
    return recipe.replace(
        lambda_u=ridge if ridge > 0.5 * LARGEST_RIDGE else max(ridge / 2, 2 * SMALLEST_RIDGE),
        annealing=_number(recipe.annealing) / 2,
    )


def _row(best: Optimum) -> dict[str, float]:
    return {
        **{name: float(getattr(best.trajectory, name)[-1]) for name in MEASURED},
        **{name: _number(getattr(best.recipe, name)) for name in CHOSEN},
        **_references(best.labeled_only, best.supervised, best.bayes),
        "first_order": best.first_order,
    }


def _faded_row(problem: Problem) -> dict[str, float]:
    """Only what the data alone give."""
    supervised = supervised_optimum(problem, bounds=(0.0, LARGEST_RIDGE))
    alone = labeled_optimum(problem, (SMALLEST_RIDGE, LARGEST_RIDGE), TOLERANCE)
    return {
        **dict.fromkeys((*MEASURED, *CHOSEN), float("nan")),
        **_references(alone, supervised, bayes_error(problem)),
        "first_order": float("nan"),
    }


def _references(
    alone: SupervisedFit, supervised: SupervisedFit, limits: BayesLimits
) -> dict[str, float]:
    return {
        "labeled_only": alone.error,
        "supervised": supervised.error,
        "supervised_one_minus_cosine": 1 - supervised.cosine,
        "bayes": limits.semi_supervised,
        "bayes_all_labeled": limits.all_labeled,
        "bayes_one_minus_cosine": 1 - float(np.sqrt(limits.overlap_semi_supervised)),
    }


def _number(value: Any) -> float:
    return float(value)


def _seconds(selection: bool, heuristics: bool, longest: int, **_: Any) -> float:
    steps = 2 * longest + 50
    return steps * (0.005 if selection else 0.003 if heuristics else 0.0018)


OVER_T = ("T",)
CHAIN = Computation(
    chain,
    {
        "T": Output("T", OVER_T),
        "error": Output(r"\epsilon_g^{(T)}", OVER_T),
        "one_minus_cosine": Output(r"1 - m^{(T)}/\sqrt{q^{(T)}}", OVER_T),
        "q": Output("q^{(T)}", OVER_T),
        "m": Output("m^{(T)}", OVER_T),
        "bias": Output("B^{(T)}", OVER_T),
        "chi": Output(r"\chi^{(T)}", OVER_T),
        "lambda_l": Output(r"\lambda_L^*", OVER_T),
        "lambda_u": Output(r"\lambda_U^*", OVER_T),
        "threshold": Output(r"\Gamma^*", OVER_T),
        "annealing": Output("a^*", OVER_T),
        "labeled_only": Output(r"\epsilon_g", OVER_T),
        "supervised": Output(r"\epsilon_g^{(SL)}", OVER_T),
        "supervised_one_minus_cosine": Output(r"1 - m^{(SL)}/\sqrt{q^{(SL)}}", OVER_T),
        "bayes": Output(r"\epsilon_{Bayes}", OVER_T),
        "bayes_all_labeled": Output(r"\epsilon_{Bayes}^{(SL)}", OVER_T),
        "bayes_one_minus_cosine": Output(r"1 - \sqrt{M_{Bayes}}", OVER_T),
        "first_order": Output(r"\|\nabla\epsilon_g^{(T)}\|_\infty", OVER_T),
    },
    seconds=_seconds,
)
