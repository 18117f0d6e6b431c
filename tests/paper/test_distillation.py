"""Self-distillation, relabelling and rare classes: numbers from random matrices, closed forms and
symmetries.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from selftrain.paper.computations import unequal_classes
from selftrain.paper.computations.distillation import (
    RIDGES,
    check,
    distilled,
    run_on,
    tuned,
)
from selftrain.recipe import Recipe
from selftrain.theory.solve import solve

SETTING = {"alpha_l": 1.0, "rho": 0.5, "delta": 0.5, "label_noise": 0.3}


def by_random_matrix(ridges: tuple[float, ...], seed: int, features: int = 1200) -> float:
    """The error of fits with the loss (y_hat - y)^2, y_hat = (u + 1)/2, without a bias: each
    divides by the eigenvalues of the Gram matrix plus twice the ridge.
    """
    rng = np.random.default_rng(seed)
    samples = round(SETTING["alpha_l"] * features)
    truth = rng.choice([-1.0, 1.0], samples)
    given = np.where(rng.random(samples) < SETTING["label_noise"], -truth, truth)
    X = np.sqrt(SETTING["delta"]) * rng.standard_normal((samples, features))
    X += truth[:, None] / np.sqrt(features)
    values, vectors = np.linalg.eigh(X @ X.T / features)
    along = vectors.T @ given
    for ridge in ridges[:-1]:
        along = along * values / (values + 2 * ridge)
    w = X.T @ (vectors @ (along / (values + 2 * ridges[-1]))) / np.sqrt(features)
    cosine = w.sum() / np.linalg.norm(w) / np.sqrt(features)
    return float(norm.sf(cosine / np.sqrt(SETTING["delta"])))


def test_the_squared_loss_and_its_unit_agree_with_random_matrices() -> None:
    ridges = (0.3, 2.0, 20.0)
    told = check("squared", ridges, (1.0, 1.0), **SETTING)["error"][-1]
    found = [by_random_matrix(ridges, seed) for seed in range(6)]
    error = np.std(found, ddof=1) / math.sqrt(6)
    assert abs(np.mean(found) - told) < 4 * error
    assert error < 0.03 * told
    assert abs(by_random_matrix(ridges[:1], 0) / told - 1) > 0.3


def test_the_order_of_ridges_does_not_matter_with_balanced_classes() -> None:
    errors = [
        check("squared", ridges, (1.0, 1.0), **SETTING)["error"][-1]
        for ridges in ((0.3, 2.0, 20.0), (20.0, 0.3, 2.0))
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-7)


def test_one_tuned_fit_is_the_mean_of_the_samples() -> None:
    """With balanced classes the best ridge is the largest: the fit is a mean of samples."""
    found = tuned(distilled(0, **SETTING), "linear")
    m = SETTING["alpha_l"] * (1 - 2 * SETTING["label_noise"])
    q = m**2 + SETTING["alpha_l"] * SETTING["delta"]
    limit = norm.sf(m / math.sqrt(q * SETTING["delta"]))
    assert float(found.recipe.lambda_l) == pytest.approx(RIDGES[1])
    assert limit < found.error < 1.001 * limit


def test_hard_labels_on_one_replicate_are_those_of_the_solver() -> None:
    """A ridge for which the solver reaches its tolerance."""
    problem, recipe = distilled(1, **SETTING), Recipe(1.0, 1.0, sharpness=math.inf)
    told = solve(problem, recipe, 1e-3).error[-1]
    assert run_on(2**14, problem, recipe).error[-1] == pytest.approx(told, rel=5e-4)


def test_three_classes_weighed_equally() -> None:
    """The essential numbers: errors and recalls after two steps of two ways; the first fit without
    weights is that of the plain protocol.
    """
    plain = unequal_classes.rare_class(3, "heuristics", 1)
    weighted = unequal_classes.rare_class(3, "weighted", 1)
    assert plain["error"][0] == pytest.approx(0.2472, abs=5e-4)
    assert weighted["error"][0] == pytest.approx(0.2391, abs=5e-4)
    assert plain["recall"][-1, 2] < 0.1 < 0.3 < weighted["recall"][-1, 2]
    for made in (plain, weighted):
        shares = np.array(unequal_classes.setting(3).rho)
        assert made["best_error"] < made["error"][-1]
        assert made["best_error"] == pytest.approx(1 - shares @ made["best_recall"], abs=1e-9)
    runs = [unequal_classes.rare_class_run(3, "weighted", 1, 400, seed) for seed in range(8)]
    for t in (0, 1):
        errors = [run["error"][t] for run in runs]
        sem = np.std(errors, ddof=1) / math.sqrt(8)
        assert abs(np.mean(errors) - weighted["error"][t]) < 4 * sem + 0.01 * weighted["error"][t]


def test_equal_proportions_need_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    there = unequal_classes.setting(3).replace(rho=(1 / 3, 1 / 3, 1 / 3))
    monkeypatch.setattr(unequal_classes, "setting", lambda classes, steps: there)
    errors = [
        solve(unequal_classes.protocol(3, way, 0), tolerance=1e-4).error[0]
        for way in ("heuristics", "weighted")
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-4)


def test_ways_use_the_samples_they_say() -> None:
    weighted = unequal_classes.protocol(10, "weighted", 2)
    assert sum(group.alpha for group in weighted.groups[:10]) == pytest.approx(2.0)
    totals = [use.weight * weighted.groups[use.group].alpha for use in weighted.fits[0].uses]
    assert totals == pytest.approx([0.2] * 10)
    assert [weighted.groups[fit.uses[0].group].alpha for fit in weighted.fits[1:]] == [4.0, 4.0]
