r"""$\chi^{(T)}$ of balanced runs for several sizes of batches: small batches make the fit
unstable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweeps import Grid, Task
from ..computations.fixed_ridge import FIXED_RIDGE
from ..figure import Claim, Data, Figure, Finding, Place, fixed
from ..judge import listed, numbers
from ..ruling import at_full_size, positive
from ..setting import ALPHA_L, DELTA, TUNED, longest
from .batch_size import BATCHES, BATCHES_QUICK, chains

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

FIXED = {"lambda_l": 0.05, "lambda_u": 0.01}


def tasks(quick: bool) -> Mapping[str, Task]:
    batches = BATCHES_QUICK if quick else BATCHES
    setting = {"alpha_l": ALPHA_L, "delta": DELTA, "longest": longest(quick), **FIXED}
    return {
        "chains": chains(quick),
        "fixed": Task(FIXED_RIDGE, Grid({"alpha_u": batches}, setting)),
    }


def draw(data: Data) -> Drawing:
    from ...plots.paper import batch_colors, canvas, draw_batches, handle, legend_right, letter
    from ...plots.style import logarithmic, styled

    chi, ridge = data["chains"]["chi"], fixed(data["fixed"], "lambda_u")
    with styled():
        figure, axes = canvas(1, 3, 11.0, 3.8, sharey=True)
        panels = (
            (data["fixed"]["chi"], rf"$\lambda_U = {ridge:g}$, $\Gamma = 0$", False),
            (chi.sel(selection=False), r"tuned, $\Gamma = 0$", False),
            (chi.sel(selection=True), r"tuned, $\Gamma$ too", True),
        )
        for ax, (values, title, filled) in zip(axes[0], panels, strict=True):
            draw_batches(ax, values, filled)
            ax.set_title(title)
        logarithmic(axes[0, 0])
        axes[0, 0].set_ylabel(r"$\chi^{(T)}$")
        letter(axes[0])
        legend_right(
            figure,
            [
                handle(rf"$\alpha_U={alpha:g}$", color, "o")
                for alpha, color in batch_colors(data["chains"]).items()
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    fixed_ridges = f"(lambda_L, lambda_U) = ({FIXED['lambda_l']:g}, {FIXED['lambda_u']:g})"
    tuned = data["chains"]["chi"]
    return [
        _grows(data["fixed"]["chi"], f"fixed ridges, {fixed_ridges}", full),
        _grows(tuned.sel(selection=False), "tuned, without selection", full),
        _grows(tuned.sel(selection=True), "tuned, with selection", full),
    ]


def _grows(chi: xr.DataArray, case: str, full: bool) -> Claim:
    """Whether the susceptibility grows as the batches shrink."""
    last, batches = chi.isel(T=-1).values, chi.alpha_u.values
    return Claim(
        case=case,
        quote=(
            "as $\\alpha_U$ decreases, the linear susceptibility $\\chi^{(T)}$ becomes greater"
            " at large iteration $T$"
        ),
        test=(
            "The susceptibility at the largest T grows from each alpha_U to the next smaller one."
        ),
        ruling=at_full_size(full, positive("smallest growth", -np.diff(last).max())),
        found=f"At T = {int(chi['T'][-1])} by alpha_U: {listed(batches, last)}.",
        numbers=numbers(**{f"chi_{a:g}": value for a, value in zip(batches, last, strict=True)}),
    )


def findings(data: Data, full: bool) -> list[Finding]:
    found = data["chains"]
    last = found["chi"].isel(T=-1)
    batches = found.alpha_u.values
    enough = last.sel(alpha_u=batches >= 1)
    small = last.sel(alpha_u=batches < 1)
    ridge = found["lambda_u"].isel(T=-1).sel(selection=False)
    room = 1 / ridge.sel(alpha_u=batches < 1) - small.sel(selection=False)
    return [
        Finding(
            says=(
                "In tuned runs the order holds from alpha_U = 1 on, where the susceptibility is"
                " largest; below it the best ridge is large again, and the susceptibility below"
                " 1/lambda_U*."
            ),
            ruling=at_full_size(
                full,
                positive("smallest growth from alpha_U = 1 on", -enough.diff("alpha_u").max()),
                positive("excess of the largest", (enough.max("alpha_u") - small.max()).min()),
                positive("smallest distance below 1/lambda_U*", room.min()),
            ),
            found=(
                f"At T = {int(found.T[-1])} by alpha_U:"
                f" {listed(batches, last.sel(selection=False).values)} without selection,"
                f" {listed(batches, last.sel(selection=True).values)} with; best ridges without"
                f" selection: {listed(batches, ridge.values)}."
            ),
            numbers=numbers(
                **{f"chi_{a:g}": float(last.sel(alpha_u=a, selection=False)) for a in batches}
            ),
        )
    ]


def caption(data: Data) -> str:
    return (
        r"Linear susceptibility $\chi^{(T)}$ of the last step against the number of steps: at fixed"
        r" ridges (a), and of tuned runs without (b) "
        r"and with (c) selection. Below $\alpha_U = 1$ the best ridge in (b, c) is at its bound,"
        r" 0.1, or near it."
        r" Where weights fade to less than any number, $\chi$ is that of their direction."
    )


FIGURE = Figure(
    "susceptibility",
    "Susceptibility against the number of steps",
    Place("Appendix C", 13, "fig: partition dependence balanced susceptibility"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"$(\rho, \Delta) = (1/2, 0.75^2)$; (b, c): {TUNED}.",
    chosen=(
        rf"$\alpha_L = {ALPHA_L:g}$; the $\alpha_U$ drawn; $(\lambda_L, \lambda_U) ="
        rf" ({FIXED['lambda_l']:g}, {FIXED['lambda_u']:g})$ "
        r"in (a); $T$ up to 1024; $\Gamma \in [0, 3]$."
    ),
)
