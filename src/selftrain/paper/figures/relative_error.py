"""Ratio of the error of tuned self-training to that of supervised learning with as many samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...plots import paper_figures as pic
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import above_bayes, last_slope, listed, listed_by
from ..ruling import Bar, above, at_full_size, below, everywhere, positive
from ..setting import BETWEEN, RHOS, cases

if TYPE_CHECKING:
    import xarray as xr

NEAR_ONE = Bar(0.01, "a hundredth is the width of a line in the figure")
SLIGHTLY_ABOVE = Bar(0.1, "a tenth parts almost comparable from suboptimal")
FAR_FROM_ONE = Bar(0.05, "five times what counts as almost compatible")
SLOWLY = Bar(0.1, "with such a power ten times the steps take away a fifth")
COSTLY = Bar(0.05, "five times what counts as almost compatible")
JUDGED_ONLY = ("between",)
STUCK = Bar(1e-4, "a step along such a slope changes no digit that is shown")


def tasks(quick: bool) -> Tasks:
    both = (False, True)
    return {
        "chains": cases(quick, selection=both),
        "between": cases(quick, selection=both, rhos=(BETWEEN,)),
    }


def draw(data: Data) -> Drawn:
    return pic.draw_ratio(
        data["chains"].isel(heuristics=0), "selection", "with selection", "without"
    )


def judge(data: Data) -> Claims:
    chains, between = (data[name].isel(heuristics=0) for name in ("chains", "between"))
    ratio = chains["error"] / chains["supervised"]
    last = ratio.isel(T=-1)
    longest = int(chains.T[-1])
    balanced, nearly = (float(last.sel(rho=rho).max()) for rho in (0.5, 0.495))
    skewed = {rho: float(last.sel(rho=rho).min()) for rho in (0.4, 0.2)}
    nearest = min(skewed.values())
    slopes = {rho: _slope(ratio.sel(rho=rho)) for rho in (0.5, 0.4, 0.2)}
    slope = slopes.pop(0.5)
    fastest = min(slopes.values())
    order = last.sel(rho=sorted(RHOS, reverse=True)).diff("rho").min()
    gain = (chains["error"] / chains["labeled_only"]).isel(T=-1).max()
    plain = last.sel(selection=False)
    third = (between["error"] / between["supervised"]).isel(T=-1).sel(selection=False)
    ends = {BETWEEN: third.isel(rho=0), 0.2: plain.sel(rho=0.2), 0.4: plain.sel(rho=0.4)}
    wide = {rho: float(one.isel(delta=0)) for rho, one in ends.items()}
    cost = chains["supervised"] / chains["supervised_any_ridge"] - 1
    yield at_full_size(
        "balanced",
        f"At T = {longest} it is {balanced:.5f} or less.",
        below("largest excess", balanced - 1, NEAR_ONE),
    )
    yield at_full_size(
        "imbalanced",
        f"Smallest ratio at T = {longest} by rho: {listed(skewed)}. Power of T with which the"
        f" deviation falls at the end: {listed(slopes)}; {slope:.3g} at rho = 0.5.",
        above("smallest excess", nearest - 1, FAR_FROM_ONE),
        below("fastest fall of the deviation", -fastest, SLOWLY),
    )
    yield at_full_size(
        "degrades",
        f"Smallest increase: {float(order):.3g}. Ratios at T = {longest} by rho, without"
        f" selection: {listed_by('delta', plain, '{:.4f}', label='Delta')}.",
        positive("smallest increase", order),
    )
    yield at_full_size(
        "comparable",
        f"At T = {longest}: {nearly:.4f} or less at rho = 0.495, {skewed[0.2]:.4f} or more"
        " at rho = 0.2.",
        below("largest excess at rho = 0.495", nearly - 1, SLIGHTLY_ABOVE),
        above("smallest excess at rho = 0.2", skewed[0.2] - 1, SLIGHTLY_ABOVE),
    )
    yield at_full_size(
        "improved",
        f"Largest ratio of the errors at T = {longest}: {float(gain):.4f}.",
        positive("smallest improvement", 1 - gain),
    )
    yield at_full_size(
        "not-monotone",
        f"Ratios at T = {longest}, Delta = {float(chains.delta[0]):g}: {listed(wide, '{:.4f}')}.",
        positive("difference", wide[BETWEEN] - wide[0.2]),
    )
    yield at_full_size(
        "baseline",
        f"The bound costs supervised learning up to {float(cost.max()):.1%}"
        f" ({_place_of_largest(cost)}).",
        above("largest cost", cost.max(), COSTLY),
    )
    yield everywhere(
        "stationary",
        _stuck(chains["first_order"]),
        below("largest gradient", chains["first_order"].max(), STUCK),
    )
    yield above_bayes(chains["error"], chains["bayes"])


def _slope(ratio: xr.DataArray) -> float:
    """Return the largest exponent of T in the deviation from one, from the last T."""
    each = abs(ratio - 1).stack(case=("delta", "selection")).transpose("case", "T")
    return max(last_slope(ratio["T"], one.values) for one in each)


def _place_of_largest(values: xr.DataArray) -> str:
    at = values.argmax(...)
    place = values[{str(name): index for name, index in at.items()}]
    entries = {name: place[name].item() for name in values.dims}
    return ", ".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in entries.items()
    )


def _stuck(gradient: xr.DataArray) -> str:
    """Return a sentence that names the searches which ended neither at a minimum nor at a bound,
    because the solver could not confirm smaller ridges.
    """
    stuck = gradient > STUCK.size
    where = [
        f"rho = {float(one.rho):g}, Delta = {float(one.delta):g}, "
        f"{'with' if one.selection else 'without'} selection, T = {int(one['T'])}"
        for one in stuck.stack(point=stuck.dims).transpose("point")
        if bool(one)
    ]
    if not where:
        return f"Largest such gradient: {float(gradient.max()):.1e}."
    return f"Not so, because the solver confirms no run with smaller ridges: {'; '.join(where)}."
