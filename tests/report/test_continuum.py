"""Tuned runs against their continuous-time limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from selftrain import Problem, Recipe, solve, squared_closed_form
from selftrain.plots.continuum import plot_panels
from selftrain.report.continuum import Panel, continuum_panels


@pytest.fixture(scope="module")
def panel() -> Panel:
    (only,) = continuum_panels("squared", steps=(64,), shares=(0.2,))
    return only


def test_the_tuned_ridge_is_the_best_time_divided_by_the_steps(panel: Panel) -> None:
    """Squared loss, rho = 0.2: best time and start of the closed form, by another minimiser."""
    problem = Problem(0.5, 2.0, 0.2, 0.75**2, steps=1, loss="squared")

    def error(point: np.ndarray) -> float:
        ridge, time = np.exp(point)
        return float(squared_closed_form(problem, Recipe(lambda_l=float(ridge)))(time).error)

    found = minimize(error, np.log([0.02, 0.5]), method="Nelder-Mead", options={"xatol": 1e-5})
    ridge, time = np.exp(found.x)
    assert panel.elapsed == pytest.approx(time, rel=0.03)
    assert panel.run.recipe.lambda_l == pytest.approx(ridge, rel=0.1)
    assert panel.run.error[-1] == pytest.approx(found.fun, abs=2e-4)
    delta, variance = 0.75**2, 0.64
    scale = 0.5 * delta / variance * (delta + variance)
    assert panel.tau_squared_cosine == pytest.approx(scale, rel=1e-6)
    assert panel.path.compare(panel.run).largest["squared_cosine"] < 0.003


def test_a_row_for_each_number_of_steps_and_a_column_for_each_share(panel: Panel) -> None:
    other = replace(panel, run=solve(panel.run.problem.replace(steps=8), panel.run.recipe))
    figure = plot_panels((panel, other))
    assert len(figure.axes) == 2
    for drawn, ax in zip((other, panel), figure.axes, strict=True):
        assert f"T={drawn.run.problem.steps}$" in ax.get_title(loc="left")
        (mark,) = (line for line in ax.lines if line.get_label() == r"$\tau_M$")
        assert np.ravel(mark.get_xdata())[0] == drawn.tau_squared_cosine
        (dot,) = (line for line in ax.lines if line.get_marker() == "o")
        assert np.ravel(dot.get_xdata())[0] == pytest.approx(drawn.elapsed)
