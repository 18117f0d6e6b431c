"""Tuned runs against their continuous-time limit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from selftrain import Problem, Recipe, squared_closed_form
from selftrain.plots.continuum import plot_panels
from selftrain.report.continuum import continuum_panels


def test_the_tuned_ridge_is_the_best_time_divided_by_the_steps() -> None:
    """Squared loss, rho = 0.2: best time and start of the closed form, by another minimiser."""
    (panel,) = continuum_panels("squared", steps=(64,), shares=(0.2,))
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


def test_panels_are_drawn_in_rows_and_columns() -> None:
    panels = continuum_panels("squared", steps=(4, 8), shares=(0.4, 0.5))
    figure = plot_panels(panels)
    assert len(figure.axes) == 4
    for panel, ax in zip(panels, figure.axes, strict=True):
        title = ax.get_title(loc="left")
        assert f"T={panel.run.problem.steps}" in title
        assert f"rho={panel.run.problem.rho:g}" in title
        marks = [line for line in ax.lines if line.get_label() == r"$\tau_M$"]
        assert np.ravel(marks[0].get_xdata())[0] == panel.tau_squared_cosine
