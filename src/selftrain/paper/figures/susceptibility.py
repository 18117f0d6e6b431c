r"""$\chi^{(T)}$ of balanced runs for several batch sizes: small batches make the fit unstable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.chains import FIXED_RIDGE
from ..entry import Claims, Data, Drawn, Tasks, fixed
from ..judge import listed
from ..ruling import Judged, at_full_size, positive
from ..setting import ALPHA_L, DELTA, longest
from .batch_size import BATCHES, BATCHES_QUICK, balanced

if TYPE_CHECKING:
    import xarray as xr

LAMBDA_L, LAMBDA_U = 0.05, 0.01
"""The fixed ridges."""

PANELS = {"chains": "(b, c), where the ridges are tuned"}


def tasks(quick: bool) -> Tasks:
    ridges = {"lambda_l": LAMBDA_L, "lambda_u": LAMBDA_U, "longest": longest(quick)}
    batches = {"alpha_u": BATCHES_QUICK if quick else BATCHES}
    grid = Grid(batches, {"alpha_l": ALPHA_L, "rho": 0.5, "delta": DELTA, **ridges})
    return {"chains": balanced(quick), "fixed": Task(FIXED_RIDGE, grid)}


def draw(data: Data) -> Drawn:
    chi, ridge = data["chains"]["chi"], fixed(data["fixed"], "lambda_u")
    figure, axes = pic.canvas(1, 3, 11.0, 3.8, sharey=True)
    panels = (
        (data["fixed"]["chi"], rf"$\lambda_U = {ridge:g}$, $\Gamma = 0$", False),
        (chi.sel(selection=False), r"tuned, $\Gamma = 0$", False),
        (chi.sel(selection=True), r"tuned, $\Gamma$ too", True),
    )
    for ax, (values, title, filled) in zip(axes[0], panels, strict=True):
        pic.draw_batches(ax, values, filled)
        ax.set_title(title)
    style.logarithmic(axes[0, 0])
    axes[0, 0].set_ylabel(r"$\chi^{(T)}$")
    return figure, pic.value_legend(r"\alpha_U", pic.batch_colors(data["chains"]))


def judge(data: Data) -> Claims:
    tuned = data["chains"]["chi"]
    last, ridge = tuned.isel(T=-1), data["chains"]["lambda_u"].isel(T=-1).sel(selection=False)
    batches = tuned.alpha_u.values
    enough, small = last.sel(alpha_u=batches >= 1), last.sel(alpha_u=batches < 1)
    room = 1 / ridge.sel(alpha_u=batches < 1) - small.sel(selection=False)
    ridges = f"(lambda_L, lambda_U) = ({LAMBDA_L:g}, {LAMBDA_U:g})"
    yield _grows(data["fixed"]["chi"], f"fixed ridges, {ridges}")
    yield _grows(tuned.sel(selection=False), "tuned, without selection")
    yield _grows(tuned.sel(selection=True), "tuned, with selection")
    yield at_full_size(
        "peak",
        f"At T = {int(tuned['T'][-1])} by alpha_U: {listed(last.sel(selection=False))} without"
        f" selection, {listed(last.sel(selection=True))} with; best ridges without selection:"
        f" {listed(ridge)}.",
        positive("smallest growth from alpha_U = 1 on", -enough.diff("alpha_u").max()),
        positive("excess of the largest", (enough.max("alpha_u") - small.max()).min()),
        positive("smallest distance below 1/lambda_U*", room.min()),
    )


def _grows(chi: xr.DataArray, case: str) -> Judged:
    """Judge whether the susceptibility grows as the batches shrink."""
    last = chi.isel(T=-1)
    return at_full_size(
        "grows",
        f"At T = {int(chi['T'][-1])} by alpha_U: {listed(last)}.",
        positive("smallest growth", -np.diff(last.values).max()),
        case=case,
    )
