r"""With selection of pseudo-labels ($\Gamma$ tuned) against without ($\Gamma = 0$)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from ...sweeps import Grid, Task
from ..computations.chains import CHAIN
from ..figure import Claim, Data, Figure, Finding, Place, fixed
from ..judge import above_bayes, listed, numbers
from ..ruling import Bar, above, at_full_size, below, decided, everywhere, positive
from ..setting import ALPHA_L, ALPHA_U, DELTA, RHOS, TUNED, cases, longest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

FEW = 4
"""Runs of at most this many steps are short."""

MUCH = Bar(0.05, "a twentieth of the error is visible in the figure")
MINOR = Bar(0.01, "a hundredth is the width of a line in the figure")
NEVER_WORSE = Bar(1e-6, "the accuracy of a search")


def tasks(quick: bool) -> Mapping[str, Task]:
    amounts = {
        "alpha_l": (0.25, 0.5, 1.0),
        "alpha_u": (2.0, 8.0),
        "selection": (False, True),
    }
    setting = {"rho": 0.5, "delta": DELTA, "heuristics": False, "longest": longest(quick)}
    return {
        "cases": cases(quick, selection=(False, True)),
        "balanced": Task(CHAIN, Grid(amounts, setting)),
    }


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DASHED,
        canvas,
        each,
        handle,
        legend_right,
        lengths_axis,
        letter,
        rho_colors,
        rho_legend,
        series,
    )
    from ...plots.style import GREY, PURPLE, SKY, YELLOW, styled

    every, balanced = data["cases"].isel(heuristics=0), data["balanced"]
    colors = dict(zip(balanced.alpha_l.values.tolist(), cycle((SKY, YELLOW, PURPLE)), strict=False))
    shares = rho_colors(every.rho.values)
    deltas, amounts = every.delta.values.tolist(), balanced.alpha_u.values.tolist()
    columns = max(len(deltas), len(amounts))
    with styled():
        figure, axes = canvas(2, columns + 1, 2.9 * columns + 5.0, 5.8)
        for ax, delta in zip(axes[0], deltas, strict=False):
            for case in each(every.sel(delta=delta), ("rho", "selection")):
                color = shares[float(case.rho)]
                series(ax, case.T, case["error"], color, "o", bool(case.selection))
            ax.set_title(rf"error, $\Delta={delta:g}$")
            ax.set_ylabel(r"$\epsilon_g^{(T)}$")
        for delta, marker in zip(deltas, cycle("os"), strict=False):
            for case in each(every.sel(delta=delta), ("rho",)):
                series(axes[0, -1], case.T, _ratio(case), shares[float(case.rho)], marker)
        rho = fixed(balanced, "rho")
        for ax, alpha_u in zip(axes[1], amounts, strict=False):
            for case in each(balanced.sel(alpha_u=alpha_u), ("alpha_l", "selection")):
                color = colors[float(case.alpha_l)]
                series(ax, case.T, case["error"], color, "o", bool(case.selection))
            ax.set_title(rf"error, $\rho={rho:g}$, $\alpha_U={alpha_u:g}$")
            ax.set_ylabel(r"$\epsilon_g^{(T)}$")
        for alpha_u, marker in zip(amounts, cycle("^D"), strict=False):
            for case in each(balanced.sel(alpha_u=alpha_u), ("alpha_l",)):
                series(axes[1, -1], case.T, _ratio(case), colors[float(case.alpha_l)], marker)
        for ax in axes[:, -1]:
            ax.set_title("with over without")
            ax.set_ylabel(r"$\epsilon_g^{(T)}(\Gamma^*)\,/\,\epsilon_g^{(T)}(0)$")
        for ax in (*axes[0, len(deltas) : -1], *axes[1, len(amounts) : -1]):
            ax.remove()
        lengths_axis(figure.axes, every.T.values.tolist(), "steps $T$")
        letter(figure.axes)
        legend_right(
            figure,
            [
                *rho_legend(every.rho.values),
                *(handle(rf"$\alpha_L={a:g}$", color, "o") for a, color in colors.items()),
                handle(r"$\Gamma$ tuned", GREY, "o"),
                handle(r"$\Gamma = 0$", GREY, "o", DASHED, filled=False),
                *(
                    handle(rf"$\Delta={delta:g}$", GREY, marker, "none")
                    for delta, marker in zip(deltas, cycle("os"), strict=False)
                ),
                *(
                    handle(rf"$\alpha_U={alpha_u:g}$", GREY, marker, "none")
                    for alpha_u, marker in zip(amounts, cycle("^D"), strict=False)
                ),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    every, balanced = _ratio(data["cases"].isel(heuristics=0)), _ratio(data["balanced"])
    few = 1 - every.where(every["T"] <= FEW, drop=True).min("T")
    rhos = every.rho.values
    by_rho = few.max("delta").values
    at_half, at_most = float(by_rho[rhos == 0.5][0]), float(by_rho[rhos < 0.495].max())
    short = 1 - balanced.where(balanced["T"] <= FEW, drop=True).min("T")
    poor, rich = short.isel(alpha_l=0), short.isel(alpha_l=-1)
    large, small = short.isel(alpha_u=-1), short.isel(alpha_u=0)
    end = float(max((1 - every.sel(rho=0.5).isel(T=-1)).max(), (1 - balanced.isel(T=-1)).max()))
    return [
        *(_improved(few.sel(rho=rho), full) for rho in rhos),
        Claim(
            quote="This tendency is evident especially when labels are balanced ($\\rho=1/2$).",
            test=(
                f"The largest reduction for T <= {FEW} is larger at rho = 0.5 than at 0.4 and 0.2."
            ),
            ruling=at_full_size(full, positive("difference", at_half - at_most)),
            found=f"{at_half:.2%} at rho = 0.5, {at_most:.2%} at most at rho = 0.4 and 0.2.",
            numbers=numbers(balanced=at_half, skewed=at_most),
        ),
        Claim(
            quote=(
                "PLS is effective especially when the initial classifier is poor ($\\alpha_L$ is"
                " small)"
            ),
            test=(
                f"With balanced classes the largest reduction for T <= {FEW} is larger at alpha_L ="
                f" {float(poor.alpha_l):g} than at {float(rich.alpha_l):g}, for both alpha_U."
            ),
            ruling=decided(positive("smallest difference", (poor - rich.values).min())),
            found=(
                f"By alpha_U: {listed(short.alpha_u, poor.values, '{:.2%}')} against "
                f"{listed(short.alpha_u, rich.values, '{:.2%}')}."
            ),
            numbers=numbers(smallest_difference=(poor - rich.values).min()),
        ),
        Claim(
            quote=(
                "and the size of the unlabeled data used at each iteration is large ($\\alpha_U$ is"
                " large)"
            ),
            test=(
                f"With balanced classes the largest reduction for T <= {FEW} is larger at alpha_U ="
                f" {float(large.alpha_u):g} than at {float(small.alpha_u):g}, for every alpha_L."
            ),
            ruling=decided(positive("smallest difference", (large - small.values).min())),
            found=(
                f"By alpha_L: {listed(short.alpha_l, large.values, '{:.2%}')} against "
                f"{listed(short.alpha_l, small.values, '{:.2%}')}."
            ),
            numbers=numbers(smallest_difference=(large - small.values).min()),
        ),
        Claim(
            quote="PLS did not make significant difference when $T\\gg1$ and $\\rho_U=1/2$",
            test=(
                f"At rho = 0.5 selection lowers the error by less than {MINOR.size:.0%} at the"
                " largest T, in every case."
            ),
            ruling=at_full_size(full, below("largest reduction", end, MINOR)),
            found=f"Largest reduction at T = {int(every['T'][-1])}: {end:.3%}.",
            numbers=numbers(gain=end, T=every["T"][-1]),
        ),
    ]


def _improved(few: xr.DataArray, full: bool) -> Claim:
    """Whether selection improves short runs at one rho, from its best reduction for each Delta."""
    rho = float(few.rho)
    return Claim(
        case=f"rho = {rho:g}",
        quote=(
            "When the total number of iterations $T$ is small, ST's performance is largely improved"
        ),
        test=(
            f"Selection lowers the error by {MUCH.size:.0%} or more at some T <= {FEW}, for the"
            " better of the Delta."
        ),
        ruling=at_full_size(full, above("largest reduction", few.max(), MUCH)),
        found=(
            f"Largest reduction for T <= {FEW} by Delta: {listed(few.delta, few.values, '{:.2%}')}."
        ),
        numbers=numbers(gain=few.max()),
    )


def findings(data: Data, full: bool) -> list[Finding]:
    every, balanced = _ratio(data["cases"].isel(heuristics=0)), _ratio(data["balanced"])
    gain = 1 - every.isel(T=-1)
    largest = np.max([every.max(), balanced.max()])
    return [
        Finding(
            says=(
                "With imbalanced classes selection goes on helping: at rho = 0.4 by more than 1 %"
                " at the largest T."
            ),
            ruling=at_full_size(
                full, above("largest reduction at rho = 0.4", gain.sel(rho=0.4).max(), MINOR)
            ),
            found=(
                f"Largest reduction at T = {int(every['T'][-1])} by rho: "
                f"{listed(every.rho, gain.max('delta').values, '{:.3%}')}."
            ),
            numbers=numbers(**{f"gain_{rho:g}": float(gain.sel(rho=rho).max()) for rho in RHOS}),
        ),
        Finding(
            says="A check of the tuning: a tuned threshold is never worse than none (to 1e-6).",
            ruling=everywhere(full, below("largest loss", largest - 1, NEVER_WORSE)),
            found=f"Largest ratio: {largest:.8f}.",
            numbers=numbers(largest_ratio=largest),
        ),
        above_bayes(data["balanced"]["error"], data["balanced"]["bayes"], full),
    ]


def caption(data: Data) -> str:
    return (
        r"Generalisation error with selection of pseudo-labels (filled, $\Gamma$ tuned) and without"
        r" (white, $\Gamma = 0$), and their "
        rf"ratio. Above: the cases of `relative-error`, $(\alpha_L, \alpha_U) = ({ALPHA_L:g},"
        rf" {ALPHA_U:g})$. Below: balanced "
        rf"classes, $\Delta = {DELTA:g}$, several $(\alpha_L, \alpha_U)$."
    )


def _ratio(chains: xr.Dataset) -> xr.DataArray:
    error = chains["error"]
    return error.sel(selection=True, drop=True) / error.sel(selection=False, drop=True)


FIGURE = Figure(
    "selection",
    "Selection of pseudo-labels: with against without",
    Place("Section 4.1", 5, "fig: vs PLS"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"all cases above, balanced cases below; {TUNED}.",
    chosen=(
        rf"$(\alpha_L, \alpha_U)$ of every panel; $\Delta = {DELTA:g}$ below; $T$ up to 1024;"
        r" $\Gamma \in [0, 3]$."
    ),
)
