"""An ensemble: names of a trajectory with a seed axis, statistics, files, comparison, figure."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from selftrain import Ensemble, Problem, Recipe, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.losses import Squared
from selftrain.observables import SYMBOLS
from selftrain.simulation.ensemble import NAMES

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=3)
RECIPE = Recipe(threshold=0.2)


@pytest.fixture(scope="module")
def runs() -> Ensemble:
    return simulate(PROBLEM, RECIPE, 500, 6)


def test_names_are_those_of_a_trajectory(runs: Ensemble) -> None:
    conjugates = {"q_hat", "chi_hat", "m_hat", "r_hat"}
    assert set(SYMBOLS) - conjugates <= set(NAMES)
    for name in NAMES:
        assert runs.values(name).shape == (6, 4)
        assert np.isfinite(runs.values(name)[:, 1:]).all()


def test_statistics(runs: Ensemble) -> None:
    np.testing.assert_allclose(runs.mean("q"), runs.q.mean(axis=0))
    np.testing.assert_allclose(runs.std("q"), runs.q.std(axis=0, ddof=1))
    np.testing.assert_allclose(runs.sem("q"), runs.q.std(axis=0, ddof=1) / np.sqrt(6))
    assert np.isnan(runs.mean("overlap")[0])
    with pytest.raises(InvalidInput, match="did you mean 'overlap'"):
        runs.mean("overlp")


def test_derived_quantities_are_consistent(runs: Ensemble) -> None:
    np.testing.assert_allclose(runs.cosine, runs.m / np.sqrt(runs.q))
    np.testing.assert_allclose(runs.one_minus_cosine, 1 - runs.cosine, atol=1e-12)
    binomial = np.sqrt(runs.error * (1 - runs.error) / (runs.alpha * 500))
    assert (np.abs(runs.test_error - runs.error) < 5 * binomial).all()


def test_frames_and_files(runs: Ensemble, tmp_path: Path) -> None:
    frame = runs.to_frame()
    assert frame.index.names == ["seed", "t"]
    assert frame.loc[(2, 1), "q"] == runs.q[2, 1]
    data = runs.to_xarray()
    assert data["q"].dims == ("seed", "t")
    assert float(data["q"].mean("seed")[2]) == pytest.approx(runs.mean("q")[2])
    again = Ensemble.load(runs.save(tmp_path / "runs.nc"))
    for name in NAMES:
        np.testing.assert_array_equal(again.values(name), runs.values(name))
    assert again.problem == runs.problem
    assert again.recipe == runs.recipe
    assert again.seeds.tolist() == runs.seeds.tolist()
    assert again.features == 500
    with pytest.raises(FileNotFoundError):
        Ensemble.load(tmp_path / "nothing.nc")
    (tmp_path / "other.nc").write_text("no ensemble")
    with pytest.raises(InvalidInput, match="not a stored ensemble") as refused:
        Ensemble.load(tmp_path / "other.nc")
    assert len(str(refused.value).splitlines()) == 1


def test_large_seeds_are_kept_to_the_last_digit(tmp_path: Path) -> None:
    seeds = [2**60, 2**60 + 1]
    runs = simulate(PROBLEM, RECIPE, 60, seeds, probes=0)
    assert runs.seeds.tolist() == seeds
    assert (runs.q[0] != runs.q[1]).all()
    assert Ensemble.load(runs.save(tmp_path / "runs.nc")).seeds.tolist() == seeds


class Unknown(Squared):
    """A loss nobody registered."""

    name = "unregistered"


def test_a_file_with_a_loss_that_is_not_known_here(tmp_path: Path) -> None:
    runs = simulate(PROBLEM.replace(loss=Unknown()), RECIPE, 30, 2, probes=0)
    path = runs.save(tmp_path / "runs.nc")
    with pytest.raises(InvalidInput, match=r"selftrain.losses.register first"):
        Ensemble.load(path)


def test_comparison(runs: Ensemble) -> None:
    comparison = runs.compare(solve(PROBLEM, RECIPE))
    assert comparison.consistent()
    assert comparison.seeds.tolist() == [6, 6, 6, 6]
    assert comparison.to_frame().shape == (4, len(comparison.z))
    assert comparison.worst is not None
    name, step, z = comparison.worst
    assert comparison.z[name][step] == z
    assert np.abs(comparison.scores).max() == abs(z)
    assert "family-wise" in str(comparison)
    with pytest.raises(InvalidInput, match="same problem"):
        runs.compare(solve(PROBLEM, Recipe()))
    with pytest.raises(InvalidInput, match="trajectory = None: a Trajectory"):
        runs.compare(None)


def test_no_verdict_where_nothing_can_be_told() -> None:
    theory = solve(PROBLEM, RECIPE)
    one = simulate(PROBLEM, RECIPE, 200, 1, keep_weights=True, keep_logits=True).compare(theory)
    assert one.consistent() is None
    assert one.worst is None
    assert one.gaps == ()
    assert "nothing to compare" in str(one)


def test_a_share_all_seeds_agree_on_is_judged_by_its_resolution() -> None:
    """Without spread between seeds there is no standard error, but a far theory is seen."""
    runs = simulate(PROBLEM, RECIPE, 500, 6, probes=0)
    theory = solve(PROBLEM, RECIPE)
    equal = dataclasses.replace(runs, fraction_selected=np.ones_like(runs.fraction_selected))
    z = equal.compare(theory).z["fraction_selected"][1:]
    expected = (1 - theory.fraction_selected[1:]) * 6 * 1000
    np.testing.assert_allclose(z, expected)
    assert equal.compare(theory).consistent() is False


def test_figure(runs: Ensemble, tmp_path: Path) -> None:
    from selftrain.plots.ensemble import plot_ensemble

    theory = solve(PROBLEM, RECIPE)
    figure = runs.plot(theory)
    assert len(figure.axes) == 4
    figure.savefig(tmp_path / "runs.png")
    both = plot_ensemble([runs, simulate(PROBLEM, RECIPE, 100, 3)], theory, spread="sem")
    labels = [text.get_text() for text in both.axes[1].get_legend().get_texts()]
    assert any("500" in label for label in labels)
    assert "theory" in labels
