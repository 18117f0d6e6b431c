"""Claims can fail: data that contradict a sentence of the paper are judged so, and only where they
can.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from selftrain.paper.judge import above_bayes, agreement, last_slope, power_law
from selftrain.paper.registry import figure
from selftrain.paper.ruling import Bar

sys.path.insert(0, str(Path(__file__).parent))
from synthetic import data_of


def verdicts(name: str, part: str, change: Callable[[xr.Dataset], xr.Dataset]) -> list[bool | None]:
    """The verdicts of a figure after a change of one of its datasets: claims, then findings."""
    one = figure(name)
    data = dict(data_of(one, quick=False))
    data[part] = change(data[part].copy(deep=True))
    judged = [*one.claims(data, True), *one.findings(data, True)]
    return [entry.holds for entry in judged]


def put(variable: str, make: Callable[[xr.Dataset], Any]) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda data: data.assign({variable: make(data)})


CASES = [
    # naive self-training that is as good at every rho: neither imbalance nor its order shows
    (
        "relative-error",
        "chains",
        put("error", lambda d: d["supervised"] * (1 + 0.3 / d.T)),
        {1, 2, 3},
    ),
    # and one that is worse than the labelled points alone
    ("relative-error", "chains", put("error", lambda d: 2 * d["labeled_only"]), {0, 3, 4}),
    ("relative-error", "chains", put("error", lambda d: 0.9 * d["bayes"]), {8}),
    ("relative-error", "chains", put("first_order", lambda d: 0 * d["error"] + 1.0), {7}),
    (
        "cosine",
        "usual",
        put("one_minus_cosine", lambda d: 0.1 + 0 * d["error"] + 0.01 * (np.log2(d.T) % 2)),
        {0},
    ),
    (
        "selection",
        "cases",
        put("error", lambda d: 0.12 * d.delta * (1 + 0.05 * d.selection) + 0 * d["error"]),
        {0, 1},
    ),
    ("batch-size", "chains", put("error", lambda d: d["supervised"]), {0, 2, 3}),
    ("susceptibility", "fixed", put("chi", lambda d: d.alpha_u + 0 * d["chi"]), {0}),
    (
        "optimal-ridge",
        "chains",
        put("lambda_u", lambda d: 0.09 * np.exp(-d.T / 100) + 0 * d["error"]),
        {0, 1, 2, 3},
    ),
    (
        "heuristics",
        "chains",
        put("error", lambda d: d["supervised"] * (1 + (0.5 - d.rho) + 0.3 / d.T)),
        {0, 1},
    ),
    ("annealing", "chains", put("annealing", lambda d: 0.1 * d.T + 0 * d["error"]), {0}),
    ("annealing", "chains", put("hardness", lambda d: 0.3 + 0 * d["error"]), {2}),
    ("continuum", "paths", put("apart", lambda d: 0.1 + 0 * d["apart"]), {0}),
    ("continuum", "paths", put("lambda_u", lambda d: 0.1 + 0 * d["apart"]), {0, 1}),
    ("single-shot-ridge", "optima", put("lambda_l", lambda d: 1.0 + 0 * d["lambda_l"]), {0}),
    ("single-shot-error", "theory", put("lambda_u", lambda d: 1.0 + 0 * d["lambda_u"]), {0, 1}),
    ("macroscopic", "N8192", put("q", lambda d: 1.5 * d["q"]), {0}),
    ("macroscopic-all", "N1024", put("m", lambda d: 1.5 * d["m"]), {0, 3, 6}),
    ("macroscopic-all", "N8192", put("error", lambda d: 1.5 * d["error"]), {2, 5}),
    ("weights-logits", "systems", put("logits_share", lambda d: d["logits_share"] + 0.1), {1}),
    ("few-labels", "theory", put("best_bias", lambda d: 0.5 * d["error"]), {0}),
    ("ablation", "ways", put("error", lambda d: 0.1 + 0 * d["error"]), {0}),
]


@pytest.mark.parametrize(("name", "part", "change", "failing"), CASES)
def test_what_the_data_contradict_does_not_hold(
    name: str, part: str, change: Any, failing: set[int]
) -> None:
    found = verdicts(name, part, change)
    assert {index for index, holds in enumerate(found) if holds is False} >= failing


def test_agreement_needs_power() -> None:
    """Few seeds prove nothing: a difference of 20 % with a standard error of 15 % is neither seen
    nor excluded.
    """
    bar = Bar(0.1, "an example")
    few = agreement([0.2], [0.15], seeds=4)
    assert few.within("gap", bar).met() is None
    assert few.detectable > 0.2
    many = agreement([0.2], [0.005], seeds=64)
    assert many.within("gap", bar).met() is False
    good = agreement([0.02], [0.005], seeds=64)
    assert good.within("gap", bar).met() is True
    assert 0.02 < good.at_most < 0.1


def test_the_power_that_agreement_reports() -> None:
    """A true difference as large as the detectable one is seen in nine of ten experiments, at no
    bar.
    """
    rng = np.random.default_rng(0)
    seeds, spread = 16, 1.0
    detectable = agreement([0.0], [spread / 4], seeds).detectable
    seen = 0
    for _ in range(2000):
        sample = detectable + spread * rng.standard_normal(seeds)
        error = sample.std(ddof=1) / np.sqrt(seeds)
        seen += agreement([sample.mean()], [error], seeds).at_least > 0
    assert 0.85 < seen / 2000 < 0.97


def test_power_laws() -> None:
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    law = power_law(x, 5 * x**-0.7)
    assert law.exponent == pytest.approx(-0.7)
    assert law.amplitude == pytest.approx(5)
    assert law.off == pytest.approx(1)
    assert power_law(x, x * np.array([1, 2, 1, 1])).off > 1.5
    assert last_slope(x, np.array([9.0, 1.0, 0.1, 0.01])) == pytest.approx(-1)


def test_an_error_below_the_limit_is_a_finding_that_fails() -> None:
    error, bayes = xr.DataArray([0.1, 0.2]), xr.DataArray([0.09, 0.21])
    assert above_bayes(error, bayes, full=False).holds is False
    assert above_bayes(error, 0.5 * bayes, full=False).holds is None
    assert above_bayes(error, 0.5 * bayes, full=True).holds is True
