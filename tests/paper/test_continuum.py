"""A tuned run against its continuous-time limit: one point of the figure, by the closed form and
another minimiser.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize

from selftrain import Problem, Recipe, continuum
from selftrain.expansions import squared_closed_form
from selftrain.paper.computations.paths import path
from selftrain.paper.registry import figure

SETTING = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.2, "delta": 0.75**2, "loss": "squared"}


@pytest.fixture(scope="module")
def panel() -> dict[str, Any]:
    return path(**SETTING, steps=64)


def test_the_tuned_ridge_is_the_best_time_divided_by_the_steps(panel: dict[str, Any]) -> None:
    """Squared loss, rho = 0.2: best time and start of the closed form, by another minimiser."""
    problem = Problem(**SETTING, steps=1)

    def error(point: np.ndarray) -> float:
        ridge, time = np.exp(point)
        return float(squared_closed_form(problem, Recipe(lambda_l=float(ridge)))(time).error)

    found = minimize(error, np.log([0.02, 0.5]), method="Nelder-Mead", options={"xatol": 1e-5})
    ridge, time = np.exp(found.x)
    assert 64 * panel["lambda_u"] == pytest.approx(time, rel=0.03)
    assert panel["lambda_l"] == pytest.approx(ridge, rel=0.1)
    assert panel["error"] == pytest.approx(found.fun, abs=2e-4)
    delta, variance = 0.75**2, 0.64
    scale = 0.5 * delta / variance * (delta + variance)
    assert panel["time_scale"] == pytest.approx(scale, rel=1e-6)
    assert panel["apart"] < 0.003
    form = squared_closed_form(problem, Recipe(lambda_l=panel["lambda_l"]))
    assert panel["squared_cosine"] == pytest.approx(form(panel["tau"]).squared_cosine, abs=1e-7)


def test_a_row_for_each_number_of_steps_and_a_column_for_each_share(panel: dict[str, Any]) -> None:
    point = {"squared_cosine", "tau"}
    run = {"squared_cosine_run", "tau_run"}
    one = xr.Dataset(
        {
            name: (("point",) if name in point else ("run_point",) if name in run else (), value)
            for name, value in panel.items()
        }
    )
    axes = {"loss": ["squared"], "steps": [8, 64], "rho": [0.2]}
    drawing = figure("continuum").draw({"paths": one.expand_dims(axes)})
    assert len(drawing.axes) == 2
    for steps, ax in zip((8, 64), drawing.axes, strict=True):
        assert f"$T={steps}$, $\\rho=0.2$" in ax.get_title(loc="left")
        (mark,) = (line for line in ax.lines if line.get_label() == r"$\tau_M$")
        assert np.ravel(mark.get_xdata())[0] == panel["time_scale"]
        (drawn,) = (line for line in ax.lines if line.get_label() == "discrete run")
        assert np.ravel(drawn.get_xdata())[-1] == pytest.approx(64 * panel["lambda_u"])


def test_the_time_scale_is_that_until_the_direction_is_found() -> None:
    """Logistic loss, rho = 0.2: M = 0.99 lies far beyond the times that are shown."""
    setting = {**SETTING, "loss": "logistic"}
    panel = path(**setting, steps=4)
    recipe = Recipe(lambda_l=panel["lambda_l"], lambda_u=panel["lambda_u"])
    limit = continuum(
        Problem(**setting, steps=4), recipe, until=50 * panel["time_scale"], tolerance=1e-6
    )
    assert limit.aligned is not None
    first, last = limit(0.0), limit(limit.aligned)
    assert last.squared_cosine == pytest.approx(0.99, abs=1e-6)
    grown = np.log(last.m**2 / last.v) - np.log(first.m**2 / first.v)
    assert panel["time_scale"] == pytest.approx(limit.aligned / grown, rel=1e-4)
