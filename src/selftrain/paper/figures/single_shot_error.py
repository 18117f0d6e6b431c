"""One step with ridges up to 10: finite systems are far from the theory unless very large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ..computations.single_shot import SINGLE_SHOT, SINGLE_SHOT_RUN
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import above_bayes, by_size, listed, power_law
from ..ruling import Bar, above, at_full_size, below, positive
from ..setting import ALPHA_L, DELTAS, with_systems

if TYPE_CHECKING:
    import xarray as xr

LARGEST = 10.0
BATCHES = (0.5, 1.0, 2.0, 4.0, 8.0)
BATCHES_QUICK = (1.0, 4.0)
HEAVY = Bar(0.1, "a tenth of the error is what the eye sees")
ROOT = Bar(0.1, "a fifth of the exponent")
SEEDS = {128: 256, 1024: 128, 8192: 32, 2**17: 8, 2**20: 3}
SEEDS_QUICK = {128: 32, 1024: 16, 8192: 8}


def tasks(quick: bool) -> Tasks:
    axes = {"delta": DELTAS, "alpha_u": BATCHES_QUICK if quick else BATCHES}
    fixed = {"rho": 0.5, "alpha_l": ALPHA_L, "largest": LARGEST}
    seeds = SEEDS_QUICK if quick else SEEDS
    return with_systems(SINGLE_SHOT, SINGLE_SHOT_RUN, axes, fixed, seeds)


def draw(data: Data) -> Drawn:
    theory, sizes = data["theory"], by_size(data)
    columns = theory.delta.size
    figure, axes = pic.canvas(
        1, columns, 3.6 * columns + 1.6, 3.6, r"$\alpha_U$", r"$\epsilon_g^{(1)}$"
    )
    for ax, delta in zip(axes[0], theory.delta.values, strict=True):
        one = theory.sel(delta=delta)
        ax.plot(one.alpha_u, one["error"], color=style.BLACK)
        ax.plot(one.alpha_u, one["bayes"], color=style.GREY, linestyle=pic.DOTTED)
        for index, (_, runs) in enumerate(sizes):
            x = one.alpha_u * 2 ** (0.06 * (index - 2))
            look = (pic.SERIES[1:][index], pic.SIZE_MARKERS[index])
            pic.systems(ax, x, runs["error"].sel(delta=delta), *look)
        ax.set_xscale("log", base=2)
        ax.set_title(rf"$(\rho, \Delta) = (0.5, {delta:g})$")
    return figure, [
        pic.handle("theory", style.BLACK),
        *pic.size_legend(sizes),
        pic.handle("Bayes error", style.GREY, "", pic.DOTTED),
    ]


def judge(data: Data) -> Claims:
    theory, sizes = data["theory"], by_size(data)
    strong = (theory["lambda_u"] > 0.99 * LARGEST) & (theory["lambda_l"] > 0.99 * LARGEST)
    at_end = strong.isel(alpha_u=-1)
    excess = {
        features: float((runs["error"].mean("seed") / theory["error"] - 1).where(strong).max())
        for features, runs in sizes
    }
    small = min(value for features, value in excess.items() if features <= 8192)
    yield at_full_size(
        "at-bound",
        f"So it is at {int(strong.sum())} of {strong.size} points; at the largest alpha_U"
        f" for {int(at_end.sum())} of {strong.delta.size} Delta.",
        positive("share at the bound, less one half", at_end.min() - 0.5),
    )
    yield at_full_size(
        "heavy",
        f"Largest excess of the mean error by N: {listed(excess, '{:.0%}')}.",
        above("smallest of the largest excesses", small if strong.any() else 0.0, HEAVY),
    )
    if strong.any():
        yield from _size_effect(sizes, strong, excess)
    yield above_bayes(theory["error"], theory["bayes"])


def _size_effect(
    sizes: list[tuple[int, xr.Dataset]], strong: xr.DataArray, excess: Mapping[int, float]
) -> Claims:
    """Judge what happens where both ridges are at their bound."""
    tilt = {  # geometric means
        features: float(np.exp(np.nanmean(np.log(abs(runs["bias_to_norm"].where(strong))))))
        for features, runs in sizes
    }
    law = power_law(list(tilt), list(tilt.values()))
    off = abs(law.exponent + 0.5)
    last, largest = sizes[-1]
    turn = float((1 - largest["one_minus_cosine"].mean("seed")).where(strong).mean())
    needed = float(np.exp(np.log(0.1 * turn / law.amplitude) / law.exponent))
    yield at_full_size(
        "bias",
        f"Exponent {law.exponent:.3f}; |B|/sqrt(q) by N: {listed(tilt)}, where the cosine is"
        f" {turn:.3g}. It would be a tenth of the cosine at N = {needed:.1g}.",
        below("distance of the exponent from -1/2", off, ROOT),
    )
    yield at_full_size(
        "million",
        f"Largest excess at N = {last:,}: {excess[last]:.0%}.",
        above("largest excess", excess[last], HEAVY),
    )
