r"""$m/\sqrt q$ after the last step: how well the classification plane points to the cluster
centre.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ...sweeps import Grid, Task
from ..computations.chains import CHAIN
from ..figure import Claim, Data, Figure, Finding, Place, fixed
from ..judge import last_slope, listed, numbers
from ..ruling import Bar, at_full_size, below, everywhere, positive, somewhere
from ..setting import ALPHA_L, ALPHA_U, DELTA, DELTAS, RHOS, TUNED, longest

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SMALL = "small-batches"
"""The panel of our own choice: the paper calls batches that small catastrophic."""

PANELS: dict[str, dict[str, Any]] = {
    "usual": {},
    "wide-clusters": {"delta": DELTAS[0]},
    "few-labels": {"alpha_l": 0.25},
    "large-batches": {"alpha_u": 8.0},
    SMALL: {"alpha_u": 0.25, "rhos": RHOS[:1]},
}
r"""What each panel has in place of the usual setting. Below one point per feature only balanced
runs have a direction in the end.
"""

COLUMNS = 3
"""Panels next to each other."""

ROUNDING = Bar(1e-9, "searches end that far from an optimum")
STILL = Bar(1e-6, "a thousandth of what a picture shows")


def tasks(quick: bool) -> Mapping[str, Task]:
    made = {}
    for name in ("usual", SMALL) if quick else tuple(PANELS):
        setting = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA, **PANELS[name]}
        axes: dict[str, Any] = {"rho": setting.pop("rhos", RHOS), "selection": (False, True)}
        setting |= {"heuristics": False, "longest": longest(quick)}
        made[name] = Task(CHAIN, Grid(axes, setting))
    return made


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
    from ...plots.style import GREY, logarithmic, styled

    shares = list(dict.fromkeys(rho for one in data.values() for rho in one.rho.values.tolist()))
    colors = rho_colors(shares)
    columns = min(COLUMNS, len(data))
    rows = math.ceil(len(data) / columns)
    with styled():
        figure, axes = canvas(2 * rows, columns, 2.8 * columns + 1.6, 4.6 * rows + 0.4, sharex=True)
        places = [
            (axes[2 * row, at], axes[2 * row + 1, at])
            for row in range(rows)
            for at in range(columns)
        ]
        for upper, lower in places[1:]:
            upper.sharey(axes[0, 0])
            lower.sharey(axes[1, 0])
        for (upper, lower), chains in zip(places, data.values(), strict=False):
            for case in each(chains, ("rho", "selection")):
                color, filled = colors[float(case.rho)], bool(case.selection)
                series(upper, case.T, 1 - case["one_minus_cosine"], color, "o", filled)
                series(lower, case.T, case["one_minus_cosine"], color, "o", filled)
            upper.set_title(_setting(chains))
            logarithmic(lower)
            lengths_axis((upper, lower), chains.T.values.tolist(), "steps $T$")
            upper.set_xlabel("")
            lower.tick_params(labelbottom=True)
        for pair in places[len(data) :]:
            for ax in pair:
                ax.remove()
        for row in range(rows):
            axes[2 * row, 0].set_ylabel(r"$m^{(T)}/\sqrt{q^{(T)}}$")
            axes[2 * row + 1, 0].set_ylabel(r"$1 - m^{(T)}/\sqrt{q^{(T)}}$")
        letter(figure.axes)
        legend_right(
            figure,
            [
                *rho_legend(shares),
                handle("with selection", GREY, "o"),
                handle("without", GREY, "o", DASHED, filled=False),
            ],
        )
    return figure


def _setting(chains: xr.Dataset) -> str:
    """What is the same in a panel."""
    alpha_l, alpha_u, delta = (fixed(chains, name) for name in ("alpha_l", "alpha_u", "delta"))
    return rf"$\alpha_L={alpha_l:g}$, $\alpha_U={alpha_u:g}$, $\Delta={delta:g}$"


def claims(data: Data, full: bool) -> list[Claim]:
    return [
        *(_monotone(one, full) for part, one in data.items() if part != SMALL),
        _slow(data, full),
    ]


def _falls(chains: xr.Dataset) -> xr.DataArray:
    """By which share of 1 - cosine the cosine falls at each doubling of T; negative where it
    grows.
    """
    off = chains["one_minus_cosine"]
    return off.diff("T") / off.isel(T=slice(0, -1)).values


def _monotone(chains: xr.Dataset, full: bool) -> Claim:
    off, falls = chains["one_minus_cosine"], _falls(chains)
    count = int((falls > ROUNDING.size).sum())
    cosine = 1 - off.sel(rho=0.5, selection=False)
    alpha_l, alpha_u, delta = (fixed(chains, name) for name in ("alpha_l", "alpha_u", "delta"))
    return Claim(
        case=f"alpha_L = {alpha_l:g}, alpha_U = {alpha_u:g}, Delta = {delta:g}",
        quote=(
            "The cosine similarity monotonically increases as the number of the total iteration"
            " grows."
        ),
        test=(
            "The cosine grows at every doubling of T, for every rho drawn, with and without"
            " selection."
        ),
        ruling=everywhere(full, below("largest fall", falls.max(), ROUNDING)),
        found=(
            f"It falls at {count} of {falls.size} doublings. At rho = 0.5, without selection, it"
            f" goes from {float(cosine[0]):.4g} at T = {int(chains.T[0])} to"
            f" {float(cosine[-1]):.4g} at T = {int(chains.T[-1])}."
        ),
        numbers=numbers(falls=count, doublings=falls.size, first=cosine[0], last=cosine[-1]),
    )


def _slow(data: Data, full: bool) -> Claim:
    parts = [one for one in data.values() if one.rho.size > 1]
    slopes = {
        rho: float(
            np.mean(
                [
                    last_slope(one.T, one["one_minus_cosine"].sel(rho=rho, selection=chosen).values)
                    for one in parts
                    for chosen in (False, True)
                ]
            )
        )
        for rho in RHOS
    }
    return Claim(
        quote="However, the growth is slow in label-biased cases.",
        test=(
            "The power of T with which 1 - cosine falls over the last three lengths, on average"
            " over the panels with alpha_U > 1, is weaker at rho = 0.4 and 0.2 than at 0.5."
        ),
        ruling=at_full_size(
            full, positive("difference of the powers", min(slopes[0.4], slopes[0.2]) - slopes[0.5])
        ),
        found=f"Powers by rho: {listed(list(slopes), np.array(list(slopes.values())))}.",
        numbers=numbers(**{f"power_{rho:g}": slope for rho, slope in slopes.items()}),
    )


def findings(data: Data, full: bool) -> list[Finding]:
    falls = _falls(data[SMALL])
    count = int((falls > ROUNDING.size).sum())
    small = data[SMALL].sel(rho=0.5, selection=False)
    last, cosine = small.isel(T=-1), 1 - small["one_minus_cosine"]
    return [
        Finding(
            says=(
                "Outside the paper's regime the cosine need not grow: with a quarter of a point per"
                " feature and step (batches that it calls catastrophic) the cosine falls at some"
                " doubling of T."
            ),
            ruling=somewhere(full, positive("largest fall", falls.max())),
            found=(
                f"It falls at {count} of {falls.size} doublings; without selection it goes from"
                f" {float(cosine[0]):.4g} at T = {int(small.T[0])} to {float(cosine[-1]):.4g} at"
                f" T = {int(small.T[-1])}."
            ),
            numbers=numbers(falls=count, first=cosine[0], last=cosine[-1]),
        ),
        Finding(
            says=(
                "With a quarter of a point per feature and step the weights fade, and their"
                " direction with them, to a limit that no number of steps improves (the cosine"
                " changes by less than 1e-6 over the last doubling)."
            ),
            ruling=at_full_size(
                full, below("change over the last doubling", abs(cosine.diff("T")[-1]), STILL)
            ),
            found=(
                f"Cosine {1 - float(last['one_minus_cosine']):.6f} at T = {int(small.T[-1])}, error"
                f" {float(last['error']):.6f}."
            ),
            numbers=numbers(cosine=1 - last["one_minus_cosine"], error=last["error"]),
        ),
    ]


def caption(data: Data) -> str:
    return (
        r"Cosine between the weights after $T$ tuned steps and the cluster direction, raw (above)"
        r" and its deviation from one "
        r"(below), for several amounts of data and sizes of the clusters. Filled markers, solid"
        r" lines: $\Gamma$ tuned; white markers, dashed "
        r"lines: $\Gamma = 0$. With less than a point per feature and step imbalanced runs end in"
        r" one class, so only balanced ones are drawn."
    )


FIGURE = Figure(
    "cosine",
    "Cosine with the cluster direction against the number of steps",
    Place("Section 4.1", 4, "fig: cosine similarity"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=(
        rf"several $(\rho, \alpha_L, \alpha_U)$, of which the caption gives no values; {TUNED}."
    ),
    chosen=(
        r"these values ($\rho$ as in `relative-error`); $\Delta ="
        rf" {DELTA:g}$ and ${DELTAS[0]:g}$; $T$ up to 1024; $\alpha_U = 0.25$ lies in the regime"
        r" that the paper calls catastrophic, and is not among its claims."
    ),
)
