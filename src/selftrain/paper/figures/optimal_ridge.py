r"""$\lambda_U^*$ and $\lambda_L^*$ against T: small ridges, many small steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...parameters import LARGEST_RIDGE, SMALLEST_RIDGE
from ...sweeps import Task
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import PowerLaw, listed, numbers, power_law
from ..ruling import Bar, above, at_full_size, below, positive, somewhere
from ..setting import OPEN_AMOUNTS, RHOS, TUNED, cases

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

MANY = 32
"""The power is fitted from this T on, where the ridge is below its bound."""

OFF = Bar(0.25, "a quarter off is visible on the scale of the figure")
SMALL = Bar(0.1, "an order of magnitude below the plateau")
DIFFERENT = Bar(0.3, "over the range of T such a difference makes a factor of three")
AT_BOUND = 0.99

NOT_STATIONARY = 1e-4
"""A search that ends with a larger gradient ended where the solver does, and gets a cross."""

Laws = dict[tuple[float, float, bool], PowerLaw]
"""Powers of T by rho, Delta and selection."""

RIDGES = ("lambda_u", "lambda_l")
"""Drawn above each other."""


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, selection=(False, True))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DASHED,
        JUMP,
        bound,
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
    from ...plots.style import GREY, PURPLE, logarithmic, styled

    chains = data["chains"].isel(heuristics=0)
    deltas, colors = chains.delta.values.tolist(), rho_colors(chains.rho.values)
    stopped = bool((chains["first_order"] > NOT_STATIONARY).any())
    with styled():
        figure, axes = canvas(
            2, len(deltas), 3.5 * len(deltas) + 2.3, 6.4, sharex=True, sharey="row"
        )
        for column, delta in zip(axes.T, deltas, strict=True):
            for case in each(chains.sel(delta=delta), ("rho", "selection")):
                color, filled = colors[float(case.rho)], bool(case.selection)
                for ax, name in zip(column, RIDGES, strict=True):
                    series(ax, case.T, case[name], color, "o", filled, jump=3 * JUMP)
                    ends = case["first_order"].values > NOT_STATIONARY
                    ax.plot(
                        case.T.values[ends], case[name].values[ends], "x", color=PURPLE, zorder=5
                    )
            column[0].set_title(rf"$\Delta = {delta:g}$")
            for ax, name in zip(column, RIDGES, strict=True):
                logarithmic(ax)
                if bool((chains[name] > AT_BOUND * LARGEST_RIDGE).any()):
                    bound(ax, LARGEST_RIDGE)
                if bool((chains[name] < 1.01 * SMALLEST_RIDGE).any()):
                    bound(ax, SMALLEST_RIDGE)
            lengths_axis(column, chains.T.values.tolist())
            column[0].set_xlabel("")
        axes[0, 0].set_ylabel(r"$\lambda_U^*$")
        axes[1, 0].set_ylabel(r"$\lambda_L^*$")
        letter(axes.ravel())
        legend_right(
            figure,
            [
                *rho_legend(chains.rho.values),
                handle(r"$\Gamma$ tuned", GREY, "o"),
                handle(r"$\Gamma = 0$", GREY, "o", DASHED, filled=False),
                handle("bound of the search", GREY, "", (0, (1, 1.5))),
                *([handle("end of the solver", PURPLE, "x", "none")] if stopped else []),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    chains = data["chains"].isel(heuristics=0)
    last = chains.isel(T=-1)["lambda_u"] / LARGEST_RIDGE
    laws = _laws(chains)
    plateau = int((chains["lambda_u"] > AT_BOUND * LARGEST_RIDGE).sum())
    return [
        *(_power(chains, chosen, full) for chosen in (False, True)),
        Claim(
            quote="We also remark that this tendency does not depend on the label bias $\\rho$.",
            test=(
                f"The power law fits for every rho, 0.5 to 0.2 (no point from T = {MANY} on is off"
                f" by more than a factor of {1 + OFF.size:g}), and its exponent is negative."
            ),
            ruling=at_full_size(
                full,
                below("largest share off", _largest_off(laws), OFF),
                positive("smallest speed of the fall", _slowest(laws)),
                positive("smallest number of fits at a rho", _fits(laws)),
            ),
            found=_exponents(chains),
            numbers=numbers(cases=len(laws)),
        ),
        Claim(
            quote=(
                "Since $\\lambda_U$ is upper bounded during the optimization, there is a plateau at"
                " $\\lambda_U=0.1$."
            ),
            test="At some T the best ridge is at its bound, 0.1.",
            ruling=somewhere(full, positive("points at the bound", plateau)),
            found=f"It is at {plateau} of {chains['lambda_u'].size} points.",
            numbers=numbers(points=plateau),
        ),
        Claim(
            quote=(
                "When $T$ is large and $\\alpha_U$ is moderately large, the optimal regularization"
                " parameter $\\lambda_U^*$ becomes small."
            ),
            test=(
                "In every case the best ridge has left its plateau: at the largest T it is below"
                f" {SMALL.size:g} of its bound, and it falls with a power of T (a negative exponent"
                f" from T = {MANY} on)."
            ),
            ruling=at_full_size(
                full,
                below("largest share of the bound", last.max(), SMALL),
                positive("smallest speed of the fall", _slowest(laws)),
                positive("smallest number of fits at a rho", _fits(laws)),
            ),
            found=(
                f"Largest ridge at T = {int(chains.T[-1])} over the bound by rho: "
                f"{listed(chains.rho, last.max(('delta', 'selection')).values)}."
                f" {_exponents(chains)}"
            ),
            numbers=numbers(largest=last.max()),
        ),
    ]


def _power(chains: xr.Dataset, chosen: bool, full: bool) -> Claim:
    found = _laws(chains.isel(selection=[int(chosen)]))
    shown = "; ".join(
        f"({rho:g}, {delta:g}): {law.exponent:.3f}" for (rho, delta, _), law in found.items()
    )
    return Claim(
        case="with selection" if chosen else "without selection",
        quote=(
            "The figure indicates that the optimal regularization strength decreases in a power raw"
            " at $T\\gg1$."
        ),
        test=(
            f"From T = {MANY} on no point of any case is off a power fitted to it by more than a"
            f" factor of {1 + OFF.size:g}, and the power is negative."
        ),
        ruling=at_full_size(
            full,
            below("largest share off", _largest_off(found), OFF),
            positive("smallest speed of the fall", _slowest(found)),
        ),
        found=(
            f"Exponents by (rho, Delta): {shown or 'runs too short'}. Largest factor off:"
            f" {1 + _largest_off(found):.3f}."
        ),
        numbers=numbers(largest_factor=1 + _largest_off(found)),
    )


def findings(data: Data, full: bool) -> list[Finding]:
    chains = data["chains"].isel(heuristics=0)
    exponents = np.array([law.exponent for law in _laws(chains).values()])
    spread = float(np.ptp(exponents)) if exponents.size else np.nan
    return [
        Finding(
            says=(
                "The exponent itself does depend on the label bias (exponents differ by more than"
                f" {DIFFERENT.size:g})."
            ),
            ruling=at_full_size(full, above("spread of the exponents", spread, DIFFERENT)),
            found=_exponents(chains),
            numbers=numbers(spread=spread),
        ),
        Finding(
            says="No ridge is at the lower end of the search.",
            ruling=at_full_size(
                full,
                positive(
                    "smallest ridge over the end of the search, less 1.01",
                    min(float(chains[name].min()) for name in RIDGES) / SMALLEST_RIDGE - 1.01,
                ),
            ),
            found=_at_floor(chains)
            or f"Smallest ridges: lambda_U* {float(chains['lambda_u'].min()):.2g}, "
            f"lambda_L* {float(chains['lambda_l'].min()):.2g}; "
            f"the search goes down to {SMALLEST_RIDGE:g}.",
            numbers=numbers(lambda_u=chains["lambda_u"].min(), lambda_l=chains["lambda_l"].min()),
        ),
    ]


def caption(data: Data) -> str:
    return (
        r"Best ridges of the self-training steps (above) and of the labelled fit (below) against"
        r" the number of steps. Filled: $\Gamma$ tuned, "
        r"white: $\Gamma = 0$; dotted: a bound of the search that is met. Neighbours in different"
        r" valleys of the error are not joined. Crosses: the search "
        r"stopped at neither a minimum nor a bound, because the solver confirms no run with smaller"
        r" ridges."
    )


def _at_floor(chains: xr.Dataset) -> str:
    """Where a ridge runs to the lower end of the search."""
    where = [
        f"{name} at rho = {rho:g}, Delta = {delta:g}"
        for name in ("lambda_l", "lambda_u")
        for rho in chains.rho.values
        for delta in chains.delta.values
        if bool((chains[name].sel(rho=rho, delta=delta) < 1.01 * SMALLEST_RIDGE).any())
    ]
    return f"At the lower end, {SMALLEST_RIDGE:g}: {'; '.join(where)}." if where else ""


def _laws(chains: xr.Dataset) -> Laws:
    """The powers of T of all cases whose longer runs have ridges within the bounds, at minima."""
    laws: Laws = {}
    for rho in chains.rho.values:
        for delta in chains.delta.values:
            for chosen in chains.selection.values:
                case = chains.sel(rho=rho, delta=delta, selection=chosen)
                ridge = case["lambda_u"].values
                inside = (case.T.values >= MANY) & (ridge < AT_BOUND * LARGEST_RIDGE)
                inside &= (ridge > 1.01 * SMALLEST_RIDGE) & ~(case["first_order"].values > 1e-4)
                inside &= case["lambda_l"].values > 1.01 * SMALLEST_RIDGE
                if inside.sum() >= 4:
                    law = power_law(case.T.values[inside], ridge[inside])
                    laws[float(rho), float(delta), bool(chosen)] = law
    return laws


def _largest_off(laws: Laws) -> float:
    """The largest share by which a point is off its power; NaN without one."""
    return max((law.off - 1 for law in laws.values()), default=np.nan)


def _slowest(laws: Laws) -> float:
    """The smallest negative exponent, its sign changed; NaN without one."""
    return min((-law.exponent for law in laws.values()), default=np.nan)


def _fits(laws: Laws) -> int:
    """How many powers were fitted at the rho that has the fewest."""
    return min(sum(share == rho for share, _, _ in laws) for rho in RHOS)


def _exponents(chains: xr.Dataset) -> str:
    """The range of exponents for each rho."""
    laws = _laws(chains)
    ranges = []
    for rho in chains.rho.values.tolist():
        of = [law.exponent for (share, _, _), law in laws.items() if share == rho]
        if of:
            ranges.append(f"{rho:g}: {min(of):.3f} to {max(of):.3f}")
    return f"Exponents by rho: {', '.join(ranges)}." if ranges else "Runs too short for a power."


FIGURE = Figure(
    "optimal-ridge",
    "Best ridges against the number of steps",
    Place("Section 4.1", 7, "fig: optimal regularization"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"the cases of `relative-error`; {TUNED}.",
    chosen=(
        rf"{OPEN_AMOUNTS}, $T$ up to 1024, $\Gamma \in [0, 3]$; the lower end of the search,"
        rf" {SMALLEST_RIDGE:g}; (c, d) are ours."
    ),
)
