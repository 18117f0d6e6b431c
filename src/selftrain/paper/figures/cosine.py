r"""$m/\sqrt q$ after the last step: how well the classification plane points to the cluster centre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Task
from ..figure import Claim, Data, Figure
from ..judge import last_slope, listed, numbers
from ..setting import ALPHA_L, ALPHA_U, RIDGES, cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, selection=(False, True))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DASHED,
        DELTA_MARKERS,
        DOTTED,
        RHO_COLORS,
        canvas,
        cases_legend,
        each,
        handle,
        legend_right,
        lengths_axis,
        limit,
        series,
    )
    from ...plots.style import GREY, styled

    chains = data["chains"].isel(heuristics=0)
    with styled():
        figure, axes = canvas(2, 1, 7.2, 6.4, sharex=True)
        upper, lower = axes[:, 0]
        for case in each(chains, ("rho", "delta", "selection")):
            color, marker = RHO_COLORS[float(case.rho)], DELTA_MARKERS[float(case.delta)]
            filled, off = bool(case.selection), case["one_minus_cosine"]
            series(upper, case.T, 1 - off, color, marker, filled)
            series(lower, case.T, off, color, marker, filled)
            if filled:
                limit(upper, case.T, 1 - case["bayes_one_minus_cosine"], color)
                limit(lower, case.T, case["bayes_one_minus_cosine"], color)
        upper.set_ylabel(r"$m^{(T)}/\sqrt{q^{(T)}}$")
        lower.set_ylabel(r"$1 - m^{(T)}/\sqrt{q^{(T)}}$")
        lower.set_yscale("log")
        lengths_axis((upper, lower), chains.T.values.tolist())
        upper.set_xlabel("")
        legend_right(
            figure,
            [
                *cases_legend(chains.rho.values, chains.delta.values),
                handle("with selection", GREY, "o"),
                handle("without", GREY, "o", DASHED, filled=False),
                handle("Bayes limit", GREY, "", DOTTED),
            ],
        )
    return figure


def claims(data: Data) -> list[Claim]:
    chains = data["chains"].isel(heuristics=0)
    off = chains["one_minus_cosine"]
    growth = -off.diff("T") / off.isel(T=slice(0, -1)).values
    falls = int((growth < 0).sum())
    rhos = chains.rho.values.tolist()
    slopes = np.array(
        [
            np.mean(
                [
                    last_slope(chains.T, one.values)
                    for one in off.sel(rho=rho)
                    .stack(case=("delta", "selection"))
                    .transpose("case", "T")
                ]
            )
            for rho in rhos
        ]
    )
    slowest_first = [slopes[rhos.index(rho)] for rho in sorted(rhos)]
    return [
        Claim(
            "The cosine grows monotonically with the number of steps T (every case, every doubling).",
            falls == 0,
            f"It falls at {falls} of {growth.size} doublings; "
            f"the smallest relative change of 1 - cosine is {float(growth.min()):.3g}.",
            numbers(falls=falls, doublings=growth.size, smallest_growth=growth.min()),
        ),
        Claim(
            "The growth is slow when labels are biased (the power of T with which 1 - cosine falls "
            "at the end is weaker for every rho <= 0.4 than for rho = 0.5).",
            all(slopes[rhos.index(rho)] > slopes[rhos.index(0.5)] for rho in rhos if rho < 0.495),
            f"Powers by rho, mean of the cases: {listed(sorted(rhos), np.array(slowest_first))}.",
            numbers(**{f"power_{rho:g}": slope for rho, slope in zip(rhos, slopes, strict=True)}),
        ),
    ]


def caption(data: Data) -> str:
    return (
        r"Cosine between the weights after $T$ tuned steps and the cluster direction, raw (above) and "
        r"its deviation from one (below). Filled markers, solid lines: $\Gamma$ tuned; white markers, "
        r"dashed lines: $\Gamma = 0$; dotted: the cosine of the Bayes-optimal direction, "
        rf"$\sqrt M$. {RIDGES}, tuned for the error of the last step. "
        rf"Chosen: $(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$."
    )


FIGURE = Figure(
    "cosine",
    "Cosine with the cluster direction against the number of steps",
    "Section 4.1, `fig: cosine similarity`",
    tasks,
    draw,
    claims,
    caption,
)
