r"""With selection of pseudo-labels ($\Gamma$ tuned) against without ($\Gamma = 0$)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Grid, Task
from ..computations.chains import CHAIN
from ..figure import Claim, Data, Figure
from ..judge import above_bayes, in_long_runs, listed, numbers, worst
from ..setting import ALPHA_L, ALPHA_U, DELTA, RIDGES, cases, longest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

FEW = 4
"""Runs of at most this many steps are short."""


def tasks(quick: bool) -> Mapping[str, Task]:
    amounts = {
        "alpha_l": (0.25, 1.0) if quick else (0.25, 0.5, 1.0),
        "alpha_u": (2.0, 8.0),
        "selection": (False, True),
    }
    fixed = {"rho": 0.5, "delta": DELTA, "heuristics": False, "longest": longest(quick)}
    return {
        "cases": cases(quick, selection=(False, True)),
        "balanced": Task(CHAIN, Grid(amounts, fixed)),
    }


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DASHED,
        DELTA_MARKERS,
        DOTTED,
        RHO_COLORS,
        SERIES,
        canvas,
        cases_legend,
        each,
        handle,
        lengths_axis,
        limit,
        series,
    )
    from ...plots.style import GREY, styled

    every, balanced = data["cases"].isel(heuristics=0), data["balanced"]
    markers = dict(zip(balanced.alpha_u.values.tolist(), "^D", strict=False))
    colors = dict(zip(balanced.alpha_l.values.tolist(), SERIES[1:], strict=False))
    with styled():
        figure, axes = canvas(2, 2, 9.6, 6.6)
        rows = (
            (axes[0], every, ("rho", "delta"), RHO_COLORS, DELTA_MARKERS),
            (axes[1], balanced, ("alpha_l", "alpha_u"), colors, markers),
        )
        for (left, right), chains, names, palette, shapes in rows:
            for case in each(chains, names):
                color, marker = palette[float(case[names[0]])], shapes[float(case[names[1]])]
                for one in each(case, ("selection",)):
                    series(left, one.T, one["error"], color, marker, bool(one.selection))
                limit(left, case.T, case["bayes"].isel(selection=0), color)
                series(right, case.T, _ratio(case), color, marker)
            left.set_ylabel(r"$\epsilon_g^{(T)}$")
            right.set_ylabel(r"$\epsilon_g^{(T)}(\Gamma^*)\;/\;\epsilon_g^{(T)}(\Gamma = 0)$")
            lengths_axis((left, right), chains.T.values.tolist())
        axes[0, 0].set_title("all cases: error")
        axes[0, 1].set_title("all cases: with over without selection")
        axes[1, 0].set_title(r"balanced cases ($\rho = 1/2$): error")
        axes[1, 1].set_title("balanced cases: with over without selection")
        axes[0, 1].legend(
            handles=cases_legend(every.rho.values, every.delta.values), loc="lower right", ncols=2
        )
        axes[1, 1].legend(
            handles=[
                *(handle(rf"$\alpha_L={a:g}$", color) for a, color in colors.items()),
                *(handle(rf"$\alpha_U={a:g}$", GREY, m, "none") for a, m in markers.items()),
            ],
            loc="lower right",
        )
        axes[0, 0].legend(
            handles=[
                handle(r"$\Gamma$ tuned", GREY, "o"),
                handle(r"$\Gamma = 0$", GREY, "o", DASHED, filled=False),
                handle("Bayes limit", GREY, "", DOTTED),
            ],
            loc="upper right",
        )
    return figure


def claims(data: Data) -> list[Claim]:
    every, balanced = _ratio(data["cases"].isel(heuristics=0)), _ratio(data["balanced"])
    few = every.where(every["T"] <= FEW, drop=True)
    gain_few, gain_end = 1 - few.min("T"), 1 - every.isel(T=-1)
    most, where = worst(gain_end)
    rhos = every.rho.values
    by_rho = gain_few.max("delta").values
    short = 1 - balanced.where(balanced["T"] <= FEW, drop=True).min("T")
    poor, rich = short.isel(alpha_l=0), short.isel(alpha_l=-1)
    large, small = short.isel(alpha_u=-1), short.isel(alpha_u=0)
    longest_run = int(every["T"][-1])
    return [
        Claim(
            f"Selection helps much when there are few steps (for T <= {FEW} it lowers the error by 5 % "
            "or more in a balanced case).",
            bool(by_rho[rhos == 0.5][0] > 0.05),
            f"Largest reduction for T <= {FEW} by rho: {listed(rhos, by_rho, '{:.2%}')}.",
            numbers(**{f"gain_{rho:g}": gain for rho, gain in zip(rhos, by_rho, strict=True)}),
        ),
        Claim(
            "It helps most when labels are balanced (the reduction at few steps is largest for "
            "rho = 0.5).",
            bool(by_rho[rhos == 0.5][0] >= by_rho.max()),
            f"{by_rho[rhos == 0.5][0]:.2%} at rho = 0.5, {by_rho[rhos < 0.495].max():.2%} at most "
            "for rho <= 0.4.",
            numbers(balanced=by_rho[rhos == 0.5][0], skewed=by_rho[rhos < 0.495].max()),
        ),
        Claim(
            "It ceases to matter when there are many steps (less than 1 % at the largest T).",
            in_long_runs(most < 0.01, longest_run),
            f"Largest reduction at T = {longest_run}: {most:.3%} ({where}).",
            numbers(gain=most, T=longest_run),
        ),
        Claim(
            "Among balanced cases it helps most when the start is poor (small alpha_L).",
            bool((poor > rich).all()),
            f"Reduction at alpha_L = {float(poor.alpha_l):g} against {float(rich.alpha_l):g}, by "
            f"alpha_U: {listed(short.alpha_u, poor.values, '{:.2%}')} against "
            f"{listed(short.alpha_u, rich.values, '{:.2%}')}.",
            numbers(smallest_difference=(poor - rich.values).min()),
        ),
        Claim(
            "Among balanced cases it helps most when the batches are large (large alpha_U).",
            bool((large > small).all()),
            f"Reduction at alpha_U = {float(large.alpha_u):g} against {float(small.alpha_u):g}, by "
            f"alpha_L: {listed(short.alpha_l, large.values, '{:.2%}')} against "
            f"{listed(short.alpha_l, small.values, '{:.2%}')}.",
            numbers(smallest_difference=(large - small.values).min()),
        ),
        Claim(
            "Not of the paper, a check of the tuning: a tuned threshold is never worse than none "
            "(to 1e-6).",
            bool(max(every.max(), balanced.max()) < 1 + 1e-6),
            f"Largest ratio: {float(max(every.max(), balanced.max())):.8f}.",
            numbers(largest_ratio=np.max([every.max(), balanced.max()])),
        ),
        above_bayes(data["balanced"]["error"], data["balanced"]["bayes"]),
    ]


def caption(data: Data) -> str:
    return (
        r"Generalisation error with and without selection of pseudo-labels. Above: the cases of "
        rf"`relative-error`, $(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$. Below: balanced classes, "
        rf"$\Delta = {DELTA:g}$, several $(\alpha_L, \alpha_U)$ (chosen). Left: the errors, filled with "
        r"$\Gamma$ tuned, white with $\Gamma = 0$, dotted the Bayes limit; right: their ratio. "
        rf"{RIDGES}, $\Gamma \in [0, 3]$, tuned for every $T$."
    )


def _ratio(chains: xr.Dataset) -> xr.DataArray:
    error = chains["error"]
    return error.sel(selection=True, drop=True) / error.sel(selection=False, drop=True)


FIGURE = Figure(
    "selection",
    "Selection of pseudo-labels: with against without",
    "Section 4.1, `fig: vs PLS`",
    tasks,
    draw,
    claims,
    caption,
)
