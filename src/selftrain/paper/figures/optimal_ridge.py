r"""$\lambda_U^*$ and $\lambda_L^*$ against T: small ridges, many small steps."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ...parameters import LARGEST_RIDGE, SMALLEST_RIDGE
from ...plots import paper_figures as pic
from ...plots import style
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import PowerLaw, listed, power_law
from ..ruling import Bar, Criterion, above, at_full_size, below, positive, somewhere
from ..setting import RHOS, cases

if TYPE_CHECKING:
    import xarray as xr

MANY = 32
"""Smallest T in the fit of a power law; from there on the ridge is below its bound."""

OFF = Bar(0.25, "a quarter off is visible on the scale of the figure")
SMALL = Bar(0.1, "an order of magnitude below the plateau")
DIFFERENT = Bar(0.3, "over the range of T such a difference makes a factor of three")
PLATEAU, FLOOR = 0.99 * LARGEST_RIDGE, 1.01 * SMALLEST_RIDGE
"""A ridge above the first or below the second is at a bound of the search."""

NOT_STATIONARY = 1e-4
"""A search with a larger final gradient ended because the solver could not confirm smaller ridges;
it is marked by a cross."""

Laws = dict[tuple[float, float, bool], PowerLaw]
"""Fitted powers of T, by rho, Delta and selection."""

RIDGES = ("lambda_u", "lambda_l")
"""The rows of panels."""


def tasks(quick: bool) -> Tasks:
    return {"chains": cases(quick, selection=(False, True))}


def draw(data: Data) -> Drawn:
    chains = data["chains"].isel(heuristics=0)
    colors = pic.rho_colors(chains.rho.values)
    stopped = bool((chains["first_order"] > NOT_STATIONARY).any())
    figure, axes, at_delta = pic.delta_columns(chains, 2, 3.5, 2.3, 6.4)
    for column, one in zip(axes.T, at_delta, strict=True):
        for ax, name in zip(column, RIDGES, strict=True):
            for case in pic.each(one, ("rho", "selection")):
                color, filled = colors[float(case.rho)], bool(case.selection)
                pic.series(ax, case.T, case[name], color, "o", filled, jump=3 * pic.JUMP)
                ends = case.sel(T=case["first_order"] > NOT_STATIONARY)
                ax.plot(ends.T, ends[name], "x", color=style.PURPLE, zorder=5)
            style.logarithmic(ax)
            if bool((chains[name] > PLATEAU).any()):
                pic.bound(ax, LARGEST_RIDGE)
            if bool((chains[name] < FLOOR).any()):
                pic.bound(ax, SMALLEST_RIDGE)
    pic.label_rows(axes, r"$\lambda_U^*$", r"$\lambda_L^*$")
    return figure, [
        *pic.rho_legend(chains.rho.values),
        *pic.switch_legend(r"$\Gamma$ tuned", r"$\Gamma = 0$"),
        pic.handle("bound of the search", style.GREY, "", pic.DOTTED),
        *([pic.handle("end of the solver", style.PURPLE, "x", "none")] if stopped else []),
    ]


def judge(data: Data) -> Claims:
    chains = data["chains"].isel(heuristics=0)
    last = chains.isel(T=-1)["lambda_u"] / LARGEST_RIDGE
    laws = _laws(chains)
    plateau = int((chains["lambda_u"] > PLATEAU).sum())
    exponents = np.array([law.exponent for law in laws.values()])
    spread = float(np.ptp(exponents)) if exponents.size else np.nan
    fits = positive(
        "smallest number of fits at a rho", min(sum(at[0] == rho for at in laws) for rho in RHOS)
    )
    smallest = {name: float(chains[name].min()) for name in RIDGES}
    for chosen in (False, True):
        found = {at: law for at, law in laws.items() if at[2] == chosen}
        shown = "; ".join(
            f"({rho:g}, {delta:g}): {law.exponent:.3f}" for (rho, delta, _), law in found.items()
        )
        off = _largest_off(found)
        yield at_full_size(
            "power",
            f"Exponents by (rho, Delta): {shown or 'runs too short'}. Largest factor off:"
            f" {1 + off:.3f}.",
            below("largest share off", off, OFF),
            _falls(found),
            case="with selection" if chosen else "without selection",
        )
    off = _largest_off(laws)
    yield at_full_size(
        "any-rho", _exponents(laws), below("largest share off", off, OFF), _falls(laws), fits
    )
    yield somewhere(
        "plateau",
        f"It is at {plateau} of {chains['lambda_u'].size} points.",
        positive("points at the bound", plateau),
    )
    yield at_full_size(
        "small",
        f"Largest ridge at T = {int(chains.T[-1])} over the bound by rho: "
        f"{listed(last.max(('delta', 'selection')))}. {_exponents(laws)}",
        below("largest share of the bound", last.max(), SMALL),
        _falls(laws),
        fits,
    )
    yield at_full_size(
        "exponent", _exponents(laws), above("spread of the exponents", spread, DIFFERENT)
    )
    yield at_full_size(
        "floor",
        _at_floor(chains)
        or f"Smallest ridges: lambda_U* {smallest['lambda_u']:.2g}, lambda_L*"
        f" {smallest['lambda_l']:.2g}; the search goes down to {SMALLEST_RIDGE:g}.",
        positive(
            "smallest ridge over the end of the search, less 1.01",
            min(smallest.values()) / SMALLEST_RIDGE - 1.01,
        ),
    )


def _at_floor(chains: xr.Dataset) -> str:
    """Return a sentence that says where a ridge is at the lower bound of the search; empty if
    nowhere.
    """
    where = [
        f"{name} at rho = {rho:g}, Delta = {delta:g}"
        for name in ("lambda_l", "lambda_u")
        for rho, delta in product(chains.rho.values, chains.delta.values)
        if bool((chains[name].sel(rho=rho, delta=delta) < FLOOR).any())
    ]
    return f"At the lower end, {SMALLEST_RIDGE:g}: {'; '.join(where)}." if where else ""


def _laws(chains: xr.Dataset) -> Laws:
    """Fit the powers of T for all cases in which the ridges of the longer runs are minima within
    the bounds.
    """
    laws: Laws = {}
    for at in product(*(chains[name].values.tolist() for name in ("rho", "delta", "selection"))):
        case = chains.sel(dict(zip(("rho", "delta", "selection"), at, strict=True)))
        ridge = case["lambda_u"].values
        inside = (case.T.values >= MANY) & (ridge < PLATEAU) & (ridge > FLOOR)
        inside &= ~(case["first_order"].values > NOT_STATIONARY) & (case["lambda_l"].values > FLOOR)
        if inside.sum() >= 4:
            laws[at] = power_law(case.T.values[inside], ridge[inside])
    return laws


def _largest_off(laws: Laws) -> float:
    """Return the largest relative deviation of a point from its fit; NaN if there is no fit."""
    return max((law.off - 1 for law in laws.values()), default=np.nan)


def _falls(laws: Laws) -> Criterion:
    """Require all ridges to fall with T; undecided if there is no fit."""
    slowest = min((-law.exponent for law in laws.values()), default=np.nan)
    return positive("smallest speed of the fall", slowest)


def _exponents(laws: Laws) -> str:
    """Return a sentence with the range of exponents for each rho."""
    ranges = []
    for rho in dict.fromkeys(at[0] for at in laws):
        of = [law.exponent for at, law in laws.items() if at[0] == rho]
        ranges.append(f"{rho:g}: {min(of):.3f} to {max(of):.3f}")
    return f"Exponents by rho: {', '.join(ranges)}." if ranges else "Runs too short for a power."
