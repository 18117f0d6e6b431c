"""Annealed labels and a fixed bias against naive self-training, relative to supervised learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweeps import Task
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import above_bayes, last_slope, listed, numbers
from ..ruling import Bar, above, at_full_size, below, positive
from ..setting import OPEN_AMOUNTS, TUNED, cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CLOSE = Bar(0.05, "a twentieth, where naive self-training is off by a half and more")
SLOWLY = Bar(0.1, "with such a power ten times the steps take away a fifth")
SIGNIFICANT = Bar(0.2, "a fifth of the error")


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, heuristics=(False, True))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import draw_ratio
    from ...plots.style import styled

    with styled():
        return draw_ratio(
            data["chains"].isel(selection=0), "heuristics", "with heuristics", "naive"
        )


def claims(data: Data, full: bool) -> list[Claim]:
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
            quote=(
                "It is clearly shown that the performance is significantly improved by using the"
                " heuristics."
            ),
            test=(
                "At the largest T the error with the heuristics is below the naive one in every"
                f" imbalanced case, and by more than {SIGNIFICANT.size:.0%} at rho = 0.4 and 0.2."
            ),
            ruling=at_full_size(
                full,
                positive("smallest reduction", 1 - better.max()),
                above(
                    "smallest reduction at rho = 0.4 and 0.2",
                    1 - better.sel(rho=[0.4, 0.2]).max(),
                    SIGNIFICANT,
                ),
            ),
            found=(
                "Largest ratio of the errors with and without by rho: "
                f"{listed(rhos[rhos < 0.5], better.max('delta').values, '{:.4f}')}."
            ),
            numbers=numbers(largest_ratio=better.max()),
        ),
        Claim(
            quote=(
                "the generalization error obtained by ST with the heuristics is almost compatible"
                " with the supervised learning with true labels, even in the highly label"
                " imbalanced case $\\rho=0.2$"
            ),
            test=(
                "At rho = 0.2 and the largest T the ratio with the heuristics is below"
                f" {1 + CLOSE.size:g}."
            ),
            ruling=at_full_size(full, below("largest excess", skewed - 1, CLOSE)),
            found=(
                f"At T = {longest} it is {skewed:.4f} or less with the heuristics and "
                f"{float(naive.sel(rho=0.2).min()):.4f} or more without."
            ),
            numbers=numbers(helped=skewed, naive=naive.sel(rho=0.2).min(), T=longest),
        ),
        Claim(
            quote=(
                "Without the heuristics, the [deviation of the ratio from one] converges to a"
                " non-zero value even when almost label balanced case $\\rho=0.495$"
            ),
            test=(
                f"At rho = 0.495 the deviation falls more slowly than T^-{SLOWLY.size:g} over the"
                " last three lengths."
            ),
            ruling=at_full_size(full, below("fastest fall", -min(slopes), SLOWLY)),
            found=(
                f"It is {left:.3g} or more at T = {longest}, and falls with the power"
                f" {min(slopes):.3g} of T."
            ),
            numbers=numbers(deviation=left, power=min(slopes)),
        ),
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    chains = data["chains"].isel(selection=0)
    return [above_bayes(chains["error"], chains["bayes"], full)]


def caption(data: Data) -> str:
    return (
        r"Error after $T$ tuned steps over that of supervised learning with $\alpha_L + \alpha_U T$"
        r" labelled points per "
        r"feature: raw (a, b), its deviation from one (c, d), and what else could be the"
        r" denominator (e, f): supervised "
        r"learning at any ridge (dashed) and the Bayes limit (dotted), over the supervised error"
        r" with ridge in $(0, 0.1]$ "
        r"that the ratios use. Filled markers, solid lines: annealed labels and the bias of step 0;"
        r" white markers, dashed "
        r"lines: naive self-training. $\Gamma = 0$."
    )


FIGURE = Figure(
    "heuristics",
    "Relative error with annealed labels and a fixed bias",
    Place("Section 5.1", 9, "fig: pseudo-label annealing"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"$\rho = 0.495$ and $0.2$, $\Gamma = 0$; {TUNED}, and $a$ with the heuristics.",
    chosen=(
        rf"{OPEN_AMOUNTS}, $\rho$ and $\Delta$ of `relative-error`, $T$ up to 1024, $a \in [0,"
        r" 10]$."
    ),
)
