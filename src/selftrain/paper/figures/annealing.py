r"""$a^*$ against T: the more steps, the more slowly labels become hard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Task
from ..figure import Claim, Data, Figure
from ..judge import listed, numbers
from ..setting import ALPHA_L, ALPHA_U, RIDGES, cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SMALLEST_SHOWN = 1e-6


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, heuristics=(True,))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DELTA_MARKERS,
        RHO_COLORS,
        canvas,
        cases_legend,
        each,
        legend_right,
        lengths_axis,
        positive,
        series,
    )
    from ...plots.style import styled

    chains = data["chains"].isel(heuristics=0, selection=0)
    with styled():
        figure, axes = canvas(1, 1, 7.2, 4.2)
        ax = axes[0, 0]
        for case in each(chains, ("rho", "delta")):
            color, marker = RHO_COLORS[float(case.rho)], DELTA_MARKERS[float(case.delta)]
            shown = np.where(case["annealing"] > SMALLEST_SHOWN, case["annealing"], np.nan)
            series(ax, case.T, positive(shown), color, marker)
        ax.set_yscale("log")
        ax.set_ylabel("$a^*$")
        lengths_axis((ax,), chains.T.values.tolist())
        legend_right(figure, cases_legend(chains.rho.values, chains.delta.values))
    return figure


def claims(data: Data) -> list[Claim]:
    chains = data["chains"].isel(heuristics=0, selection=0)
    a = chains["annealing"]
    rhos = chains.rho.values
    fall = (a.isel(T=-1) / a.max("T")).max("delta").values
    rises = int((a.diff("T") > 0).sum())
    return [
        Claim(
            "The best annealing falls as the number of steps grows (from its largest value to that at "
            "the largest T by a factor of 10 or more, every case).",
            bool((fall < 0.1).all()),
            f"Last over largest value by rho, the larger of the Delta: {listed(rhos, fall)}; it rises at "
            f"{rises} of {a.diff('T').size} doublings.",
            numbers(largest_ratio=fall.max(), rises=rises),
        ),
        Claim(
            "When there are few steps it is rather large: almost hard labels (a* > 1 at T = 1).",
            bool((a.isel(T=0) > 1).all()),
            f"At T = 1 by rho, the smaller of the Delta: {listed(rhos, a.isel(T=0).min('delta').values)}.",
            numbers(smallest=a.isel(T=0).min()),
        ),
    ]


def caption(data: Data) -> str:
    return (
        r"Best annealing $a$ of the labels, $\gamma^{(t)} = 1 + a t$, against the number of steps, bias fixed, "
        rf"$\Gamma = 0$; {RIDGES}, $a \in [0, 10]$. Values of $a^*$ that are zero are not drawn. "
        rf"Chosen: $(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$."
    )


FIGURE = Figure(
    "annealing",
    "Best annealing against the number of steps",
    "Section 5.1, `fig: optimal values of a`",
    tasks,
    draw,
    claims,
    caption,
)
