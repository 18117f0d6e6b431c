r"""$\chi^{(T)}$ of balanced runs for several sizes of batches: small batches make the fit
unstable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Grid, Task
from ..computations.fixed_ridge import FIXED_RIDGE
from ..figure import Claim, Data, Figure, Finding, Place, fixed
from ..judge import at_full_size, listed, numbers
from ..setting import ALPHA_L, DELTA, TUNED, longest
from .batch_size import BATCHES, BATCHES_QUICK, chains

if TYPE_CHECKING:
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
    chi = data["fixed"]["chi"]
    last = chi.isel(T=-1).values
    return [
        Claim(
            quote=(
                "as $\\alpha_U$ decreases, the linear susceptibility $\\chi^{(T)}$ becomes greater"
                " at large iteration $T$"
            ),
            test=(
                f"At fixed ridges, (lambda_L, lambda_U) = ({FIXED['lambda_l']:g},"
                f" {FIXED['lambda_u']:g}), the susceptibility at the largest T grows from each"
                " alpha_U to the next smaller one."
            ),
            holds=at_full_size(bool((np.diff(last) < 0).all()), full),
            found=f"At T = {int(chi['T'][-1])} by alpha_U: {listed(chi.alpha_u, last)}.",
            numbers=numbers(
                **{f"chi_{a:g}": value for a, value in zip(chi.alpha_u.values, last, strict=True)}
            ),
        )
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    found = data["chains"]
    last = found["chi"].isel(T=-1)
    batches = found.alpha_u.values
    enough = batches >= 1
    ordered = all(
        bool((np.diff(last.sel(selection=chosen).values[enough]) < 0).all())
        for chosen in (False, True)
    )
    small = last.sel(alpha_u=batches[~enough]).max()
    ridge = found["lambda_u"].isel(T=-1).sel(selection=False)
    return [
        Finding(
            says=(
                "In tuned runs the order holds from alpha_U = 1 on; below it the best ridge meets"
                " its bound, 0.1, which keeps the susceptibility below 1/0.1, so that it is largest"
                " at alpha_U = 1."
            ),
            holds=at_full_size(
                ordered
                and float(small) < 10
                and float(small) < float(last.sel(selection=False).max()),
                full,
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
        r"and with (c) selection. In (b, c) the ridge meets its bound, 0.1, below $\alpha_U = 1$."
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
