"""Derivatives of runs with general covariances: those of the sphere where it is one, differences of
the solver elsewhere; and the best recipe.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, gradient, optimize, solve
from selftrain.errors import InvalidInput, NoGradient
from selftrain.theory.bayes import best_linear_error

COMMON: dict[str, Any] = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "steps": 3}
SPHERE = Problem(**COMMON, delta=0.5)
SHAPED = Problem(**COMMON, clusters=Clusters(np.full(4, 0.5), 0.5))
PAIR = Clusters([1.0, 0.3, 0.0], ([1.0, 0.5, 2.0], [0.5, 1.0, 3.0]))

MEAN = np.array([1.0, 0.3, -0.2, 0.1])
ONE, OTHER = (
    np.array(
        [[1.0, 0.4, 0.1, 0.0], [0.4, 0.8, -0.2, 0.1], [0.1, -0.2, 0.5, 0.2], [0, 0.1, 0.2, 2]]
    ),
    np.array(
        [[0.6, -0.1, 0.2, 0.1], [-0.1, 1.2, 0.3, 0], [0.2, 0.3, 0.9, -0.1], [0.1, 0, -0.1, 1]]
    ),
)
SHAPES: dict[str, dict[str, Any]] = {
    "modes": {"clusters": Clusters(MEAN, [1.0, 0.5, 0.25, 2.0])},
    "two covariances": {"clusters": Clusters(MEAN, ([1.0, 0.5, 0.25, 2.0], [0.5, 1.0, 0.5, 1.0]))},
    "one matrix": {"clusters": Clusters(MEAN, ONE)},
    "two matrices": {"clusters": Clusters(MEAN, (ONE, OTHER))},
    "domain shift": {
        "clusters": Clusters(MEAN, [1.0, 0.5, 0.25, 2.0]),
        "clusters_u": (
            Clusters(MEAN[::-1], [1.0, 0.5, 0.25, 1.0]),
            Clusters(MEAN, ([1.0, 0.7, 0.25, 1.0], [0.3, 0.2, 0.5, 1.0])),
        ),
    },
    "shift of matrices": {
        "clusters": Clusters(MEAN, ONE),
        "clusters_u": (Clusters(MEAN, OTHER), Clusters(1.2 * MEAN[::-1], (OTHER, ONE))),
    },
}
RECIPES: dict[str, dict[str, Any]] = {
    "soft": {},
    "selection": {"threshold": (0.3, 0.4), "annealing": 0.1},
    "fixed bias": {"sharpness": (1.5, 6.0), "annealing": 0.2, "fix_bias": True},
    "hard": {"labeler": "hard", "threshold": (0.2, 0.5), "fix_bias": True},
}
QUANTITIES = ("error", "cosine", "chi", "overlap", "r_hat", "fraction_selected")
FIELDS = {
    "alpha_l": "problem", "alpha_u": "problem", "rho": "problem", "rho_u": "problem",
    "lambda_l": "recipe", "lambda_u": "recipe", "threshold": "recipe", "sharpness": "recipe",
    "annealing": "recipe", "label_noise": "problem",
}  # fmt: skip


def differences_agree(problem: dict[str, Any], recipe: dict[str, Any], seed: int) -> None:
    """Compare slopes along a random direction, in which every entry moves in proportion, with
    extrapolated central differences of the solver.
    """
    names = {"problem": dict(problem), "recipe": dict(recipe)}
    run = solve(Problem(**problem), Recipe(**recipe), tolerance=1e-12)
    slopes = {of: gradient(run, of) for of in QUANTITIES}
    random, shares = np.random.default_rng(seed), {}
    for name in slopes["error"]:
        given = np.atleast_1d(getattr(getattr(run, FIELDS[name]), name))
        shares[name] = random.choice([-1.0, 1.0], given.shape) * given * (given != 0.0)

    def at(shift: float) -> Any:
        moved = {word: dict(fields) for word, fields in names.items()}
        for name, share in shares.items():
            entries = np.atleast_1d(getattr(getattr(run, FIELDS[name]), name)) + shift * share
            scalar = not isinstance(getattr(getattr(run, FIELDS[name]), name), tuple)
            moved[FIELDS[name]][name] = float(entries[0]) if scalar else tuple(entries)
        return solve(Problem(**moved["problem"]), Recipe(**moved["recipe"]), tolerance=1e-12)

    near, far = ((at(h), at(-h)) for h in (1e-3, 2e-3))
    for of, slope in slopes.items():
        small, large = (
            float(getattr(up, of)[-1] - getattr(down, of)[-1]) / (2 * h)
            for (up, down), h in ((near, 1e-3), (far, 2e-3))
        )
        parts = [float(np.sum(share * slope[name])) for name, share in shares.items()]
        allowed = 1e-7 * max(1e-3, *map(abs, parts))
        assert sum(parts) == pytest.approx((4 * small - large) / 3, abs=allowed), of


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_differences_of_the_solver(shape: str, recipe: str, loss: str) -> None:
    problem = {
        "alpha_l": 0.6, "alpha_u": (1.8, 2.2), "rho": 0.4, "rho_u": (0.35, 0.45), "steps": 2,
        "loss": loss,
    }  # fmt: skip
    given = {"lambda_l": 0.05, "lambda_u": (0.03, 0.1)} | RECIPES[recipe]
    differences_agree(problem | SHAPES[shape], given, seed=len(shape + recipe))


@pytest.mark.parametrize("shape", ["two covariances", "two matrices"])
def test_a_loss_of_a_user(shape: str, plain_logistic: Any) -> None:
    problem = {
        "alpha_l": 0.6, "alpha_u": (2.2,), "rho": 0.4, "rho_u": (0.35,), "steps": 1,
        "loss": plain_logistic,
    }  # fmt: skip
    recipe = {"lambda_l": 0.05, "lambda_u": (0.1,), "threshold": (0.3,), "sharpness": (1.5,)}
    differences_agree(problem | SHAPES[shape], recipe, seed=3)


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(0.05, 0.03, threshold=0.3, annealing=0.1),
        Recipe(0.05, (1e-6, 0.02, 0.5), sharpness=1.2),
        Recipe(0.05, 0.03, threshold=0.3, sharpness=math.inf, fix_bias=True),
    ],
    ids=["selection", "small ridge", "hard"],
)
def test_the_gradient_of_the_sphere(recipe: Recipe) -> None:
    sphere, shaped = solve(SPHERE, recipe, 1e-12), solve(SHAPED, recipe, 1e-12)
    for of in ("error", "q", "r_hat", "chi"):
        expected, found = gradient(sphere, of), gradient(shaped, of)
        for name in found:
            scale = np.abs(expected[name]).max() + 1e-6
            np.testing.assert_allclose(
                found[name], expected[name], rtol=0, atol=1e-9 * scale, err_msg=f"{of} {name}"
            )
    with pytest.raises(NoGradient, match="clusters have covariances in its place"):
        found["delta"]


def test_no_run_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """All derivatives come from one pass over the run."""
    run = solve(SHAPED, Recipe(0.05, 0.03))
    module, runs = importlib.import_module("selftrain.theory.solve"), []
    monkeypatch.setattr(module, "solve", lambda *a, **more: runs.append(a))
    found = gradient(run)
    assert all(np.isfinite(found[name]).all() for name in found)
    assert not runs


@pytest.mark.parametrize("shape", ["two covariances", "two matrices"])
def test_functions_of_the_run_and_of_its_weights(shape: str) -> None:
    """A function of the columns is the sum of its parts; one of the weights moves with them."""
    problem = Problem(0.6, 2.0, 0.4, steps=2, **SHAPES[shape])
    run, direction = solve(problem, Recipe(0.05, 0.03), 1e-12), np.array([0.2, 1.0, -0.5, 0.3])

    def mixed(run: Any) -> float:
        return float(run.error[1] + 0.1 * run.q[-1] + run.recipe.at_steps(2).lambda_u[1] ** 2)

    found = gradient(run, mixed)
    error, q = gradient(run, at=1), gradient(run, "q")
    for name in ("lambda_u", "threshold", "alpha_u", "rho", "sharpness"):
        expected = np.asarray(error[name]) + 0.1 * np.asarray(q[name])
        if name == "lambda_u":
            expected = expected + 2 * 0.03 * np.eye(2)[1]
        np.testing.assert_allclose(found[name], expected, rtol=1e-7, atol=1e-9)

    def along(run: Any) -> float:
        law = run.weights.along(direction)
        return float(law.mean[-1] + law.variance[-1])

    slope = gradient(run, along)
    for name, now in (("lambda_l", 0.05), ("lambda_u", 0.03)):
        up, down = (
            along(solve(problem, run.recipe.replace(**{name: now * (1 + h)}), 1e-12))
            for h in (1e-4, -1e-4)
        )
        assert slope.total(name) == pytest.approx((up - down) / (2e-4 * now), rel=1e-6)


def test_the_envelope_theorem() -> None:
    """The minimum of the objective moves with its own ridge by q/2."""
    run = solve(Problem(0.6, 2.0, 0.4, steps=2, **SHAPES["two covariances"]), Recipe(), 1e-12)
    found = gradient(run, "objective", 1)["lambda_u"]
    assert found[0] == pytest.approx(run.q[1] / 2, rel=1e-7)
    assert found[1] == 0.0


@pytest.mark.parametrize(
    "clusters",
    [
        Clusters([0.8, 0.6], [0.5, 1.0]),
        Clusters([0.8, 0.6], ([0.5, 1.0], [0.5, 1.0])),
        Clusters([0.8, 0.5, 0.5], ([0.5, 0.3, 0.7], [0.5, 0.7, 0.3])),
        Clusters([0.8, 0.6], (ONE[:2, :2], ONE[:2, :2])),
    ],
    ids=["one", "equal", "exchanged", "matrices"],
)
def test_what_the_mirror_turns_around_has_no_derivative(clusters: Clusters) -> None:
    """Balanced classes whose weights shrink: rounding of what is zero by symmetry, which the steps
    magnify, has no part in a derivative.
    """
    problem = Problem(0.5, 0.5, 0.5, clusters=clusters, steps=60)
    recipe = Recipe(0.05, 0.1, threshold=0.5)
    slope = gradient(solve(problem, recipe))
    assert slope["rho"] == 0.0
    assert not np.any(slope["rho_u"])
    for name, now in (("lambda_l", 0.05), ("lambda_u", 0.1)):
        moved = (recipe.replace(**{name: now * (1 + h)}) for h in (1e-2, -1e-2))
        up, down = (float(solve(problem, other, 1e-13).error[-1]) for other in moved)
        assert slope.total(name) == pytest.approx((up - down) / (2e-2 * now), rel=1e-3)
    short = problem.replace(steps=2)
    runs = (solve(short.replace(rho=0.5 + h), recipe, 1e-13) for h in (1e-6, -1e-6))
    up, down = (float(run.bias[-1]) for run in runs)
    assert gradient(solve(short, recipe), "bias")["rho"] == pytest.approx((up - down) / 2e-6, 1e-5)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"over": ("lambda_l", "lambda_u")}, 3),
        ({"over": ("lambda_l",), "schedule": ("lambda_u",)}, 3),
        # long enough to start from the optimum of a shorter run
        ({"over": ("lambda_u",), "bounds": {"lambda_u": (1e-4, 2e-4)}}, 16),
    ],
)
def test_the_best_recipe_of_the_sphere(options: dict[str, Any], steps: int) -> None:
    options = options | {"starts": 1}
    expected = optimize(SPHERE.replace(steps=steps), **options)
    found = optimize(SHAPED.replace(steps=steps), **options)
    assert found.error == pytest.approx(expected.error, abs=1e-9)
    assert found.labeled_only.error == pytest.approx(expected.labeled_only.error, rel=1e-7)
    assert found.supervised.error == pytest.approx(expected.supervised.error, rel=1e-7)


def test_limits_of_a_shape_are_linear_and_bayes_is_refused() -> None:
    problem = Problem(alpha_l=2.0, alpha_u=4.0, rho=0.4, clusters=PAIR, steps=2)
    best = optimize(problem, over=("lambda_l", "lambda_u"), starts=1)
    assert best.active_bounds == {"lambda_l": "upper"}
    for near in ({"lambda_l": 0.09}, {"lambda_u": 0.06}, {"lambda_u": 0.07}):
        assert solve(problem, best.recipe.replace(**near)).error[-1] > best.error
    limit = PAIR.best_rule(0.4).error
    assert best.limit == best.against["best linear rule"] == limit < best.error
    assert f"{limit:.6g}" in best.advice
    assert len(best.plot().axes) == 3
    with pytest.raises(InvalidInput, match="spheres only"):
        _ = best.bayes
    free = problem.replace(clusters=Clusters([1.0, 1.0], [1.0, 0.0]))
    assert best_linear_error(free) == 0.0
