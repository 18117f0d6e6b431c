r"""Self-distillation: samples with label noise are fitted, labelled by the fit, and fitted again.

The distillation paper writes the squared loss as $(\hat y - y)^2$ with $\hat y = (u + 1)/2$ and
labels 0 and 1: half of ours, so its ridges are half of ours (`UNIT`). For the logistic loss they
are equal. Labels of the squared loss are linear in the logit, and their averages are exact. With
the logistic loss, a search uses one quasi-Monte Carlo replicate (`theory.causal`), the same for all
recipes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ...arrays import Array
from ...errors import StageError
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation
from ...theory.bayes import bayes_error
from ...theory.causal.setting import before_reuse, setting_of
from ...theory.causal.solve import run_one_replicate
from ...theory.solve import solve
from ...theory.trajectory import Trajectory
from .outputs import outputs
from .tuned import one_system

UNIT = {"logistic": 1.0, "squared": 2.0}
"""Ratio of our ridge to that of the paper, by loss."""

RIDGES = (1e-3, 300.0)
"""The range of tuned ridges, in the paper's unit."""

SOFTEST, SHARPEST = 0.1, 1e4
"""The range of a tuned sharpness. At a ridge of 300, logits are of the order 1e-3, so labels
between linear and hard ones need a sharpness far above one.
"""

STARTS = ((10.0, 100.0), (0.1, 0.3))
"""Starts of a search: the ridges of the first and of the last fit (those between are interpolated).
They differ, because a search that starts at equal ridges would keep them equal. For a search with
gradients the first start is enough.
"""

SEARCH_POINTS, FINAL_POINTS, STAGE_POINTS = 2**12, (2**14, 2**15), 2**13
"""Numbers of points per class of a replicate: in a search, in the two replicates that measure its
result, and in a run at given ridges.
"""

SIMPLEX: dict[str, Any] = {"method": "Nelder-Mead", "options": {"xatol": 0.05, "fatol": 2e-5}}
"""Search for the logistic loss: with hard labels, the error on finitely many points jumps and has
no gradient. The tolerance of 5 % of a ridge is not visible in a figure."""

SLOPES: dict[str, Any] = {
    "method": "L-BFGS-B",
    "options": {"eps": 1e-4, "ftol": 1e-12, "gtol": 1e-8},
}
"""Search for the squared loss: the error is accurate to 1e-10, so finite differences of 1e-4 give
its gradient."""


class Tuned(NamedTuple):
    """The recipe with the smallest error of the last fit, and its run; `spread` is the difference
    of that error between two replicates.
    """

    recipe: Recipe
    run: Trajectory
    spread: float

    @property
    def error(self) -> float:
        return float(self.run.error[-1])


def distilled(steps: int, **setting: Any) -> Problem:
    """Return the problem whose steps relabel and refit the labelled samples; `setting` has its
    other fields.
    """
    return Problem(steps=steps, batches="labeled", **setting)


def run_on(points: int, problem: Problem, recipe: Recipe) -> Trajectory:
    """Solve a run on one quasi-Monte Carlo replicate of `points` points.

    The solution is exact, without points, if no sample is reused, if the run collapses before, or
    if loss and labels are linear (squared loss, soft labels).
    """
    once = problem.steps == 0 or problem.every_sample_once
    exact = solve(*((problem, recipe) if once else before_reuse(problem, recipe)))
    assert isinstance(exact, Trajectory)
    if once or exact.collapsed_at is not None:
        return exact
    run = run_one_replicate(setting_of(problem, recipe, exact), points).trajectory
    assert isinstance(run, Trajectory)
    return run


def tuned(
    problem: Problem, labels: str, fix_bias: bool = False, known: Sequence[float] = ()
) -> Tuned:
    """Tune the ridge of every fit for the error of the last one.

    Arguments:
        labels: "linear" (sharpness 1), "hard", or "tuned" (tune the sharpness too).
        known: ridges, in the paper's unit, that are compared with the result of the search.
    """
    unit, free = UNIT[str(problem.loss)], labels == "tuned"
    ridges = problem.steps + 1
    box: Any = [tuple(np.log(RIDGES))] * ridges + [tuple(np.log((SOFTEST, SHARPEST)))] * free

    def recipe(x: Array) -> Recipe:
        values = np.exp(np.clip(x, *np.transpose(box)))
        kinds = {"tuned": float(values[-1]), "hard": np.inf, "linear": 1.0}
        fields: dict[str, Any] = {"sharpness": kinds[labels], "fix_bias": fix_bias}
        if problem.steps:
            fields["lambda_u"] = tuple(unit * values[1:ridges])
        return Recipe(unit * values[0], **fields)

    def error(x: Array) -> float:
        try:
            run = run_on(SEARCH_POINTS, problem, recipe(x))
        except StageError:
            return 0.5
        return 0.5 if run.collapsed_at is not None else float(run.error[-1])

    smooth = str(problem.loss) == "squared"
    how = SLOPES if smooth else SIMPLEX
    begins = (
        np.append(np.log(np.geomspace(*start, ridges)), [np.log(100.0)] * free)
        for start in (STARTS[:1] if smooth else STARTS)
    )
    ends = [np.log(known)] if known else []
    for x in begins:
        simplex = {} if smooth else {"initial_simplex": x + np.vstack([0 * x, np.eye(x.size)])}
        options: Any = {**how["options"], **simplex}
        ends.append(minimize(error, x, bounds=box, method=how["method"], options=options).x)
    x = min(ends, key=error)
    best = recipe(x)
    first, second = (run_on(points, problem, best) for points in FINAL_POINTS)
    return Tuned(best, second, abs(float(first.error[-1] - second.error[-1])))


def check(loss: str, ridges: Sequence[float], sharpness: Sequence[float], **setting: Any) -> Any:
    """Return the error of every fit at given ridges (in the paper's unit) and sharpnesses."""
    run = solve(*_given(loss, ridges, sharpness, setting))
    return {"fit": run.t, "error": run.error}


def check_run(
    features: int, seed: int, loss: str, ridges: Sequence[float], sharpness: Sequence[float],
    **setting: Any,
) -> Any:  # fmt: skip
    """Simulate the same fits on one finite system."""
    problem, recipe = _given(loss, ridges, sharpness, setting)
    runs = one_system(problem, recipe, features, seed)
    return {"fit": np.arange(problem.steps + 1), "error": runs.error[0]}


def _given(
    loss: str, ridges: Sequence[float], sharpness: Sequence[float], setting: dict[str, Any]
) -> tuple[Problem, Recipe]:
    first, *later = (UNIT[loss] * ridge for ridge in ridges)
    problem = distilled(len(later), loss=loss, **setting)
    return problem, Recipe(first, tuple(later), sharpness=tuple(sharpness))


def optimum(most: int, **setting: Any) -> dict[str, Any]:
    """Return the smallest error of the squared loss with linear labels for 1 to `most` fits, and
    its ridges in the paper's unit, largest first (at rho = 1/2 their order does not matter).
    """
    known: Sequence[float] = ()
    errors, ridges = np.full(most, np.nan), np.full((most, most), np.nan)
    for fits in range(1, most + 1):
        problem = distilled(fits - 1, loss="squared", **setting)
        found = tuned(problem, "linear", known=known)
        known = (*(_ridges(found.recipe, "squared")[:fits]), RIDGES[0])
        errors[fits - 1] = found.error
        ridges[fits - 1, :fits] = np.sort(_ridges(found.recipe, "squared")[:fits])[::-1]
    limit = bayes_error(distilled(1, **setting)).semi_supervised
    return {"fits": np.arange(1, most + 1), "error": errors, "ridge": ridges, "bayes": limit}


def relabeled(labels: str, fix_bias: bool, **setting: Any) -> dict[str, Any]:
    """Return the smallest error of two fits with the logistic loss, that of one fit, and the
    proportion of right labels in the second fit.
    """
    found = tuned(distilled(1, **setting), labels, fix_bias)
    first, second = _ridges(found.recipe, "logistic")
    return {
        "error": found.error,
        "spread": found.spread,
        "supervised": tuned(distilled(0, **setting), "linear").error,
        "right": float(found.run.pseudo_label_accuracy[-1]),
        "first_ridge": first,
        "second_ridge": second,
        "sharpness": float(np.ravel(found.recipe.sharpness)[0]),
        "bayes": bayes_error(distilled(1, **setting)).semi_supervised,
    }


def stages(loss: str, ridge: float, steps: int, **setting: Any) -> dict[str, Any]:
    """Return the error of every fit if all have the same ridge, in the paper's unit; after a
    collapse it is the proportion of the smaller class.
    """
    recipe = Recipe(UNIT[loss] * ridge, UNIT[loss] * ridge)
    problem = distilled(steps, loss=loss, **setting)
    run = run_on(STAGE_POINTS, problem, recipe)
    errors = np.full(steps + 1, min(problem.rho, 1 - problem.rho))
    whole = steps + 1 if run.collapsed_at is None else run.collapsed_at
    errors[:whole] = run.error[:whole]
    return {"fit": np.arange(steps + 1), "error": errors}


def _ridges(recipe: Recipe, loss: str) -> Array:
    return np.array([recipe.lambda_l, *np.ravel(recipe.lambda_u)]) / UNIT[loss]


RELABELINGS: dict[str, dict[str, Any]] = {
    "left out": {"batches": "fresh"},
    "kept": {"batches": "fresh", "keep_labeled": 1.0},
    "relabelled": {"batches": "labeled+fresh"},
}
"""Uses of the labelled samples in a second fit, which also fits a fresh batch with pseudo-labels:
not at all, with their given labels, or with pseudo-labels."""


def relabel(way: str, **setting: Any) -> dict[str, Any]:
    """Return the error after the second of two fits with tuned ridges, and the Bayes error.

    `way` is the use of the labelled samples in the second fit, one of `RELABELINGS`.
    """
    found = tuned(Problem(steps=1, **RELABELINGS[way], **setting), "linear")
    return {
        "error": found.error,
        "spread": found.spread,
        "first": float(found.run.error[0]),
        "bayes": bayes_error(Problem(steps=1, **setting)).semi_supervised,
    }


_OF_FIT = outputs("", "fit", fit="t", error=r"\epsilon_g^{(t)}")

CHECK = Computation(check, _OF_FIT, seconds=lambda **_: 0.1)
CHECK_RUN = Computation(
    check_run, _OF_FIT, seconds=lambda features, alpha_l, **_: 3e-7 * features**2 * alpha_l
)
OPTIMUM = Computation(
    optimum,
    {
        **outputs("", "fits", fits="t + 1", error=r"\epsilon_g"),
        **outputs("", "fits", "place", ridge=r"\lambda^*"),
        **outputs("bayes"),
    },
    seconds=lambda most, **_: 0.3 * most**2,
)
RELABELED = Computation(
    relabeled,
    outputs(
        "spread bayes",
        error=r"\epsilon_g",
        supervised=r"\epsilon_g^{(0)}",
        right="share of right labels",
        first_ridge=r"\lambda^{(0)*}",
        second_ridge=r"\lambda^{(1)*}",
        sharpness=r"\gamma^*",
    ),
    seconds=lambda labels, **_: 3.0 if labels == "tuned" else 1.5,
)
RELABEL = Computation(
    relabel,
    outputs("spread bayes", error=r"\epsilon_g^{(1)}", first=r"\epsilon_g^{(0)}"),
    seconds=lambda **_: 4.0,
)
STAGES = Computation(stages, _OF_FIT, seconds=lambda steps, **_: 0.02 * steps)
