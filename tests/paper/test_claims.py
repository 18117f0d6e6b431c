"""Claims are judged by the data: true ones hold, and wrong data are told to fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from selftrain.paper.figure import Claim
from selftrain.paper.figures import (
    annealing,
    batch_size,
    cosine,
    heuristics,
    macroscopic,
    optimal_ridge,
    relative_error,
    selection,
    single_shot_ridge,
    susceptibility,
)
from selftrain.paper.judge import above_bayes, at_the_end, last_slope, power_law

T = 2 ** np.arange(11)
RHOS = np.array([0.5, 0.495, 0.4, 0.3, 0.2])
DELTAS = np.array([1.0, 0.75**2])
BOTH = np.array([False, True])


def cases(**values: Any) -> xr.Dataset:
    """Chains with the axes of the figures; each quantity a function of (rho, T, selection, heuristics)."""
    axes = {"rho": RHOS, "delta": DELTAS, "selection": BOTH, "heuristics": BOTH, "T": T}
    rho, _, chosen, helped, length = np.meshgrid(*axes.values(), indexing="ij")
    data = {
        name: (tuple(axes), np.broadcast_to(make(rho, length, chosen, helped), rho.shape).copy())
        for name, make in values.items()
    }
    return xr.Dataset(data, coords=axes)


def paper_like(**changes: Any) -> xr.Dataset:
    """What the paper says, as formulas."""
    values: dict[str, Any] = {
        "supervised": lambda rho, t, s, h: 0.1,
        "bayes": lambda rho, t, s, h: 0.09,
        "labeled_only": lambda rho, t, s, h: 0.5,
        "error": lambda rho, t, s, h: (
            0.1 * (1 + np.where(h, 0, 2 * (0.5 - rho)) + 0.3 / t * (1 - 0.5 * s / t))
        ),
        "one_minus_cosine": lambda rho, t, s, h: 0.3 * t ** -(1.5 * rho),
        "lambda_u": lambda rho, t, s, h: np.minimum(0.1, 0.5 / t),
        "lambda_l": lambda rho, t, s, h: 0.01 + 0 * rho,
        "annealing": lambda rho, t, s, h: 3.0 / t,
    }
    return cases(**{**values, **changes})


def verdicts(claims: list[Claim]) -> list[bool | None]:
    return [claim.holds for claim in claims]


def without(data: xr.Dataset) -> dict[str, xr.Dataset]:
    return {"chains": data.isel(heuristics=[0])}


def test_relative_error() -> None:
    assert all(verdicts(relative_error.claims(without(paper_like()))))
    flat = paper_like(error=lambda rho, t, s, h: 0.1 * (1 + 0.3 / t))
    _, imbalanced, ordered, *_ = verdicts(relative_error.claims(without(flat)))
    assert not imbalanced
    assert not ordered
    poor = paper_like(error=lambda rho, t, s, h: 0.6 + 0 * rho)
    balanced, _, _, improved, _ = verdicts(relative_error.claims(without(poor)))
    assert not balanced
    assert not improved


def test_an_error_below_the_limit_is_told() -> None:
    data = paper_like(error=lambda rho, t, s, h: 0.08 + 0 * rho)
    assert verdicts(relative_error.claims(without(data)))[-1] is False
    assert above_bayes(data["error"], 0 * data["bayes"] + 0.07).holds


def test_cosine() -> None:
    assert all(verdicts(cosine.claims(without(paper_like()))))
    wavy = paper_like(one_minus_cosine=lambda rho, t, s, h: 0.1 + 0.01 * np.log2(t) % 2)
    assert verdicts(cosine.claims(without(wavy))) == [False, False]


def test_selection() -> None:
    balanced = xr.Dataset(
        {
            "error": (
                ("alpha_l", "alpha_u", "selection", "T"),
                np.array(
                    [
                        [[0.1 + 0 * T, 0.1 * (1 - gain / T**2)] for gain in (0.2, 0.3)],
                        [[0.1 + 0 * T, 0.1 * (1 - gain / T**2)] for gain in (0.1, 0.15)],
                    ]
                ),
            )
        },
        coords={"alpha_l": [0.25, 1.0], "alpha_u": [2.0, 8.0], "selection": BOTH, "T": T},
    )
    balanced["bayes"] = 0 * balanced["error"] + 0.05
    data = {"cases": paper_like().isel(heuristics=[0]), "balanced": balanced}
    assert all(verdicts(selection.claims(data)))
    reverse = {"cases": data["cases"], "balanced": balanced.assign_coords(alpha_l=[1.0, 0.25])}
    reverse["balanced"] = reverse["balanced"].sortby("alpha_l")
    assert verdicts(selection.claims(reverse))[3] is False
    useless = paper_like(error=lambda rho, t, s, h: 0.12 * (1 + 0.05 * s))
    found = verdicts(selection.claims({**data, "cases": useless.isel(heuristics=[0])}))
    assert found[0] is False
    assert found[5] is False


def chains_of_batches(chi: Any) -> dict[str, xr.Dataset]:
    batches = np.array([0.25, 1.0, 2.0, 8.0])
    shape = (4, 2, T.size)
    alpha, chosen, length = np.meshgrid(batches, BOTH, T, indexing="ij")
    data = {
        "error": 0.1 * (1 + 0.2 / alpha) * (1 - 0.1 * chosen / length**2),
        "supervised": np.full(shape, 0.1),
        "bayes": np.full(shape, 0.05),
        "chi": chi(alpha, length),
    }
    dims = ("alpha_u", "selection", "T")
    made = {name: (dims, np.broadcast_to(values, shape)) for name, values in data.items()}
    return {"chains": xr.Dataset(made, coords={"alpha_u": batches, "selection": BOTH, "T": T})}


def test_small_batches_fail_and_are_unstable() -> None:
    data = chains_of_batches(lambda alpha, t: t / alpha)
    assert all(verdicts(batch_size.claims(data)))
    assert all(verdicts(susceptibility.claims(data)))
    steady = chains_of_batches(lambda alpha, t: alpha)
    assert not any(verdicts(susceptibility.claims(steady)))
    data["chains"]["error"] = 0 * data["chains"]["error"] + 0.1
    assert verdicts(batch_size.claims(data))[:3] == [False, False, False]


def test_optimal_ridge_finds_the_power() -> None:
    claims = optimal_ridge.claims(without(paper_like()))
    assert all(verdicts(claims))
    assert claims[0].numbers["exponent_0.5_1"] == pytest.approx(-1.0)
    other = paper_like(lambda_u=lambda rho, t, s, h: 0.1 * t ** (-2 * rho))
    assert verdicts(optimal_ridge.claims(without(other)))[1] is False
    bent = paper_like(lambda_u=lambda rho, t, s, h: 0.09 * np.exp(-t / 100))
    assert verdicts(optimal_ridge.claims(without(bent)))[0] is False


def test_short_runs_cannot_tell_of_long_ones() -> None:
    short = paper_like(error=lambda rho, t, s, h: 0.6 + 0 * rho).isel(T=slice(0, 5))
    assert verdicts(relative_error.claims(without(short)))[:2] == [None, None]
    assert verdicts(heuristics.claims({"chains": short.isel(selection=[0])}))[0] is None


def test_optimal_ridge_says_when_runs_are_too_short() -> None:
    short = paper_like().isel(T=slice(0, 5))
    assert verdicts(optimal_ridge.claims(without(short))) == [None, None]


def test_heuristics() -> None:
    data = {"chains": paper_like().isel(selection=[0])}
    assert all(verdicts(heuristics.claims(data)))
    alike = paper_like(error=lambda rho, t, s, h: 0.1 * (1 + (0.5 - rho) + 0.3 / t))
    assert verdicts(heuristics.claims({"chains": alike.isel(selection=[0])}))[:2] == [False, False]
    healing = paper_like(error=lambda rho, t, s, h: 0.1 * (1 + 0.3 / t))
    assert verdicts(heuristics.claims({"chains": healing.isel(selection=[0])}))[2] is False


def test_annealing() -> None:
    helped = paper_like().isel(selection=[0], heuristics=[1])
    assert all(verdicts(annealing.claims({"chains": helped})))
    rising = paper_like(annealing=lambda rho, t, s, h: 0.1 * t).isel(selection=[0], heuristics=[1])
    assert not any(verdicts(annealing.claims({"chains": rising})))


def finite(power: float, shift: float) -> dict[str, xr.Dataset]:
    """Systems whose quantities scatter as N^power around the theory, with a shift of the mean."""
    t = np.arange(17)
    rng = np.random.default_rng(0)
    theory = dict.fromkeys(("q", "m", "bias", "error"), 1.0 + 0.1 * t)
    data = {
        "theory": xr.Dataset(
            {name: (("rho", "t"), values[None]) for name, values in theory.items()},
            coords={"rho": [0.4], "t": t},
        )
    }
    for features, seeds in ((128, 64), (1024, 64), (8192, 64), (2**20, 4)):
        scatter = features**power
        runs = {}
        for name, values in theory.items():
            noise = scatter * rng.standard_normal((1, seeds, 1))
            far = 0.2 if name == "error" and features <= 1024 else shift * scatter
            runs[name] = (("rho", "seed", "t"), values + noise + far)
        coords = {"rho": [0.4], "seed": np.arange(seeds), "t": t}
        data[f"N{features}"] = xr.Dataset(runs, coords=coords)
    return data


def test_macroscopic() -> None:
    assert all(verdicts(macroscopic.claims(finite(-0.5, 0.0))))
    assert verdicts(macroscopic.claims(finite(-0.5, 8.0)))[:2] == [False, False]
    slow = verdicts(macroscopic.claims(finite(-0.2, 3.0)))
    assert slow[2] is False
    assert slow[3] is False


def test_single_shot_ridge() -> None:
    axes = {"rho": [0.5, 0.495, 0.4], "delta": DELTAS, "alpha_u": [1.0, 32.0]}
    ridge = np.ones((3, 2, 2))
    ridge[0, :, 1] = single_shot_ridge.LARGEST
    data = xr.Dataset({"lambda_l": (tuple(axes), ridge), "lambda_u": (tuple(axes), ridge)}, axes)
    assert all(verdicts(single_shot_ridge.claims({"optima": data})))
    assert verdicts(single_shot_ridge.claims({"optima": data.isel(rho=[1, 0, 2]).assign_coords(rho=axes["rho"])})) == [False, False]  # fmt: skip


def test_power_laws() -> None:
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    law = power_law(x, 5 * x**-0.7)
    assert law.exponent == pytest.approx(-0.7)
    assert law.amplitude == pytest.approx(5)
    assert law.off == pytest.approx(1)
    assert power_law(x, x * np.array([1, 2, 1, 1])).off > 1.5
    assert last_slope(x, np.array([9.0, 1.0, 0.1, 0.01])) == pytest.approx(-1)


def test_the_end_is_the_last_value_there_is() -> None:
    values = xr.DataArray([[1.0, 2.0, 3.0], [4.0, 5.0, np.nan]], dims=("case", "T"))
    assert at_the_end(values).values.tolist() == [3.0, 5.0]


def test_where_the_first_ridge_is_at_its_floor_is_told() -> None:
    def first_ridge(rho: Any, t: Any, s: Any, h: Any) -> Any:
        return np.where((rho == 0.2) & (t >= 256), 1e-8, 0.01)

    claims = optimal_ridge.claims(without(paper_like(lambda_l=first_ridge)))
    assert "for rho = 0.2, Delta = 1, from T = 256; rho = 0.2" in claims[0].found
