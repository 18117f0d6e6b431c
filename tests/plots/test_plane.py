"""Clusters in the plane of the weights: the share on the wrong side of the line is the error."""

import io
import math

import numpy as np
import pytest
from PIL import Image

from selftrain import Clusters, Problem, Recipe, solve
from selftrain.plots.plane import film, line_ends, plane_of, plot_plane, separating_line

RECIPE = Recipe(lambda_l=0.1, lambda_u=0.02)
SPHERE = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.5625, steps=3)
SHAPE = Problem(
    alpha_l=2.0, alpha_u=4.0, rho=0.3, clusters=Clusters([1.0, 0.5, 0.2], [0.5, 1.0, 2.0]), steps=3
)


@pytest.mark.parametrize("problem", [SPHERE, SHAPE], ids=["sphere", "general"])
def test_samples_on_the_wrong_side_of_the_line_are_the_error(problem):
    """The error of the theory against 400,000 samples drawn in the plane."""
    run = solve(problem, RECIPE)
    plane = plane_of(run)
    draw = np.random.default_rng(1)
    for t in (0, 3):
        (cosine, sine), place = separating_line(run, t)
        y = draw.random(400_000) < problem.rho
        samples = plane.deviation * draw.standard_normal((2, y.size))
        samples[0] += np.where(y, plane.centre, -plane.centre)
        wrong = (cosine * samples[0] + sine * samples[1] + place > 0) != y
        spread = math.sqrt(run.error[t] * (1 - run.error[t]) / y.size)
        assert wrong.mean() == pytest.approx(run.error[t], abs=4 * spread)


def test_the_picture_shows_both_classes_and_the_line():
    run = solve(SPHERE, RECIPE)
    figure = plot_plane({"one": run, "two": run}, 2)
    first, _, errors = figure.axes
    classes = [line for line in first.lines if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in classes] == [320, 80]
    x, y = line_ends(run, 2)
    np.testing.assert_allclose(first.lines[-1].get_xydata(), np.transpose([x, y]))
    assert f"{100 * run.error[2]:.1f} %" in first.get_xlabel()
    np.testing.assert_allclose(errors.lines[0].get_ydata(), 100 * run.error)


def test_a_film_has_a_frame_per_step_and_ends_with_a_pause():
    run = solve(SPHERE, RECIPE)
    with Image.open(io.BytesIO(film({"one": run}, milliseconds=100, last=900))) as shown:
        assert shown.n_frames == 4
        assert shown.info["loop"] == 0
        lengths = []
        for frame in range(4):
            shown.seek(frame)
            lengths.append(shown.info["duration"])
    assert lengths == [100, 100, 100, 900]
