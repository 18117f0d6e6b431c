r"""$\chi^{(T)}$ of tuned runs for several sizes of batches: small batches make the fit unstable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Task
from ..figure import Claim, Data, Figure
from ..judge import at_the_end, in_long_runs, listed, numbers
from ..setting import ALPHA_L, DELTA, RIDGES
from .batch_size import chains

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": chains(quick)}


def draw(data: Data) -> Drawing:
    from ...plots.paper import draw_batches
    from ...plots.style import styled

    with styled():
        figure = draw_batches(data["chains"], data["chains"]["chi"])
        figure.axes[0].set_ylabel(r"$\chi^{(T)}$")
    return figure


def claims(data: Data) -> list[Claim]:
    chi = data["chains"]["chi"]
    batches, longest_run = chi.alpha_u.values, int(chi["T"][-1])
    claimed = []
    for chosen, name in ((False, "without selection"), (True, "with selection")):
        last = at_the_end(chi.sel(selection=chosen)).values
        growth = last / chi.sel(selection=chosen).isel(T=0).values
        enough = batches >= 1
        claimed += [
            Claim(
                f"From alpha_U = 1 on: the smaller alpha_U, the larger the susceptibility at the largest T ({name}).",
                in_long_runs(bool((np.diff(last[enough]) < 0).all()), longest_run),
                f"By alpha_U: {listed(batches[enough], last[enough])}. Below alpha_U = 1 the best ridge "
                "stays near its upper bound, 0.1, and the susceptibility below 1/0.1.",
                numbers(at_one=last[enough][0]),
            ),
            Claim(
                f"The smaller alpha_U, the larger the susceptibility at the largest T ({name}).",
                in_long_runs(bool((np.diff(last) < 0).all()), longest_run),
                f"At T = {longest_run}, or the largest T with a solution, by alpha_U: {listed(batches, last)}.",
                numbers(**{f"chi_{a:g}": value for a, value in zip(batches, last, strict=True)}),
            ),
            Claim(
                "For the smallest batches it grows with the length of the run, from T = 1 to the "
                f"largest T by a factor of 10 or more ({name}).",
                in_long_runs(bool(growth[0] > 10), longest_run),
                f"Factors by alpha_U: {listed(batches, growth)}.",
                numbers(factor=growth[0]),
            ),
        ]
    return claimed


def caption(data: Data) -> str:
    return (
        r"Linear susceptibility $\chi^{(T)}$ of the last step of tuned runs, "
        rf"$(\rho, \Delta) = (1/2, {DELTA:g})$, $\alpha_L = {ALPHA_L:g}$ (chosen), for several $\alpha_U$. Filled: "
        rf"$\Gamma$ tuned, white: $\Gamma = 0$. {RIDGES}."
    )


FIGURE = Figure(
    "susceptibility",
    "Susceptibility against the number of steps",
    "Appendix, `fig: partition dependence balanced susceptibility`",
    tasks,
    draw,
    claims,
    caption,
)
