r"""Tuned self-training against its length: T = 1, 2, 4, ..., each T tuned apart.

Behind the figures of Section 4 and 5 of the paper: errors relative to supervised learning, cosines,
optimal ridges and annealing, susceptibilities. A point is a whole chain of T, because the optimum
at T/2 is the natural place to start from at T.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...problem import Problem
from ...recipe import Recipe
from ...sweep import Computation, Output
from ...theory.bayes import bayes_error
from ...tuning.supervised import supervised_optimum
from .tuned import LARGEST_RIDGE, Tuned, tuned

MEASURED = ("error", "one_minus_cosine", "q", "m", "bias", "chi")
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

    Arguments:
        selection: tune the threshold too.
        heuristics: fix the bias, and tune the annealing of the labels too.
        longest: the last T, a power of two.
    """
    over = ["lambda_l", "lambda_u"]
    over += ["threshold"] if selection else []
    over += ["annealing"] if heuristics else []
    lengths = 2 ** np.arange(int(longest).bit_length())
    rows: list[dict[str, float]] = []
    last: Tuned | None = None
    for length in lengths.tolist():
        problem = Problem(alpha_l, alpha_u, rho, delta, steps=length)
        last = tuned(problem, over, list(starts(length, selection, heuristics, last)))
        rows.append(_row(problem, last))
    return {"T": lengths, **{name: np.array([row[name] for row in rows]) for name in rows[0]}}


def starts(length: int, selection: bool, heuristics: bool, last: Tuned | None) -> Iterator[Recipe]:
    """Where the search begins: the optimum of half the length, and two places in the valleys seen."""
    recipe = Recipe(
        threshold=0.3 if selection else 0.0,
        annealing=1.0 / length if heuristics else 0.0,
        fix_bias=heuristics,
    )
    for lambda_l, lambda_u in ((0.05, 0.5), (1e-3, 0.05)):
        yield recipe.replace(
            lambda_l=lambda_l / (1 if lambda_l > 0.01 else length),
            lambda_u=min(lambda_u / length, 0.9 * LARGEST_RIDGE),
        )
    if last is not None:
        near = last.recipe
        yield near.replace(
            lambda_l=max(near.lambda_l, 1e-7),
            lambda_u=max(_number(near.lambda_u) / 2, 1e-7),
            annealing=_number(near.annealing) / 2,
        )


def _row(problem: Problem, best: Tuned) -> dict[str, float]:
    supervised = supervised_optimum(problem, bounds=(0.0, LARGEST_RIDGE))
    limits = bayes_error(problem)
    return {
        **{name: float(getattr(best.run, name)[-1]) for name in MEASURED},
        **{name: _number(getattr(best.recipe, name)) for name in CHOSEN},
        "at_bound": float("lambda_u" in best.active),
        "labeled_only": float(best.run.error[0]),
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
    return steps * (0.012 if selection else 0.0035 if heuristics else 0.0017)


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
        "at_bound": Output(r"1[\lambda_U^* \in \{10^{-8}, 0.1\}]", OVER_T),
        "labeled_only": Output(r"\epsilon_g^{(0)}", OVER_T),
        "supervised": Output(r"\epsilon_g^{(SL)}", OVER_T),
        "supervised_one_minus_cosine": Output(r"1 - m^{(SL)}/\sqrt{q^{(SL)}}", OVER_T),
        "bayes": Output(r"\epsilon_{Bayes}", OVER_T),
        "bayes_all_labeled": Output(r"\epsilon_{Bayes}^{(SL)}", OVER_T),
        "bayes_one_minus_cosine": Output(r"1 - \sqrt{M_{Bayes}}", OVER_T),
    },
    engines=("theory", "tuning", "paper/compute/tuned.py"),
    seconds=_seconds,
)
