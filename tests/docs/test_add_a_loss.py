"""The page "add a loss" works as it stands: its code runs, theory and simulation agree."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from selftrain import Problem, Recipe, losses, solve
from selftrain.losses import Loss

PAGE = (Path(__file__).parents[2] / "docs" / "add-a-loss.md").read_text()
PROTOCOL, EXAMPLE, MOVING, REGISTRATION = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in (EXAMPLE, MOVING):
        exec(compile(block, "docs/add-a-loss.md", "exec"), names)
    return names


def test_the_protocol_is_the_one_of_the_source() -> None:
    assert inspect.getsource(Loss).strip() == PROTOCOL.strip()


def test_the_example_is_a_loss_with_true_derivatives(example: dict[str, Any]) -> None:
    loss = example["SquaredHinge"]()
    assert isinstance(loss, Loss)
    logit = np.array([-2.3, -1.2, -0.4, 0.0, 0.7, 1.4, 3.0])
    for target in (0.0, 0.2, 0.9, 1.0):
        for function, derivative in (("value", "slope"), ("slope", "curvature")):
            ahead, behind = (getattr(loss, function)(target, logit + h) for h in (1e-6, -1e-6))
            expected = (ahead - behind) / 2e-6
            np.testing.assert_allclose(
                getattr(loss, derivative)(target, logit), expected, atol=1e-8
            )


@pytest.mark.parametrize(
    ("run", "ensemble"), [("run", "ensemble"), ("huber_run", "huber_ensemble")]
)
def test_theory_and_simulation_of_the_examples_agree(
    example: dict[str, Any], run: str, ensemble: str
) -> None:
    run, ensemble = example[run], example[ensemble]
    assert np.nanmax(run.stats.accuracy) < 1e-9
    for name in ("q", "m", "bias", "error"):
        values = getattr(ensemble, name)
        spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        size = np.abs(getattr(run, name))
        gap = np.abs(values.mean(axis=0) - getattr(run, name))
        assert np.all(gap < 4 * spread + 5 * size / ensemble.features), name
        assert np.all(spread < 0.02)


def test_supervised_fit_of_the_example_by_an_ordinary_optimiser(example: dict[str, Any]) -> None:
    """Thirty small fits by L-BFGS, no code of the package but the loss itself."""
    loss, problem, run = example["SquaredHinge"](), example["problem"], example["run"]
    features, ridge = 300, example["recipe"].lambda_l
    measured = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = (rng.random(round(problem.alpha_l * features)) < problem.rho).astype(float)
        noise = np.sqrt(problem.delta) * rng.standard_normal((y.size, features))
        x = ((2 * y - 1)[:, None] / np.sqrt(features) + noise) / np.sqrt(features)

        def objective(theta: Any, x: Any = x, y: Any = y) -> tuple[float, Any]:
            w, logit = theta[:-1], x @ theta[:-1] + theta[-1]
            slope = loss.slope(y, logit)
            gradient = np.append(x.T @ slope + ridge * w, slope.sum())
            return loss.value(y, logit).sum() + 0.5 * ridge * w @ w, gradient

        start = np.zeros(features + 1)
        theta = minimize(objective, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-7}).x
        w = theta[:-1]
        measured.append((w @ w / features, w.mean(), theta[-1]))
    values = np.array(measured)
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    expected = np.array([run.q[0], run.m[0], run.bias[0]])
    assert np.all(np.abs(values.mean(axis=0) - expected) < 4 * spread + 5 / features)


def test_registration_by_name(example: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "_registry", dict(losses._registry))
    exec(compile(REGISTRATION, "docs/add-a-loss.md", "exec"), example)
    named = solve(example["named"].replace(steps=0), Recipe(lambda_l=0.1))
    assert named.m[0] == pytest.approx(example["run"].m[0], rel=1e-9)
    assert Problem.from_json(example["named"].to_json()) == example["named"]
