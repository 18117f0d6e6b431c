"""Every k-th step of a run is that step of the whole run, and nothing takes it for a whole run."""

import numpy as np
import pytest

from selftrain import Problem, Recipe, gradient, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.theory.step.robust import StepEquations

PROBLEM, RECIPE = Problem(0.5, 2.0, 0.4, 0.5625, steps=10), Recipe(threshold=0.2)


def test_thinned_steps_are_those_of_the_whole_run() -> None:
    run, thinned = solve(PROBLEM, RECIPE), solve(PROBLEM, RECIPE).every(4)
    assert thinned.t.tolist() == [0, 4, 8, 10]
    for name in run.RECORDED:
        np.testing.assert_array_equal(getattr(thinned, name), getattr(run, name)[[0, 4, 8, 10]])
    assert thinned.to_frame().shape == (4, len(run.RECORDED))
    assert thinned.to_xarray()["q"].dims == ("t",)
    assert thinned.summary() == run.summary()
    assert solve(PROBLEM, RECIPE).every(99).t.tolist() == [0, 10]
    with pytest.raises(AttributeError, match="ThinnedRun has no weights; it has t, "):
        thinned.weights  # noqa: B018


def test_averages_are_taken_at_thinned_steps_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training loss is another pass over the equations of a step: a long run must not pay it for
    steps that nobody sees.
    """
    taken = []
    plain = StepEquations.mean_loss
    monkeypatch.setattr(
        StepEquations,
        "mean_loss",
        lambda equations, *arguments: taken.append(equations.t) or plain(equations, *arguments),
    )
    solve(PROBLEM.replace(steps=100), Recipe(lambda_u=1e-4)).every(30)
    assert taken == [0, 30, 60, 90, 100]


def test_a_collapse_between_thinned_steps_is_known() -> None:
    hard = Recipe(sharpness=np.inf)
    run = solve(PROBLEM.replace(steps=12), hard)
    thinned = solve(PROBLEM.replace(steps=12), hard).every(5)
    assert run.collapsed_at is not None
    assert thinned.collapsed_at == run.collapsed_at
    np.testing.assert_array_equal(thinned.error, run.error[[0, 5, 10, 12]])


@pytest.mark.parametrize("every", [0, -1, 1.5, "many", True])
def test_what_is_no_number_of_steps(every: object) -> None:
    with pytest.raises(InvalidInput, match="every must be a whole number of steps, 1 or more"):
        solve(PROBLEM, RECIPE).every(every)


def test_what_needs_every_step_refuses() -> None:
    thinned = solve(PROBLEM, RECIPE).every(2)
    with pytest.raises(InvalidInput):
        gradient(thinned)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        solve(PROBLEM, RECIPE, warm_start=thinned)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        simulate(PROBLEM, RECIPE, 20, 2, probes=0).compare(thinned)  # type: ignore[arg-type]
