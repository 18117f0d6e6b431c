"""An ensemble: names of a trajectory with a seed axis, statistics, files, comparison, figure."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from selftrain import Ensemble, Problem, Recipe, Trajectory, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.losses import Squared
from selftrain.observables import SYMBOLS
from selftrain.runtime.files import write_netcdf
from selftrain.simulation.ensemble import NAMES
from selftrain.simulation.seed_record import MEASURED

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=3)
RECIPE = Recipe(threshold=0.2)


@pytest.fixture(scope="module")
def runs() -> Ensemble:
    return simulate(PROBLEM, RECIPE, 500, 6)


def test_names_are_those_of_a_trajectory(runs: Ensemble) -> None:
    # conjugates, and ln q of weights that underflow: fitted ones are zero long before
    theory_alone = {"q_hat", "chi_hat", "m_hat", "r_hat", "log_q"}
    assert set(SYMBOLS) - theory_alone <= set(NAMES)
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


def test_a_file_of_something_else_is_named_with_what_reads_it(
    runs: Ensemble, tmp_path: Path
) -> None:
    stored = runs.save(tmp_path / "runs.nc")
    with pytest.raises(InvalidInput) as refused:
        Trajectory.load(stored)
    said = "not a stored trajectory but an ensemble: read it with selftrain.Ensemble.load"
    assert str(refused.value).endswith(said)
    plain = write_netcdf(xr.Dataset({"error": ("t", runs.mean("error"))}), tmp_path / "plain.nc")
    with pytest.raises(InvalidInput, match=r"but a dataset: read it with xarray\.open_dataset"):
        Ensemble.load(plain)


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
    comparison = runs.compare(solve(PROBLEM, RECIPE), within=0.5)
    assert comparison.consistent()
    assert comparison.seeds.tolist() == [6, 6, 6, 6]
    assert comparison.to_frame().shape == (4, len(comparison.z))
    assert comparison.worst is not None
    name, step, z = comparison.worst
    assert comparison.z[name][step] == z
    assert np.abs(comparison.scores).max() == abs(z)
    q = (runs.mean("q") - comparison.theory.q) / comparison.theory.q
    np.testing.assert_allclose(comparison.deviations["q"].mean, q)
    assert comparison.deviations["q"].times_features == pytest.approx(500 * q[np.abs(q).argmax()])
    assert str(comparison).splitlines()[-1] == comparison.verdict
    with pytest.raises(InvalidInput, match="same problem"):
        runs.compare(solve(PROBLEM, Recipe()))
    with pytest.raises(InvalidInput, match="trajectory must be a Trajectory"):
        runs.compare(None)
    with pytest.raises(InvalidInput, match=r"within must be strictly between 0 and 1, got 0"):
        runs.compare(solve(PROBLEM, RECIPE), within=0.0)


@pytest.mark.parametrize("seeds", [4, 16])
def test_systems_too_small_for_the_theory_never_agree(seeds: int) -> None:
    """With 64 features and balanced classes the error is three times that of the theory."""
    problem, recipe = Problem(0.5, 2.0, 0.5, 0.5625, steps=16), Recipe()
    found = simulate(problem, recipe, 64, seeds, probes=0).compare(solve(problem, recipe))
    assert found.deviations["error"].largest > 2
    if seeds == 16:
        assert found.consistent() is False
        assert found.verdict.startswith("differ: error by ")
        assert "error 220 % = 142/N" in found.finite_size
    else:
        assert found.consistent() is None
        assert found.verdict.startswith(
            "cannot tell: more seeds or features; error may be off by up to "
        )


def test_large_systems_agree_to_a_few_percent() -> None:
    problem, recipe = Problem(0.5, 2.0, 0.4, 0.5625, steps=16), Recipe()
    found = simulate(problem, recipe, 2**13, 16, probes=0).compare(solve(problem, recipe))
    assert found.consistent()
    assert re.match(r"agree to [1-6](\.\d)? %, ", found.verdict)
    assert found.finite_size == ""


def test_rows_used_again_are_judged_by_their_own_theory() -> None:
    again = PROBLEM.replace(batches="reused", keep_labeled=0.5, loss="squared", steps=2)
    found = simulate(again, Recipe(), 3000, 8, probes=0).compare(solve(again, Recipe()))
    assert found.consistent(), str(found)
    assert found.theory.reuse is not None


def test_a_real_deviation_that_is_small_is_a_fact_of_its_own(runs: Ensemble) -> None:
    """One percent off with hardly any noise: they agree to one percent, and that is reported."""
    theory = solve(PROBLEM, RECIPE)
    noise = 1 + 1e-4 * np.random.default_rng(0).normal(size=(6, 4))
    exact = {
        name: getattr(theory, name) * noise
        for name in (*MEASURED, "test_error")
        if name not in ("test_error", "directions", "fit_error")
    }
    below, above = np.moveaxis(theory.class_errors * noise[..., None], -1, 0)
    confusion = np.stack([1 - below, below, above, 1 - above], axis=-1).reshape(6, 4, 2, 2)
    variances = theory.logit_variances * np.ones((6, 1, 1))
    near = dataclasses.replace(
        runs, **exact, test_error=theory.error * noise, confusion=confusion,
        logit_variances=variances,
    )  # fmt: skip
    assert near.compare(theory).consistent()
    off = dataclasses.replace(near, chi=1.01 * near.chi).compare(theory)
    assert off.verdict.startswith("agree to 1 %")
    assert off.finite_size.startswith("more than chance: chi 1 % = 5")
    assert dataclasses.replace(near, chi=1.2 * near.chi).compare(theory).consistent() is False


def test_nothing_is_said_where_nothing_can_be_known() -> None:
    theory = solve(PROBLEM, RECIPE)
    one = simulate(PROBLEM, RECIPE, 200, 1, keep_weights=True, keep_logits=True).compare(theory)
    assert one.consistent() is None
    assert one.worst is None
    assert one.gaps == ()
    assert str(one).startswith("cannot tell: no mean has an error")


def test_seeds_that_end_early_are_no_agreement() -> None:
    recipe = Recipe(threshold=9.0)
    ended = simulate(PROBLEM, recipe, 2**12, 6, on_failure="partial")
    assert len(ended.failures) == 6
    found = ended.compare(solve(PROBLEM, recipe, on_failure="partial"))
    assert not found.complete
    assert all(one.at_most < 0.1 for one in found.judged.values())
    assert found.consistent() is None
    assert found.verdict.startswith("cannot tell: some seeds, or the theory, end before")
    assert "6 failed" in found.note


def test_a_share_all_seeds_agree_on_is_judged_by_its_resolution() -> None:
    """Without spread between seeds there is no standard error, but a far theory is seen."""
    runs = simulate(PROBLEM, RECIPE, 500, 6, probes=0)
    theory = solve(PROBLEM, RECIPE)
    equal = dataclasses.replace(runs, fraction_selected=np.ones_like(runs.fraction_selected))
    compared = equal.compare(theory)
    expected = (1 - theory.fraction_selected[1:]) * 6 * 1000
    np.testing.assert_allclose(compared.z["fraction_selected"][1:], expected)
    assert compared.deviations["fraction_selected"].real
    assert equal.compare(theory, within=0.05).consistent() is False


def test_figure(runs: Ensemble, tmp_path: Path) -> None:
    from selftrain.plots.ensemble import plot_ensemble

    theory = solve(PROBLEM, RECIPE)
    figure = runs.plot(theory)
    assert len(figure.axes) == 4
    figure.savefig(tmp_path / "runs.png")
    both = plot_ensemble([runs, simulate(PROBLEM, RECIPE, 100, 3)], theory, spread="sem")
    labels = [text.get_text() for text in both.legends[0].get_texts()]
    assert any("500" in label for label in labels)
    assert "theory" in labels
