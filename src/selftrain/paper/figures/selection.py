r"""With selection of pseudo-labels ($\Gamma$ tuned) against without ($\Gamma = 0$)."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ..entry import Claims, Data, Drawn, Tasks, fixed
from ..judge import above_bayes, listed
from ..ruling import Bar, Judged, above, at_full_size, below, decided, everywhere, positive
from ..setting import cases, chains

if TYPE_CHECKING:
    import xarray as xr

FEW = 4
"""Runs of at most this many steps are short."""

MUCH = Bar(0.05, "a twentieth of the error is visible in the figure")
MINOR = Bar(0.01, "a hundredth is the width of a line in the figure")
NEVER_WORSE = Bar(1e-6, "the accuracy of a search")


def tasks(quick: bool) -> Tasks:
    both = (False, True)
    amounts = {"alpha_l": (0.25, 0.5, 1.0), "alpha_u": (2.0, 8.0), "selection": both}
    return {"cases": cases(quick, selection=both), "balanced": chains(quick, amounts, rho=0.5)}


def draw(data: Data) -> Drawn:
    every, balanced = data["cases"].isel(heuristics=0), data["balanced"]
    deltas, amounts = every.delta.values.tolist(), balanced.alpha_u.values.tolist()
    shades = cycle((style.SKY, style.YELLOW, style.PURPLE))
    labels = dict(zip(balanced.alpha_l.values.tolist(), shades, strict=False))
    columns = max(len(deltas), len(amounts))
    figure, axes = pic.canvas(2, columns + 1, 2.9 * columns + 5.0, 5.8)
    titles = (
        [rf"$\Delta={delta:g}$" for delta in deltas],
        [rf"$\rho={fixed(balanced, 'rho'):g}$, $\alpha_U={amount:g}$" for amount in amounts],
    )
    for panels, one, (across, values), (name, colors), markers, words in zip(
        axes,
        (every, balanced),
        (("delta", deltas), ("alpha_u", amounts)),
        (("rho", pic.rho_colors(every.rho.values)), ("alpha_l", labels)),
        ("os", "^D"),
        titles,
        strict=True,
    ):
        for ax, value, marker, title in zip(panels, values, cycle(markers), words, strict=False):
            for case in pic.each(one.sel({across: value}), (name,)):
                color = colors[float(case[name])]
                for selection in (False, True):
                    error = case["error"].sel(selection=selection)
                    pic.series(ax, case.T, error, color, "o", selection)
                pic.series(panels[-1], case.T, _ratio(case), color, marker)
            ax.set_title(f"error, {title}")
            ax.set_ylabel(r"$\epsilon_g^{(T)}$")
        panels[-1].set_title("with over without")
        panels[-1].set_ylabel(r"$\epsilon_g^{(T)}(\Gamma^*)\,/\,\epsilon_g^{(T)}(0)$")
        for ax in panels[len(values) : -1]:
            ax.remove()
    pic.lengths_axis(figure.axes, every.T.values.tolist(), "steps $T$")
    marks = [
        pic.handle(rf"${symbol}={value:g}$", style.GREY, marker, "none")
        for symbol, values, markers in ((r"\Delta", deltas, "os"), (r"\alpha_U", amounts, "^D"))
        for value, marker in zip(values, cycle(markers), strict=False)
    ]
    return figure, [
        *pic.rho_legend(every.rho.values),
        *pic.value_legend(r"\alpha_L", labels),
        *pic.switch_legend(r"$\Gamma$ tuned", r"$\Gamma = 0$"),
        *marks,
    ]


def judge(data: Data) -> Claims:
    every, balanced = _ratio(data["cases"].isel(heuristics=0)), _ratio(data["balanced"])
    few, short = (1 - one.where(one["T"] <= FEW, drop=True).min("T") for one in (every, balanced))
    rhos, longest = every.rho.values, int(every["T"][-1])
    by_rho = few.max("delta").values
    at_half, at_most = float(by_rho[rhos == 0.5][0]), float(by_rho[rhos < 0.495].max())
    end = float(max((1 - every.sel(rho=0.5).isel(T=-1)).max(), (1 - balanced.isel(T=-1)).max()))
    gain = 1 - every.isel(T=-1)
    largest = np.max([every.max(), balanced.max()])
    for rho in rhos:
        short_runs = few.sel(rho=rho)
        yield at_full_size(
            "improved",
            f"Largest reduction for T <= {FEW} by Delta: {listed(short_runs, '{:.2%}')}.",
            above("largest reduction", short_runs.max(), MUCH),
            case=f"rho = {rho:g}",
        )
    yield at_full_size(
        "evident",
        f"{at_half:.2%} at rho = 0.5, {at_most:.2%} at most at rho = 0.4 and 0.2.",
        positive("difference", at_half - at_most),
    )
    yield _more("poor", "alpha_U", short.isel(alpha_l=0), short.isel(alpha_l=-1))
    yield _more("large", "alpha_L", short.isel(alpha_u=-1), short.isel(alpha_u=0))
    yield at_full_size(
        "long",
        f"Largest reduction at T = {longest}: {end:.3%}.",
        below("largest reduction", end, MINOR),
    )
    yield at_full_size(
        "imbalanced",
        f"Largest reduction at T = {longest} by rho: {listed(gain.max('delta'), '{:.3%}')}.",
        above("largest reduction at rho = 0.4", gain.sel(rho=0.4).max(), MINOR),
    )
    yield everywhere(
        "never-worse",
        f"Largest ratio: {largest:.8f}.",
        below("largest loss", largest - 1, NEVER_WORSE),
    )
    yield above_bayes(data["balanced"]["error"], data["balanced"]["bayes"])


def _more(key: str, axis: str, one: xr.DataArray, other: xr.DataArray) -> Judged:
    """Judge whether selection reduces the error more in one setting than in another."""
    smallest = (one - other.values).min()
    changed = "alpha_l" if axis == "alpha_U" else "alpha_u"
    return decided(
        key,
        f"By {axis}: {listed(one, '{:.2%}')} against {listed(other, '{:.2%}')}.",
        positive("smallest difference", smallest),
        values={"more": float(one[changed]), "less": float(other[changed])},
    )


def _ratio(one: xr.Dataset) -> xr.DataArray:
    error = one["error"]
    return error.sel(selection=True, drop=True) / error.sel(selection=False, drop=True)
