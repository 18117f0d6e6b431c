r"""The cosine $m/\sqrt q$ of weights and cluster direction after the last step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Task
from ..entry import Claims, Data, Drawn, Tasks, fixed
from ..judge import last_slope, listed
from ..ruling import Bar, Judged, at_full_size, below, everywhere, positive, somewhere
from ..setting import RHOS, WIDE, chains

if TYPE_CHECKING:
    import xarray as xr

SMALL = "small-batches"
"""A panel that is not in the paper, which calls such small batches catastrophic."""

SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "wide-clusters": {"delta": WIDE},
    "few-labels": {"alpha_l": 0.25},
    "large-batches": {"alpha_u": 8.0},
    SMALL: {"alpha_u": 0.25},
}
"""For each panel, the parameters that differ from the usual setting."""

PANELS = {SMALL: "the panel of small batches, which needs balanced classes"}

COLUMNS = 3
"""Number of panels in a row."""

ROUNDING = Bar(1e-9, "searches end that far from an optimum")
STILL = Bar(1e-6, "a thousandth of what a picture shows")


def tasks(quick: bool) -> Tasks:
    def panel(name: str) -> Task:
        # with less than one sample per feature, only balanced runs have a direction in the end
        rhos = RHOS[:1] if name == SMALL else RHOS
        return chains(quick, {"rho": rhos, "selection": (False, True)}, **SETTINGS[name])

    return {name: panel(name) for name in (("usual", SMALL) if quick else SETTINGS)}


def draw(data: Data) -> Drawn:
    rhos = list(dict.fromkeys(rho for one in data.values() for rho in one.rho.values.tolist()))
    colors = pic.rho_colors(rhos)
    columns = min(COLUMNS, len(data))
    rows = math.ceil(len(data) / columns)
    size = (2.8 * columns + 1.6, 4.6 * rows + 0.4)
    figure, axes = pic.canvas(2 * rows, columns, *size, sharex=True)
    places = [axes[2 * row : 2 * row + 2, at] for row in range(rows) for at in range(columns)]
    for upper, lower in places[1:]:
        upper.sharey(axes[0, 0])
        lower.sharey(axes[1, 0])
    for (upper, lower), one in zip(places, data.values(), strict=False):
        for case in pic.each(one, ("rho", "selection")):
            color, filled = colors[float(case.rho)], bool(case.selection)
            pic.series(upper, case.T, 1 - case["one_minus_cosine"], color, "o", filled)
            pic.series(lower, case.T, case["one_minus_cosine"], color, "o", filled)
        upper.set_title(r"$\alpha_L={:g}$, $\alpha_U={:g}$, $\Delta={:g}$".format(*_amounts(one)))
        style.logarithmic(lower)
        pic.lengths_axis((upper, lower), one.T.values.tolist(), "steps $T$")
        upper.set_xlabel("")
        lower.tick_params(labelbottom=True)
    for pair in places[len(data) :]:
        for ax in pair:
            ax.remove()
    pic.label_rows(axes, *(r"$m^{(T)}/\sqrt{q^{(T)}}$", r"$1 - m^{(T)}/\sqrt{q^{(T)}}$") * rows)
    return figure, [*pic.rho_legend(rhos), *pic.switch_legend("with selection", "without")]


def _amounts(one: xr.Dataset) -> list[float]:
    """Return the parameters that are fixed in a panel."""
    return [fixed(one, name) for name in ("alpha_l", "alpha_u", "delta")]


def judge(data: Data) -> Claims:
    falls = _falls(data[SMALL])
    count = int((falls > ROUNDING.size).sum())
    small = data[SMALL].sel(rho=0.5, selection=False)
    last, cosine = small.isel(T=-1), 1 - small["one_minus_cosine"]
    yield from (_monotone(one) for part, one in data.items() if part != SMALL)
    yield _slow(data)
    yield somewhere(
        SMALL,
        f"It falls at {count} of {falls.size} doublings; without selection it goes from"
        f" {float(cosine[0]):.4g} at T = {int(small.T[0])} to {float(cosine[-1]):.4g} at"
        f" T = {int(small.T[-1])}.",
        positive("largest fall", falls.max()),
    )
    yield at_full_size(
        "fading",
        f"Cosine {1 - float(last['one_minus_cosine']):.6f} at T = {int(small.T[-1])}, error"
        f" {float(last['error']):.6f}.",
        below("change over the last doubling", abs(cosine.diff("T")[-1]), STILL),
    )


def _falls(one: xr.Dataset) -> xr.DataArray:
    """Return the decrease of the cosine at each doubling of T, as a fraction of 1 - cosine;
    negative if the cosine grows.
    """
    off = one["one_minus_cosine"]
    return off.diff("T") / off.isel(T=slice(0, -1)).values


def _monotone(one: xr.Dataset) -> Judged:
    falls = _falls(one)
    count = int((falls > ROUNDING.size).sum())
    cosine = 1 - one["one_minus_cosine"].sel(rho=0.5, selection=False)
    return everywhere(
        "monotone",
        f"It falls at {count} of {falls.size} doublings. At rho = 0.5, without selection, it"
        f" goes from {float(cosine[0]):.4g} at T = {int(one.T[0])} to"
        f" {float(cosine[-1]):.4g} at T = {int(one.T[-1])}.",
        below("largest fall", falls.max(), ROUNDING),
        case="alpha_L = {:g}, alpha_U = {:g}, Delta = {:g}".format(*_amounts(one)),
    )


def _slow(data: Data) -> Judged:
    def slope(rho: float) -> float:
        cases = [
            one.sel(rho=rho, selection=chosen)
            for one in data.values()
            if one.rho.size > 1
            for chosen in (False, True)
        ]
        return float(np.mean([last_slope(one.T, one["one_minus_cosine"].values) for one in cases]))

    slopes = {rho: slope(rho) for rho in RHOS}
    return at_full_size(
        "slow",
        f"Powers by rho: {listed(slopes)}.",
        positive("difference of the powers", min(slopes[0.4], slopes[0.2]) - slopes[0.5]),
    )
