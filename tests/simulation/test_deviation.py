"""The verdict on made-up ensembles: how often it is wrong, and how often it sees what is there."""

import numpy as np
import pytest

from selftrain.simulation.deviation import deviation

STEPS, REPEATS = 17, 1000
KINDS = ("as one", "walk", "each its own")


def noise(kind: str, seeds: int) -> np.ndarray:
    """Repeats of (seeds, steps), in a mean over steps of variance one."""
    draw = np.random.default_rng(sum(map(ord, kind)) + seeds).normal(size=(REPEATS, seeds, STEPS))
    if kind == "walk":
        draw = np.cumsum(draw, axis=-1) / np.sqrt((STEPS + 1) / 2)
    return draw[..., :1] * np.ones(STEPS) if kind == "as one" else draw


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [2, 4, 16])
def test_chance_is_rarely_called_real(kind: str, seeds: int) -> None:
    """At the level of 1 %: 10 expected of 1000, and Box's approximation adds a third at most."""
    found = [deviation(one, 100) for one in noise(kind, seeds)]
    assert sum(one.real for one in found) <= 10 * 4 / 3 + 4 * np.sqrt(10)
    if kind == "as one":  # there it is Student's t, which is exact
        chance = np.sort([one.chance for one in found])
        assert np.abs(chance - np.linspace(0, 1, REPEATS)).max() < 1.9 / np.sqrt(REPEATS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [4, 16])
def test_what_is_detectable_is_seen(kind: str, seeds: int) -> None:
    """A deviation of the size called detectable is found in 90 % of the cases: exactly where steps
    move as one.
    """
    spread = noise(kind, seeds)
    size = np.mean([deviation(one, 100).detectable ** 2 for one in spread]) ** 0.5
    seen = np.mean([deviation(size + one, 100).real for one in spread])
    if kind == "as one":
        assert abs(seen - 0.9) < 3 * np.sqrt(0.09 / REPEATS)
    assert seen > 0.85
    assert np.mean([deviation(0.25 * size + one, 100).real for one in spread]) < 0.25


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [3, 16])
def test_limits_cover_the_largest_true_deviation(kind: str, seeds: int) -> None:
    """No more than 5 % of the upper limits are too small, no more than 1 % of the lower ones too
    large.
    """
    truth = np.linspace(-1.0, 0.5, STEPS)
    found = [deviation(truth + one, 100) for one in noise(kind, seeds)]
    assert np.mean([one.at_most < 1.0 for one in found]) < 0.05 + 4 * np.sqrt(0.05 / REPEATS)
    assert np.mean([one.at_least > 1.0 for one in found]) < 0.01 + 4 * np.sqrt(0.01 / REPEATS)


def test_power_grows_with_seeds() -> None:
    few, many = (deviation(noise("walk", seeds)[0], 100).detectable for seeds in (4, 64))
    assert many < few / 4


def test_steps_that_not_all_seeds_have_are_left_out() -> None:
    values = np.random.default_rng(1).normal(size=(6, 4))
    values[2, 3] = np.nan
    found, without = deviation(values, 10), deviation(values[:, :3], 10)
    assert found.pooled == without.pooled
    assert found.at_most == without.at_most
    assert np.isnan(found.mean[3])
    assert deviation(values[:1], 10) is None
    assert deviation(np.full((4, 2), np.nan), 10) is None


def test_without_spread() -> None:
    """Equal seeds: the resolution takes the place of the standard error, or there is none."""
    same = np.full((5, 3), 0.2)
    assert deviation(same, 10).real
    assert not deviation(same, 10, resolution=0.2).real
    nothing = deviation(0 * same, 10)
    assert not nothing.real
    assert nothing.at_most == nothing.detectable == 0
    assert nothing.chance == 1
