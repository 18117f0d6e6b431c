"""The plot of a run: it shows the numbers of the run, says how it ended, and leaks nothing."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from selftrain import Problem, Recipe, bayes_error, solve
from selftrain.plots.trajectory import plot_trajectory

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)


def lines_of(ax):
    return {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}


def test_panels_show_the_quantities_of_the_run():
    run = solve(PROBLEM, Recipe())
    error, cosine, size, bias = plot_trajectory(run).axes
    np.testing.assert_array_equal(error.get_lines()[0].get_ydata(), run.error)
    np.testing.assert_array_equal(cosine.get_lines()[0].get_ydata(), run.cosine)
    np.testing.assert_array_equal(lines_of(size)["$q$"], run.q)
    np.testing.assert_array_equal(lines_of(size)["$m$"], run.m)
    np.testing.assert_array_equal(lines_of(bias)["$B$"], run.bias)
    np.testing.assert_array_equal(lines_of(bias)[r"$B/\sqrt{q}$"], run.bias_to_norm)


def test_limits_are_lines_at_their_height_and_can_be_left_out():
    run = solve(PROBLEM, Recipe())
    limits = bayes_error(PROBLEM)
    drawn = {label: y[0] for label, y in lines_of(plot_trajectory(run).axes[0]).items()}
    for name, text in (
        ("labeled_only", "labelled only"),
        ("semi_supervised", "all data"),
        ("all_labeled", "all labelled"),
    ):
        (label,) = [label for label in drawn if text in label]
        assert drawn[label] == getattr(limits, name)
    assert len(plot_trajectory(run, limits=False).axes[0].get_lines()) == 1


def test_collapse_is_said_shaded_and_drawn_apart():
    run = solve(PROBLEM, Recipe(sharpness=np.inf))
    figure = run.plot()
    assert f"collapsed at step {run.collapsed_at}" in figure.get_suptitle()
    solved, guessed = figure.axes[0].get_lines()[:2]
    assert np.isnan(solved.get_ydata()[run.collapsed_at :]).all()
    np.testing.assert_array_equal(guessed.get_ydata(), 0.4)
    assert all(ax.patches for ax in figure.axes)


def test_failure_is_said_and_shaded():
    recipe = Recipe(threshold=[0.0] * 4 + [1e6] + [0.0] * 11)
    figure = solve(PROBLEM, recipe, on_failure="partial").plot()
    assert "step 5 could not be solved" in figure.get_suptitle()
    assert all(ax.patches for ax in figure.axes)


def test_a_run_in_good_order_is_not_shaded():
    figure = solve(PROBLEM, Recipe()).plot()
    assert "shaded" not in figure.get_suptitle()
    assert not any(ax.patches for ax in figure.axes)


@pytest.mark.parametrize(("steps", "scale"), [(0, "linear"), (16, "linear"), (200, "symlog")])
def test_steps_axis_is_logarithmic_when_there_are_many(steps, scale, tmp_path):
    problem = PROBLEM.replace(steps=steps, loss="squared")
    figure = solve(problem, Recipe(lambda_u=1e-3)).plot()
    assert {ax.get_xscale() for ax in figure.axes} == {scale}
    figure.savefig(tmp_path / "run.pdf")
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")


def test_supervised_run_has_one_tick_and_room_above():
    run = solve(PROBLEM.replace(steps=0), Recipe())
    figure = run.plot()
    for ax in figure.axes:
        assert ax.get_xticks().tolist() == [0]
    assert figure.axes[0].get_ylim()[1] > 1.05 * run.error[0]


def test_the_legend_covers_no_panel(tmp_path):
    figure = solve(PROBLEM, Recipe()).plot()
    figure.savefig(tmp_path / "run.png")
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.y0 >= 0
    for ax in figure.axes:
        assert ax.get_legend() is None
        assert not box.overlaps(ax.get_window_extent())
        assert not box.overlaps(ax.xaxis.label.get_window_extent())


@pytest.mark.parametrize(
    ("shift", "told"),
    [
        ({"rho_u": 0.3}, r"error on $\rho=0.3$,  $\Delta=0.5625$"),
        ({"test": (0.1, 2.0)}, r"error on $\rho=0.1$,  $\Delta=2$"),
        ({"rho_u": 0.3, "test": "labeled"}, ""),
        ({}, ""),
    ],
)
def test_title_tells_the_mixture_of_the_error_where_it_is_another(shift, told):
    title = solve(PROBLEM.replace(steps=1, **shift), Recipe()).plot().get_suptitle()
    assert told in title
    assert ("error on" in title) == bool(told)


def test_title_tells_problem_and_recipe():
    problem = PROBLEM.replace(steps=2, alpha_u=[1, 3], rho_u=0.3, delta_u=0.5)
    recipe = Recipe(threshold=0.1, sharpness=np.inf, annealing=0.5, fix_bias=True)
    title = solve(problem, recipe).plot().get_suptitle()
    for part in (
        r"\alpha_U=1\ldots 3",
        r"\rho_U=0.3",
        r"\Delta_U=0.5",
        r"\Gamma=0.1",
        "hard labels",
        "a=0.5",
        "bias fixed",
    ):
        assert part in title


def test_draws_on_part_of_a_given_figure():
    whole = Figure()
    left, _ = whole.subfigures(1, 2)
    assert solve(PROBLEM, Recipe()).plot(figure=left) is whole
    assert len(left.axes) == 4


def test_settings_of_the_caller_are_left_alone():
    before = dict(mpl.rcParams)
    solve(PROBLEM, Recipe()).plot()
    assert dict(mpl.rcParams) == before
