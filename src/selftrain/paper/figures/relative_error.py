r"""$\epsilon_g^{(T)}/\epsilon_g^{(SL)}$: tuned self-training against supervised learning with as many labelled points."""

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

NEAR_ONE, FAR_FROM_ONE = 0.01, 0.05


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, selection=(False, True))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import draw_ratio
    from ...plots.style import styled

    with styled():
        return draw_ratio(
            data["chains"].isel(heuristics=0), "selection", "with selection", "without"
        )


def claims(data: Data) -> list[Claim]:
    chains = data["chains"].isel(heuristics=0)
    ratio = chains["error"] / chains["supervised"]
    last = ratio.isel(T=-1)
    longest = int(chains.T[-1])
    balanced = last.sel(rho=0.5)
    farthest = float(balanced.max())
    skewed = [rho for rho in chains.rho.values.tolist() if rho < 0.495]
    nearest = [float(last.sel(rho=rho).min()) for rho in skewed]
    slopes = [
        max(
            last_slope(chains.T, np.abs(one - 1).values)
            for one in ratio.sel(rho=rho).stack(case=("delta", "selection")).transpose("case", "T")
        )
        for rho in (0.5, *skewed)
    ]
    order = last.sel(rho=sorted(chains.rho.values.tolist(), reverse=True)).diff("rho")
    gain = (chains["error"] / chains["labeled_only"]).isel(T=-1)
    return [
        Claim(
            "Balanced classes, many steps: almost as good as supervised learning with true labels "
            f"(ratio below {1 + NEAR_ONE:g} at the largest T).",
            in_long_runs(farthest < 1 + NEAR_ONE, longest),
            f"At T = {longest} and rho = 0.5 the ratio is {farthest:.5f} or less.",
            numbers(ratio=farthest, T=longest),
        ),
        Claim(
            "Imbalanced classes: the error does not approach that of supervised learning, even with "
            f"tuned selection (ratio above {1 + FAR_FROM_ONE:g} at the largest T for rho <= 0.4, and "
            "its deviation from one falls more slowly than T^-0.1).",
            in_long_runs(min(nearest) > 1 + FAR_FROM_ONE and min(slopes[1:]) > -0.1, longest),
            f"Smallest ratio at T = {longest} by rho: {listed(skewed, np.array(nearest))}. "
            f"Power of T with which the deviation falls at the end: {listed(skewed, np.array(slopes[1:]))}, "
            f"{slopes[0]:.3g} at rho = 0.5.",
            numbers(
                smallest_ratio=min(nearest), slope_balanced=slopes[0], slope_skewed=min(slopes[1:])
            ),
        ),
        Claim(
            "The worse the imbalance, the worse the ratio (at the largest T, every case).",
            bool((order > 0).all()),
            f"Smallest increase from one rho to the next: {float(order.min()):.3g}. Ratios by rho, without "
            "selection: "
            + "; ".join(
                f"Delta = {delta:g}: "
                + listed(chains.rho, last.sel(delta=delta, selection=False).values, "{:.4f}")
                for delta in chains.delta.values
            )
            + ".",
            numbers(smallest_increase=order.min()),
        ),
        Claim(
            "Self-training still improves on the labelled points alone at their best ridge (at the largest "
            "T, every case).",
            bool((gain < 1).all()),
            f"Largest ratio of the errors: {float(gain.max()):.4f}.",
            numbers(largest_ratio=gain.max()),
        ),
        above_bayes(chains["error"], chains["bayes"]),
    ]


def caption(data: Data) -> str:
    return (
        r"Error of tuned self-training after $T$ steps over that of supervised learning with "
        r"$\alpha_L + \alpha_U T$ labelled points per feature, raw (above) and its deviation from one "
        r"(below). Filled markers, solid lines: $\Gamma$ tuned; white markers, dashed lines: "
        r"$\Gamma = 0$; dotted: the Bayes limit of the same data over the same denominator. "
        rf"Tuned for every $T$: {RIDGES}, $\Gamma \in [0, 3]$; supervised ridge in the same range. "
        rf"Chosen: $(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$."
    )


FIGURE = Figure(
    "relative-error",
    "Relative generalisation error against the number of steps",
    "Section 4.1, `fig: relative generalization error`",
    tasks,
    draw,
    claims,
    caption,
)
