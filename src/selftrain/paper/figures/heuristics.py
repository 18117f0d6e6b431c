"""Annealed labels and a fixed bias against naive self-training, relative to supervised learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Task
from ..figure import Claim, Data, Figure
from ..judge import above_bayes, in_long_runs, last_slope, listed, numbers
from ..setting import ALPHA_L, ALPHA_U, RIDGES, cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CLOSE = 0.05


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, heuristics=(False, True))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import draw_ratio
    from ...plots.style import styled

    with styled():
        return draw_ratio(
            data["chains"].isel(selection=0), "heuristics", "with heuristics", "naive"
        )


def claims(data: Data) -> list[Claim]:
    chains = data["chains"].isel(selection=0)
    ratio = chains["error"] / chains["supervised"]
    last = ratio.isel(T=-1)
    helped, naive = last.sel(heuristics=True), last.sel(heuristics=False)
    longest = int(chains.T[-1])
    skewed = float(helped.sel(rho=0.2).max())
    rhos = chains.rho.values
    better = (helped / naive).where(chains.rho < 0.5, drop=True)
    nearly = ratio.sel(rho=0.495, heuristics=False)
    slopes = [
        last_slope(chains.T, np.abs(one - 1).values) for one in nearly.transpose("delta", "T")
    ]
    left = float(abs(nearly.isel(T=-1) - 1).min())
    return [
        Claim(
            "With both heuristics self-training is nearly as good as supervised learning even at "
            f"rho = 0.2 (ratio below {1 + CLOSE:g} at the largest T).",
            in_long_runs(skewed < 1 + CLOSE, longest),
            f"At T = {longest} and rho = 0.2 the ratio is {skewed:.4f} or less with the heuristics "
            f"and {float(naive.sel(rho=0.2).min()):.4f} or more without.",
            numbers(helped=skewed, naive=naive.sel(rho=0.2).min(), T=longest),
        ),
        Claim(
            "The heuristics improve every imbalanced case (at the largest T).",
            bool((better < 1).all()),
            f"Largest ratio of the errors with and without by rho: "
            f"{listed(rhos[rhos < 0.5], better.max('delta').values, '{:.4f}')}.",
            numbers(largest_ratio=better.max()),
        ),
        Claim(
            "Without the heuristics the deviation from one converges to a value that is not zero even "
            "at rho = 0.495 (it falls more slowly than T^-0.1 at the end).",
            in_long_runs(min(slopes) > -0.1, longest),
            f"It is still {left:.3g} or more at T = {longest}, and falls with the power "
            f"{min(slopes):.3g} of T over the last three lengths.",
            numbers(deviation=left, power=min(slopes)),
        ),
        above_bayes(chains["error"], chains["bayes"]),
    ]


def caption(data: Data) -> str:
    return (
        r"Error after $T$ tuned steps over that of supervised learning with $\alpha_L + \alpha_U T$ "
        r"labelled points per feature, raw (above) and its deviation from one (below). Filled "
        r"markers, solid lines: annealed labels and the bias of step 0; white markers, dashed lines: "
        r"naive self-training; dotted: the Bayes limit over the same denominator. $\Gamma = 0$. "
        rf"Tuned for every $T$: {RIDGES}, and $a \in [0, 10]$ with the heuristics. "
        rf"Chosen: $(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$."
    )


FIGURE = Figure(
    "heuristics",
    "Relative error with annealed labels and a fixed bias",
    "Section 5.1, `fig: pseudo-label annealing`",
    tasks,
    draw,
    claims,
    caption,
)
