r"""$\lambda_U^*$ against T: small ridges, many small steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Task
from ..computations.tuned import LARGEST_RIDGE, SMALLEST_RIDGE
from ..figure import Claim, Data, Figure
from ..judge import PowerLaw, numbers, power_law
from ..setting import ALPHA_L, ALPHA_U, RIDGES, cases

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

MANY = 32
"""The power is fitted from this T on, where the ridge is below its bound."""


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, selection=(False, True))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DASHED,
        DELTA_MARKERS,
        RHO_COLORS,
        canvas,
        cases_legend,
        each,
        handle,
        legend_right,
        lengths_axis,
        series,
    )
    from ...plots.style import GREY, styled

    chains = data["chains"].isel(heuristics=0)
    with styled():
        figure, axes = canvas(1, 1, 7.6, 4.6)
        ax = axes[0, 0]
        for case in each(chains, ("rho", "delta", "selection")):
            color, marker = RHO_COLORS[float(case.rho)], DELTA_MARKERS[float(case.delta)]
            series(ax, case.T, case["lambda_u"], color, marker, bool(case.selection))
            law = _law(case)
            shown = not case.selection and float(case.delta) == float(chains.delta[-1])
            if shown and law is not None:
                lengths = case.T.values[case.T.values >= MANY]
                ax.plot(
                    lengths,
                    law.amplitude * lengths**law.exponent,
                    color=color,
                    linewidth=4,
                    alpha=0.2,
                )
        ax.axhline(LARGEST_RIDGE, color=GREY, linewidth=0.9, linestyle=(0, (1, 1.5)))
        ax.set_yscale("log")
        ax.set_ylabel(r"$\lambda_U^*$")
        lengths_axis((ax,), chains.T.values.tolist())
        laws = [
            (rho, _law(chains.sel(rho=rho, selection=False).isel(delta=-1)))
            for rho in chains.rho.values
        ]
        legend_right(
            figure,
            [
                *cases_legend(chains.rho.values, chains.delta.values),
                handle(r"$\Gamma$ tuned", GREY, "o"),
                handle(r"$\Gamma = 0$", GREY, "o", DASHED, filled=False),
                *(
                    handle(rf"$\propto T^{{{law.exponent:.2f}}}$", RHO_COLORS[float(rho)])
                    for rho, law in laws
                    if law is not None
                ),
            ],
        )
    return figure


def claims(data: Data) -> list[Claim]:
    chains = data["chains"].isel(heuristics=0)
    claimed = []
    for chosen, name in ((False, "without selection"), (True, "with selection")):
        found = {
            (float(rho), float(delta)): law
            for rho in chains.rho
            for delta in chains.delta
            if (law := _law(chains.sel(rho=rho, delta=delta, selection=chosen))) is not None
        }
        if not found:
            claimed.append(
                Claim(
                    f"The best ridge falls as a power of T, whatever the label bias ({name}).",
                    None,
                    f"Runs of {8 * MANY} steps or more are needed to tell.",
                )
            )
            continue
        exponents = np.array([law.exponent for law in found.values()])
        off = np.array([law.off for law in found.values()])
        shown = "; ".join(
            f"({rho:g}, {delta:g}): {law.exponent:.3f}" for (rho, delta), law in found.items()
        )
        claimed += [
            Claim(
                f"The best ridge falls as a power of T ({name}; from T = {MANY} on no point is off "
                "the fitted power by more than a factor of 1.25).",
                bool(off.max() < 1.25),
                f"Exponents by (rho, Delta): {shown}. Largest factor off: {off.max():.3f}. "
                f"{_at_floor(chains, chosen)}",
                numbers(
                    largest_factor=off.max(),
                    **{
                        f"exponent_{rho:g}_{delta:g}": law.exponent
                        for (rho, delta), law in found.items()
                    },
                ),
            ),
            Claim(
                f"This does not depend on the label bias ({name}; exponents differ by less than 0.2).",
                bool(np.ptp(exponents) < 0.2),
                f"They range from {exponents.min():.3f} to {exponents.max():.3f}.",
                numbers(lowest=exponents.min(), highest=exponents.max()),
            ),
        ]
    return claimed


def caption(data: Data) -> str:
    chains = data["chains"].isel(heuristics=0)
    powers = ""
    if int(chains.T[-1]) >= 8 * MANY:
        powers = (
            rf" Broad lines: powers fitted from $T = {MANY}$ on to the curves without selection and "
            rf"$\Delta = {float(chains.delta[-1]):g}$."
        )
    return (
        r"Best ridge of the self-training steps against their number. Filled: $\Gamma$ tuned, white: "
        rf"$\Gamma = 0$; dotted: the upper bound of the search, which makes the plateau.{powers} "
        rf"{RIDGES}. Chosen: $(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$."
    )


def _at_floor(chains: xr.Dataset, chosen: bool) -> str:
    """Where the ridge of step 0 runs to the lower end of the search; those runs are left out of the fit."""
    floor = chains["lambda_l"].sel(selection=chosen) < 1.01 * SMALLEST_RIDGE
    where = [
        f"rho = {rho:g}, Delta = {delta:g}, from T = {chains.T.values[held.values][0]}"
        for rho in chains.rho.values
        for delta in chains.delta.values
        if (held := floor.sel(rho=rho, delta=delta)).any()
    ]
    if not where:
        return ""
    return (
        f"lambda_L* is at the lower end of the search, {SMALLEST_RIDGE:g}, for {'; '.join(where)}."
    )


def _law(case: xr.Dataset) -> PowerLaw | None:
    """The power of T over the longer runs whose ridges are within the bounds; None if they are too few."""
    ridge = case["lambda_u"].values
    inside = (case.T.values >= MANY) & (ridge < 0.99 * LARGEST_RIDGE)
    inside &= case["lambda_l"].values > 1.01 * SMALLEST_RIDGE
    if inside.sum() < 4:
        return None
    return power_law(case.T.values[inside], ridge[inside])


FIGURE = Figure(
    "optimal-ridge",
    "Best ridge against the number of steps",
    "Section 4.1, `fig: optimal regularization`",
    tasks,
    draw,
    claims,
    caption,
)
