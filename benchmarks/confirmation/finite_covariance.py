"""The theory of general covariances compared with finite systems of synthetic Gaussian data.

Six covariances (a log-normal spectrum and a power law, the mean along large, small or all modes)
and eight recipes make 48 cells. A cell has runs with N = 400 and N = 2,000. The distance of a mean
from the theory is a/N plus noise, so the two sizes give the distance without the a/N term: 5/4 of
that at 2,000 minus 1/4 of that at 400. Its standard error comes from the variances over the seeds,
which fall as 1/N. A cell takes a minute on one core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from selftrain import Clusters, Problem, Recipe, simulate, solve

from ..options import parser

SMALL, LARGE = 400, 2000
SEEDS = {SMALL: 64, LARGE: 16}
SPECTRA = ("log-normal", "power law")
ALONG = ("large modes", "small modes", "all modes")
SEPARATION = 1.4
SHARE = 0.1
"""Fraction of the modes that carry the mean, unless all do."""

RECIPES: dict[str, dict[str, Any]] = {
    "naive": {},
    "selection": {"threshold": 0.4},
    "hard labels": {"sharpness": math.inf},
    "annealing": {"annealing": 0.3},
    "fixed bias": {"fix_bias": True},
    "both heuristics": {"annealing": 0.2, "fix_bias": True},
    "all three": {"threshold": 0.3, "annealing": 0.2, "fix_bias": True},
    "hard, selected, fixed": {"sharpness": math.inf, "threshold": 0.3, "fix_bias": True},
}
QUANTITIES = (
    "m", "q", "bias", "overlap", "error", "balanced_error", "auc", "cosine",
    "fraction_selected", "pseudo_label_accuracy", "train_loss",
)  # fmt: skip


class Score(NamedTuple):
    """The largest |z| of a cell: at each size, and without the 1/N term; `where` is the quantity
    and step of the latter.
    """

    small: float
    large: float
    extrapolated: float
    where: str


def drawn_clusters(spectrum: str, along: str, features: int) -> Clusters:
    """Return clusters whose spectrum depends on i/N only, with a fixed separation."""
    x = (np.arange(features) + 0.5) / features
    noise = np.exp(ndtri(1 - x)) if spectrum == "log-normal" else 0.5 * x**-0.5
    mean = np.ones(features)
    if along != "all modes":
        mean[x > SHARE if along == "large modes" else x < 1 - SHARE] = 0.0
    mean *= SEPARATION / math.sqrt(float(np.sum(mean**2 / noise)))
    return Clusters(mean, noise)


def problem(spectrum: str, along: str, features: int) -> Problem:
    clusters = drawn_clusters(spectrum, along, features)
    return Problem(alpha_l=0.8, alpha_u=1.5, rho=0.4, clusters=clusters, steps=2)


def score(spectrum: str, along: str, choice: dict[str, Any]) -> Score:
    """Compute the score of one cell."""
    recipe = Recipe(lambda_l=0.1, lambda_u=0.05, **choice)
    runs, theories = {}, {}
    for n, seeds in SEEDS.items():
        one = problem(spectrum, along, n)
        runs[n] = simulate(one, recipe, seeds=seeds, probes=0, tolerance=1e-4, progress=False)
        theories[n] = solve(one, recipe)
    worst = Score(0.0, 0.0, 0.0, "")
    for name in QUANTITIES:
        gap = {n: runs[n].mean(name) - getattr(theories[n], name) for n in SEEDS}
        freedom = sum(seeds - 1 for seeds in SEEDS.values())
        spread = sum((SEEDS[n] - 1) * n * runs[n].std(name) ** 2 for n in SEEDS) / freedom
        error = {n: np.sqrt(spread / n / SEEDS[n]) for n in SEEDS}
        weight = LARGE / (LARGE - SMALL)
        left = weight * gap[LARGE] - (weight - 1) * gap[SMALL]
        width = np.hypot(weight * error[LARGE], (weight - 1) * error[SMALL])
        with np.errstate(invalid="ignore", divide="ignore"):
            z = [
                np.where(width > 0, np.abs(a / b), np.nan)
                for a, b in ((gap[SMALL], error[SMALL]), (gap[LARGE], error[LARGE]), (left, width))
            ]
        if not np.isfinite(z[2]).any():
            continue
        t = int(np.nanargmax(z[2]))
        small, large = max(worst.small, np.nanmax(z[0])), max(worst.large, np.nanmax(z[1]))
        far = float(z[2][t])
        worst = Score(float(small), float(large), max(worst.extrapolated, far), worst.where)
        if far == worst.extrapolated:
            worst = worst._replace(where=f"{name} at t = {t}")
    return worst


def cells() -> Iterator[tuple[str, str, str]]:
    """Yield all cells; the first eight have every recipe and every covariance."""
    covariances, recipes = list(product(SPECTRA, ALONG)), list(RECIPES)
    for turn, (place, name) in product(range(len(covariances)), enumerate(recipes)):
        yield *covariances[(place + turn) % len(covariances)], name


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--cells", type=int, default=48, help="how many of the 48 to run")
    asked = options.parse_args(arguments)
    largest = 0.0
    print(f"largest |z| at N = {SMALL}, at {LARGE}, without 1/N")
    for spectrum, along, name in list(cells())[: asked.cells]:
        found = score(spectrum, along, RECIPES[name])
        largest = max(largest, found.extrapolated)
        print(
            f"{spectrum}, {along}, {name}: {found.small:.2f} {found.large:.2f}"
            f" {found.extrapolated:.2f} ({found.where})",
            flush=True,
        )
    print(f"largest without 1/N: {largest:.2f}")
    return 0
