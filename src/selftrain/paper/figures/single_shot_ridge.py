r"""Best ridges of one step of self-training, allowed up to $10^4$: they run away when classes are balanced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sweep import Grid, Task
from ..computations.single_shot import SINGLE_SHOT
from ..figure import Claim, Data, Figure
from ..judge import listed, numbers
from ..setting import ALPHA_L, DELTAS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

LARGEST = 1e4
RHOS = (0.5, 0.495, 0.4)
RATIOS = tuple(float(2.0**k) for k in np.arange(-2, 7.5, 0.5))
RATIOS_QUICK = tuple(float(2.0**k) for k in range(-2, 8, 2))


def tasks(quick: bool) -> Mapping[str, Task]:
    axes: dict[str, Any] = {
        "rho": RHOS,
        "delta": DELTAS,
        "alpha_u": tuple(ALPHA_L * ratio for ratio in (RATIOS_QUICK if quick else RATIOS)),
    }
    return {"optima": Task(SINGLE_SHOT, Grid(axes, {"alpha_l": ALPHA_L, "largest": LARGEST}))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import DOTTED, canvas, series
    from ...plots.style import BLUE, GREY, ORANGE, styled

    optima = data["optima"]
    ratio = optima.alpha_u / ALPHA_L
    with styled():
        figure, axes = canvas(2, 3, 8.8, 5.0, sharex=True, sharey=True)
        for row, delta in zip(axes, optima.delta.values, strict=True):
            for ax, rho in zip(row, optima.rho.values, strict=True):
                one = optima.sel(rho=rho, delta=delta)
                series(ax, ratio, one["lambda_l"], BLUE, "o", label=r"$\lambda_L^*$")
                series(ax, ratio, one["lambda_u"], ORANGE, "s", label=r"$\lambda_U^*$")
                ax.axhline(LARGEST, color=GREY, linestyle=DOTTED, linewidth=0.9)
                ax.set_title(rf"$(\rho, \Delta) = ({rho:g}, {delta:g})$")
                ax.set_xscale("log", base=2)
                ax.set_yscale("log")
        for ax in axes[-1]:
            ax.set_xlabel(r"$\alpha_U / \alpha_L$")
        axes[0, 0].legend()
    return figure


def claims(data: Data) -> list[Claim]:
    optima = data["optima"]
    largest = optima.isel(alpha_u=-1)
    at_bound = {
        rho: float(
            min(largest[name].sel(rho=rho).min() for name in ("lambda_l", "lambda_u")) / LARGEST
        )
        for rho in RHOS
    }
    ratio = float(optima.alpha_u[-1] / ALPHA_L)
    skewed = {
        rho: float(max(largest[name].sel(rho=rho).max() for name in ("lambda_l", "lambda_u")))
        for rho in RHOS
        if rho < 0.5
    }
    first = [
        float(
            (optima.alpha_u / ALPHA_L)
            .where(optima["lambda_u"].sel(rho=0.5, delta=delta) > 0.99 * LARGEST)
            .min()
        )
        for delta in optima.delta.values
    ]
    return [
        Claim(
            "Balanced classes and much unlabelled data: both ridges run to their bound (more than 0.99 "
            "of it at the largest alpha_U, both Delta).",
            at_bound[0.5] > 0.99,
            f"Smallest share of the bound at alpha_U / alpha_L = {ratio:g} by rho: "
            f"{listed(list(at_bound), np.array(list(at_bound.values())))}. lambda_U is at the bound from "
            f"alpha_U / alpha_L = {listed(optima.delta, np.array(first))} on (by Delta).",
            numbers(**{f"share_{rho:g}": share for rho, share in at_bound.items()}),
        ),
        Claim(
            "Not of the paper: with imbalanced classes they stay below it (at the largest alpha_U).",
            all(value < 0.99 * LARGEST for value in skewed.values()),
            f"Larger of the two ridges and of both Delta by rho: "
            f"{listed(list(skewed), np.array(list(skewed.values())))}.",
            numbers(**{f"ridge_{rho:g}": value for rho, value in skewed.items()}),
        ),
    ]


def caption(data: Data) -> str:
    return (
        r"Ridges that minimise the error after one step of self-training, in $(0, 10^4]^2$ (dotted: the bound), "
        rf"without selection, $\alpha_L = {ALPHA_L:g}$ (chosen)."
    )


FIGURE = Figure(
    "single-shot-ridge",
    "Best ridges of a single step",
    "Appendix, `fig: optimal lambda alphaU dependence single shot`",
    tasks,
    draw,
    claims,
    caption,
)
