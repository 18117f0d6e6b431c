"""Every public plot is drawn and looked at: no legend over a curve, no text over text or off the
canvas, no offsets.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from selftrain import Clusters, Problem, Recipe, continuum, optimize, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.plots.continuum import plot_path, plot_paths
from selftrain.plots.ensemble import plot_ensemble

sys.path.insert(0, str(Path(__file__).parent))
from layout import faults

PROBLEM = Problem(0.5, 2.0, 0.4, 0.75**2, steps=16)


def run_in_good_order() -> Figure:
    return solve(PROBLEM, Recipe()).plot()


def run_that_collapses() -> Figure:
    recipe = Recipe(sharpness=math.inf)
    return solve(PROBLEM.replace(rho_u=0.3, test=(0.1, 2.0)), recipe).plot()


def long_run_of_small_weights() -> Figure:
    problem = Problem(0.5, 0.5, 0.5, 0.75**2, steps=200)
    return solve(problem, Recipe(lambda_u=0.1)).plot()


def supervised_run() -> Figure:
    return solve(PROBLEM.replace(steps=0), Recipe()).plot()


def ensembles() -> Figure:
    problem = PROBLEM.replace(steps=4)
    runs = [simulate(problem, Recipe(), features=n, seeds=3, probes=0) for n in (64, 128, 256)]
    return plot_ensemble(runs, solve(problem, Recipe()))


def one_ensemble() -> Figure:
    problem = PROBLEM.replace(steps=4)
    return simulate(problem, Recipe(), features=64, seeds=3, probes=0).plot(
        solve(problem, Recipe())
    )


def shaped_problem() -> Problem:
    clusters = Clusters([0.8, 0.5, 0.0, 0.3], [1.0, 0.5, 2.0, 0.2])
    return Problem(alpha_l=8.0, alpha_u=20.0, rho=0.4, clusters=clusters, steps=3)


def run_on_a_shape() -> Figure:
    return solve(shaped_problem(), Recipe(0.1, 0.1)).plot()


def ensemble_on_a_shape() -> Figure:
    problem, recipe = shaped_problem(), Recipe(0.1, 0.1)
    return simulate(problem, recipe, seeds=3, probes=0).plot(solve(problem, recipe))


def spectrum_of_a_shape() -> Figure:
    return Clusters([1.0, 0.5, 0.0], [1.0, 0.0, 2.0]).plot()


def continuous_path() -> Figure:
    problem = PROBLEM.replace(loss="squared", steps=20)
    runs = [solve(problem, Recipe(lambda_u=ridge)) for ridge in (0.1, 0.02)]
    return plot_path(continuum(problem, Recipe(), until=1.5), runs)


def continuous_paths() -> Figure:
    problem = PROBLEM.replace(loss="squared", steps=20)
    recipes = {"bias trained": Recipe(), "bias fixed": Recipe(fix_bias=True)}
    return plot_paths({name: continuum(problem, one) for name, one in recipes.items()})


def optimum() -> Figure:
    problem = Problem(0.5, 2.0, 0.5, 0.6, steps=3)
    return optimize(problem, ("lambda_l",), schedule=("lambda_u", "threshold"), starts=1).plot()


@pytest.mark.parametrize(
    "draw",
    [
        run_in_good_order,
        run_that_collapses,
        long_run_of_small_weights,
        supervised_run,
        ensembles,
        one_ensemble,
        run_on_a_shape,
        ensemble_on_a_shape,
        spectrum_of_a_shape,
        continuous_path,
        continuous_paths,
        optimum,
    ],
)
def test_nothing_overlaps_or_leaves_the_canvas(draw) -> None:
    assert faults(draw()) == []


def test_faults_are_seen() -> None:
    figure = Figure(figsize=(3, 2))
    ax = figure.subplots()
    ax.plot([0, 1], [1.00000001, 1.00000002], label="a curve")
    ax.legend(loc="center")
    ax.set_title("a title that is far too long for a canvas as small as this one is")
    figure.text(0.5, 0.5, "over the legend", ha="center")
    found = "; ".join(faults(figure))
    ax.set_ylim(5, 6)
    found += "; ".join(faults(figure))
    for words in ("leaves the canvas", "overlaps", "covers a curve", "offset", "not in its panel"):
        assert words in found


@pytest.mark.parametrize("panel", ["spectrum", "shares"])
def test_one_panel_of_a_shape_on_axes_of_the_caller(panel: str) -> None:
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    ax = figure.subplots()
    clusters = Clusters([1.0, 0.5, 0.0], [1.0, 0.2, 2.0])
    assert clusters.plot(panel=panel, ax=ax) is figure
    assert ax.lines
    assert faults(figure) == []


@pytest.mark.parametrize("panel", ["error", "direction", "size", "bias"])
def test_one_panel_of_a_path_on_axes_of_the_caller(panel: str) -> None:
    problem = PROBLEM.replace(loss="squared", steps=20)
    run = solve(problem, Recipe(lambda_u=0.02))
    ax = Figure(figsize=(5, 3.5), layout="constrained").subplots()
    continuum(problem, Recipe(), until=0.4).plot(run, panel=panel, ax=ax)
    assert len(ax.lines) >= 2
    assert ax.get_xlabel().startswith("time")


def test_a_panel_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"panel = 'share'.*did you mean 'shares'"):
        Clusters([1.0, 0.5], [1.0, 2.0]).plot(panel="share")
