"""Results in a notebook: a card with numbers and a picture; figures that show without pyplot."""

from __future__ import annotations

import base64
import re
import subprocess
import sys

import numpy as np
import pytest

from selftrain import (
    Clusters,
    Problem,
    Recipe,
    bayes_error,
    continuum,
    optimize,
    simulate,
    solve,
    sweep,
)

PROBLEM = Problem(0.5, 2.0, 0.4, 0.5625, steps=3)
SHAPED = Problem(1.0, 3.0, 0.4, clusters=Clusters([1.0, 0.5, 0.2], [1.0, 0.5, 0.3]), steps=2)


def made():
    recipe = Recipe(0.05, (0.05, 0.04, 0.03))
    run = solve(PROBLEM, recipe)
    return {
        "problem": (PROBLEM, "0.5625"),
        "shaped problem": (SHAPED, "clusters"),
        "recipe": (recipe, "soft"),
        "hard recipe": (Recipe(sharpness=float("inf"), threshold=0.5), "inf"),
        "run": (run, f"{run.error[-1]:.5g}"),
        "shaped run": (solve(SHAPED, Recipe()), "Trajectory"),
        "ensemble": (simulate(PROBLEM, Recipe(), features=64, seeds=3), "64"),
        "optimum": (optimize(PROBLEM, over=("lambda_u",), starts=1), "lambda_u"),
        "limits": (bayes_error(PROBLEM), f"{bayes_error(PROBLEM).semi_supervised:.6g}"),
        "path": (continuum(PROBLEM, Recipe(0.05, 0.05), until=0.5), "lowest"),
        "sweep": (sweep(PROBLEM, over={"rho": [0.3, 0.4]}, workers=0), "points"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return made()


@pytest.mark.parametrize(
    "name",
    ["problem", "shaped problem", "recipe", "hard recipe", "run", "shaped run", "ensemble",
     "optimum", "limits", "path", "sweep"],
)  # fmt: skip
def test_a_result_shows_its_numbers_and_a_picture(results, name):
    thing, word = results[name]
    page = thing._repr_html_()
    assert word in page
    (image,) = re.findall(r"src='data:image/png;base64,([^']+)'", page)
    assert base64.b64decode(image).startswith(b"\x89PNG")


def test_a_name_of_a_loss_cannot_inject_html():
    class Odd:
        name = "<script>"

    from selftrain.plots.notebook import card

    page = card("<b>", {"loss": Odd.name})
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_figure_shows_itself_where_pyplot_was_never_imported():
    lines = (
        "import sys; from selftrain import Problem, Recipe, solve;"
        "figure = solve(Problem(0.5, 2.0, 0.4, 0.5, steps=1), Recipe()).plot();"
        "assert figure._repr_png_().startswith(b'\\x89PNG');"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", lines], check=True)


def test_one_panel_is_drawn_on_the_axes_of_the_caller(results):
    from matplotlib.figure import Figure

    run, ensemble, best = (results[name][0] for name in ("run", "ensemble", "optimum"))
    for draw, expected in (
        (lambda ax: run.plot(ax=ax, limits=False), run.error),
        (lambda ax: run.plot(ax=ax, panel="cosine"), run.cosine),
        (lambda ax: ensemble.plot(ax=ax, panel="bias"), ensemble.mean("bias")),
        (lambda ax: best.plot(ax=ax), best.trajectory.error),
    ):
        ax = Figure().subplots()
        assert draw(ax) is ax.figure
        drawn = [line.get_ydata() for line in ax.lines if len(line.get_ydata()) == len(expected)]
        assert any(np.allclose(y, expected) for y in drawn)


def test_a_misspelt_panel_or_field_is_named_with_the_near_one(results):
    from selftrain.errors import InvalidInput

    with pytest.raises(InvalidInput, match="cosine"):
        results["run"][0].plot(panel="cosin")
    with pytest.raises(InvalidInput, match="lambda_u"):
        Recipe(lamda_u=0.1)
    with pytest.raises(InvalidInput, match="alpha_u"):
        Problem(0.5, alpha_uu=2.0, rho=0.4, delta=0.5, steps=1)
