"""Every k-th step of a run is that step of the whole run, and nothing takes it for a whole run."""

import numpy as np
import pytest

from selftrain import Problem, Recipe, gradient, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.observables import SYMBOLS
from selftrain.theory.engines.logistic.engine import LogisticStage

PROBLEM, RECIPE = Problem(0.5, 2.0, 0.4, 0.5625, steps=10), Recipe(threshold=0.2)


def test_kept_steps_are_those_of_the_whole_run() -> None:
    run, kept = solve(PROBLEM, RECIPE), solve(PROBLEM, RECIPE, every=4)
    assert kept.t.tolist() == [0, 4, 8, 10]
    for name in SYMBOLS:
        np.testing.assert_array_equal(getattr(kept, name), getattr(run, name)[[0, 4, 8, 10]])
    assert kept.to_frame().shape == (4, len(SYMBOLS))
    assert kept.to_xarray()["q"].dims == ("t",)
    assert kept.summary() == run.summary()
    assert solve(PROBLEM, RECIPE, every=99).t.tolist() == [0, 10]
    with pytest.raises(AttributeError, match="KeptSteps has no weights; it has t, "):
        kept.weights  # noqa: B018


def test_averages_are_taken_at_kept_steps_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training loss is another pass over the equations of a step: a long run must not pay it for
    steps that nobody sees.
    """
    taken = []
    plain = LogisticStage.mean_loss
    monkeypatch.setattr(
        LogisticStage,
        "mean_loss",
        lambda stage, *arguments: taken.append(stage.step) or plain(stage, *arguments),
    )
    solve(PROBLEM.replace(steps=100), Recipe(lambda_u=1e-4), every=30)
    assert taken == [30, 60, 90, 100]


def test_a_collapse_between_kept_steps_is_known() -> None:
    hard = Recipe(sharpness=np.inf)
    run = solve(PROBLEM.replace(steps=12), hard)
    kept = solve(PROBLEM.replace(steps=12), hard, every=5)
    assert run.collapsed_at is not None
    assert kept.collapsed_at == run.collapsed_at
    np.testing.assert_array_equal(kept.error, run.error[[0, 5, 10, 12]])


@pytest.mark.parametrize("every", [0, -1, 1.5, "many", True])
def test_what_is_no_number_of_steps(every: object) -> None:
    with pytest.raises(InvalidInput, match=r"every = .*a whole number of steps, 1 or more"):
        solve(PROBLEM, RECIPE, every=every)  # type: ignore[call-overload]


def test_what_needs_every_step_refuses() -> None:
    kept = solve(PROBLEM, RECIPE, every=2)
    with pytest.raises(InvalidInput):
        gradient(kept)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        solve(PROBLEM, RECIPE, warm_start=kept)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        simulate(PROBLEM, RECIPE, 20, 2, probes=0).compare(kept)  # type: ignore[arg-type]
