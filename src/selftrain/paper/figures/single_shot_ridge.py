"""Best ridges, up to 10,000, of one step of self-training: they diverge if classes are balanced."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.single_shot import SINGLE_SHOT
from ..entry import Claims, Data, Drawn, Tasks, fixed
from ..judge import listed
from ..ruling import Bar, above, below, decided
from ..setting import ALPHA_L, DELTAS

LARGEST = 1e4
RHOS = (0.5, 0.495, 0.4)
RATIOS = tuple(float(2.0**k) for k in np.arange(-2, 7.5, 0.5))
RATIOS_QUICK = (0.5, 4.0, 128.0)
AT_BOUND = Bar(0.01, "a search ends at a bound to far less than a hundredth")
JUMP = 100.0
"""Neighbouring ridges that differ by a larger factor belong to different local minima; no line
joins them."""

RIDGES = ("lambda_l", "lambda_u")


def tasks(quick: bool) -> Tasks:
    axes: dict[str, Any] = {
        "rho": RHOS,
        "delta": DELTAS,
        "alpha_u": tuple(ALPHA_L * ratio for ratio in (RATIOS_QUICK if quick else RATIOS)),
    }
    return {"optima": Task(SINGLE_SHOT, Grid(axes, {"alpha_l": ALPHA_L, "largest": LARGEST}))}


def draw(data: Data) -> Drawn:
    optima = data["optima"]
    ratio = optima.alpha_u / fixed(optima, "alpha_l")
    rows, columns = optima.delta.size, optima.rho.size
    looks = ((r"$\lambda_L^*$", style.BLUE, "o"), (r"$\lambda_U^*$", style.ORANGE, "s"))
    size = (rows, columns, 2.8 * columns + 1.2, 2.3 * rows + 0.4)
    labels = (r"$\alpha_U / \alpha_L$", "best ridge")
    figure, axes = pic.canvas(*size, *labels, sharex=True, sharey=True)
    for ax, one in zip(axes.ravel(), pic.each(optima, ("delta", "rho")), strict=True):
        for name, (_, color, marker) in zip(RIDGES, looks, strict=True):
            pic.series(ax, ratio, one[name], color, marker, jump=JUMP)
        pic.bound(ax, LARGEST)
        ax.set_title(rf"$\rho={float(one.rho):g}$, $\Delta={float(one.delta):g}$")
        ax.set_xscale("log", base=2)
        style.logarithmic(ax)
    bound = pic.handle("bound", style.GREY, "", pic.DOTTED)
    return figure, [*(pic.handle(*look) for look in looks), bound]


def judge(data: Data) -> Claims:
    optima = data["optima"]
    ratio = optima.alpha_u / ALPHA_L
    ridges = optima[list(RIDGES)].to_array("ridge").isel(alpha_u=-1)
    share = float(ridges.sel(rho=0.5).min()) / LARGEST
    at_bound = optima["lambda_u"].sel(rho=0.5) > (1 - AT_BOUND.size) * LARGEST
    skewed = {rho: float(ridges.sel(rho=rho).max()) for rho in RHOS if rho < 0.5}
    away = 1 - max(skewed.values()) / LARGEST
    yield decided(
        "diverge",
        f"Smallest share of the bound at alpha_U / alpha_L = {float(ratio[-1]):g}:"
        f" {share:.4g}. lambda_U* is at the bound from alpha_U / alpha_L ="
        f" {listed(ratio.where(at_bound).min('alpha_u'))} on (by Delta).",
        below("largest distance from the bound", 1 - share, AT_BOUND),
    )
    yield decided(
        "imbalanced",
        f"Larger of the two ridges and of both Delta by rho: {listed(skewed)}.",
        above("smallest distance from the bound", away, AT_BOUND),
    )
