r"""Best ridges of one step of self-training, allowed up to $10^4$: they run away when classes are
balanced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sweeps import Grid, Task
from ..computations.single_shot import SINGLE_SHOT
from ..figure import Claim, Data, Figure, Finding, Place, fixed
from ..judge import listed, numbers
from ..ruling import Bar, above, below, decided
from ..setting import ALPHA_L, DELTAS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

LARGEST = 1e4
RHOS = (0.5, 0.495, 0.4)
RATIOS = tuple(float(2.0**k) for k in np.arange(-2, 7.5, 0.5))
RATIOS_QUICK = (0.5, 4.0, 128.0)
AT_BOUND = Bar(0.01, "a search ends at a bound to far less than a hundredth")
JUMP = 100.0
"""Ridges of neighbours that differ by a larger factor are in different valleys."""


def tasks(quick: bool) -> Mapping[str, Task]:
    axes: dict[str, Any] = {
        "rho": RHOS,
        "delta": DELTAS,
        "alpha_u": tuple(ALPHA_L * ratio for ratio in (RATIOS_QUICK if quick else RATIOS)),
    }
    return {"optima": Task(SINGLE_SHOT, Grid(axes, {"alpha_l": ALPHA_L, "largest": LARGEST}))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import DOTTED, bound, canvas, handle, legend_right, letter, series
    from ...plots.style import BLUE, GREY, ORANGE, logarithmic, styled

    optima = data["optima"]
    ratio = optima.alpha_u / fixed(optima, "alpha_l")
    rows, columns = optima.delta.size, optima.rho.size
    ridges = (
        ("lambda_l", r"$\lambda_L^*$", BLUE, "o"),
        ("lambda_u", r"$\lambda_U^*$", ORANGE, "s"),
    )
    with styled():
        figure, axes = canvas(
            rows, columns, 2.8 * columns + 1.2, 2.3 * rows + 0.4, sharex=True, sharey=True
        )
        for row, delta in zip(axes, optima.delta.values, strict=True):
            for ax, rho in zip(row, optima.rho.values, strict=True):
                one = optima.sel(rho=rho, delta=delta)
                for name, _, color, marker in ridges:
                    series(ax, ratio, one[name], color, marker, jump=JUMP)
                bound(ax, LARGEST)
                ax.set_title(rf"$\rho={rho:g}$, $\Delta={delta:g}$")
                ax.set_xscale("log", base=2)
                logarithmic(ax)
        for ax in axes[-1]:
            ax.set_xlabel(r"$\alpha_U / \alpha_L$")
        for ax in axes[:, 0]:
            ax.set_ylabel("best ridge")
        letter(axes.ravel())
        entries = [handle(label, color, marker) for _, label, color, marker in ridges]
        legend_right(figure, [*entries, handle("bound", GREY, "", DOTTED)])
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    optima = data["optima"]
    largest = optima.sel(rho=0.5).isel(alpha_u=-1)
    share = min(float(largest[name].min()) for name in ("lambda_l", "lambda_u")) / LARGEST
    first = [
        float(
            (optima.alpha_u / ALPHA_L)
            .where(optima["lambda_u"].sel(rho=0.5, delta=delta) > (1 - AT_BOUND.size) * LARGEST)
            .min()
        )
        for delta in optima.delta.values
    ]
    return [
        Claim(
            quote=(
                "When $\\rho=1/2$, both $\\lambda_*^{(0)}$ and $\\lambda_*^{(1)}$ show diverging"
                " tendency as expected."
            ),
            test=(
                "At rho = 0.5 and the largest alpha_U both ridges are at the bound of the search,"
                f" {LARGEST:g} (more than {1 - AT_BOUND.size:g} of it), for both Delta."
            ),
            ruling=decided(below("largest distance from the bound", 1 - share, AT_BOUND)),
            found=(
                "Smallest share of the bound at alpha_U / alpha_L ="
                f" {float(optima.alpha_u[-1] / ALPHA_L):g}: {share:.4g}. lambda_U* is at the bound"
                f" from alpha_U / alpha_L = {listed(optima.delta, np.array(first))} on (by Delta)."
            ),
            numbers=numbers(share=share),
        )
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    largest = data["optima"].isel(alpha_u=-1)
    skewed = {
        rho: float(max(largest[name].sel(rho=rho).max() for name in ("lambda_l", "lambda_u")))
        for rho in RHOS
        if rho < 0.5
    }
    return [
        Finding(
            says=(
                "With imbalanced classes the ridges stay below the bound (at the largest alpha_U)."
            ),
            ruling=decided(
                above(
                    "smallest distance from the bound",
                    1 - max(skewed.values()) / LARGEST,
                    AT_BOUND,
                )
            ),
            found=(
                "Larger of the two ridges and of both Delta by rho: "
                f"{listed(list(skewed), np.array(list(skewed.values())))}."
            ),
            numbers=numbers(**{f"ridge_{rho:g}": value for rho, value in skewed.items()}),
        )
    ]


def caption(data: Data) -> str:
    return (
        r"Ridges that minimise the error after one step of self-training, in $(0, 10^4]^2$ (dotted:"
        r" the bound), without "
        r"selection. Neighbours in different valleys of the error are not joined."
    )


FIGURE = Figure(
    "single-shot-ridge",
    "Best ridges of a single step",
    Place("Appendix H", 14, "fig: optimal lambda alphaU dependence single shot"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=r"$T = 1$, ridges in $(0, 10^4]$, $\rho$ = 0.5, 0.495, 0.4, $\Delta$ = 1, 0.5625.",
    chosen=rf"$\alpha_L = {ALPHA_L:g}$, the range of $\alpha_U$.",
)
