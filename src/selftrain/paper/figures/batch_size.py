r"""Relative error of balanced classes for batches from large to too small, and its limit for ever
more steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...sweeps import Grid, Task
from ..computations.chains import CHAIN
from ..computations.endless import ENDLESS
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import above_bayes, listed, numbers
from ..ruling import Bar, above, at_full_size, below, decided, positive
from ..setting import ALPHA_L, DELTA, TUNED, longest

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

BATCHES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
BATCHES_QUICK = (0.25, 0.75, 1.5, 4.0)
THRESHOLD = 1.0
r"""Below this $\alpha_U$ no number of steps leads to supervised learning."""

POOR = Bar(0.25, "a quarter above supervised learning; larger batches end within a hundredth")
DRASTIC = Bar(0.05, "a twentieth of the error is visible in the figure")
MINOR = Bar(0.01, "a hundredth is the width of a line in the figure")
COME = Bar(1e-3, "a tenth of what the figure shows")
AWAY = Bar(0.05, "fifty times that")
SAME = Bar(1e-6, "the accuracy of a search")


def chains(quick: bool) -> Task:
    r"""Balanced tuned runs for several $\alpha_U$, with and without selection."""
    axes = {"alpha_u": BATCHES_QUICK if quick else BATCHES, "selection": (False, True)}
    fixed = {
        "alpha_l": ALPHA_L,
        "rho": 0.5,
        "delta": DELTA,
        "heuristics": False,
        "longest": longest(quick),
    }
    return Task(CHAIN, Grid(axes, fixed))


def tasks(quick: bool) -> Mapping[str, Task]:
    amounts = tuple(np.round(np.arange(0.05, 1.0, 0.05), 12).tolist())
    near = (0.98, 0.99, 0.995, 0.999, 1.0, 1.001, 1.005, 1.01, 1.02, 1.05, 1.1, 1.2)
    axes: dict[str, Any] = {"alpha_u": (*amounts, *near)}
    return {"chains": chains(quick), "endless": Task(ENDLESS, Grid(axes, {"delta": DELTA}))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DASHED,
        batch_colors,
        canvas,
        draw_batches,
        handle,
        legend_right,
        letter,
        ratio_ticks,
    )
    from ...plots.style import BLACK, GREY, styled

    found, endless = data["chains"], data["endless"]
    ratio = found["error"] / found["supervised"]
    with styled():
        figure, axes = canvas(1, 3, 11.4, 3.9)
        without, chosen, limit = axes[0]
        for ax, selection in ((without, False), (chosen, True)):
            draw_batches(ax, ratio.sel(selection=selection), selection)
            ax.set_title(r"$\Gamma$ tuned" if selection else r"$\Gamma = 0$")
        without.set_ylabel(r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$")
        chosen.sharey(without)
        ratio_ticks((without,))
        for side in (endless.alpha_u <= THRESHOLD, endless.alpha_u > THRESHOLD):
            part = endless.sel(alpha_u=side)
            limit.plot(part.alpha_u, part["ratio"], color=BLACK, linewidth=1.2)
        limit.axvline(THRESHOLD, color=GREY, linestyle=DASHED, linewidth=0.9)
        limit.set_xlabel(r"$\alpha_U$")
        limit.set_title(r"$T \to \infty$, $\Gamma = 0$")
        limit.set_ylabel(r"$\epsilon_g^{(\infty)}$ over that of the best direction")
        ratio_ticks((limit,))
        letter(axes[0])
        legend_right(
            figure,
            [
                *(
                    handle(rf"$\alpha_U={alpha:g}$", color, "o")
                    for alpha, color in batch_colors(found).items()
                ),
                handle(r"$\alpha_U = 1$", GREY, "", DASHED),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    found = data["chains"]
    ratio = found["error"] / found["supervised"]
    batches, longest_run = found.alpha_u.values, int(found.T[-1])
    last = ratio.isel(T=-1).min("selection")
    gain = 1 - ratio.sel(selection=True, drop=True) / ratio.sel(selection=False, drop=True)
    early, late = gain.where(gain["T"] <= 4, drop=True).max("T"), gain.isel(T=-1)
    enough = batches >= 1.5
    fall = -np.diff(np.log(found["error"].sel(selection=True).values), axis=-1)[enough]
    poor = batches[last.values - 1 > POOR.size]
    return [
        Claim(
            quote=(
                "PLS drastically reduces the generalization error when the total number of"
                " iterations is small."
            ),
            test=(
                f"At some T <= 4 selection lowers the error by {DRASTIC.size:.0%} or more, for"
                " every alpha_U >= 1.5."
            ),
            ruling=at_full_size(
                full, above("smallest of the best reductions", early.values[enough].min(), DRASTIC)
            ),
            found=(
                "Largest reduction at T <= 4 by alpha_U:"
                f" {listed(batches, early.values, '{:.1%}')}."
            ),
            numbers=numbers(smallest=early.values[enough].min(), largest=early.values.max()),
        ),
        Claim(
            quote=(
                "as $T$ grows, the effect of PLS becomes minor and the decrease of the"
                " generalization error gets slower"
            ),
            test=(
                f"For alpha_U >= 1.5 selection lowers the error by less than {MINOR.size:.0%} at"
                " the largest T, and the error with selection falls less over the last doubling of"
                " T than over the first."
            ),
            ruling=at_full_size(
                full,
                below("largest reduction at the end", late.values[enough].max(), MINOR),
                positive("smallest slowing", (fall[:, 0] - fall[:, -1]).min()),
            ),
            found=(
                f"Reduction at T = {longest_run} by alpha_U:"
                f" {listed(batches, late.values, '{:.2%}')}. Fall of the error over the first"
                f" doubling: {listed(batches[enough], fall[:, 0], '{:.1%}')}; over the last:"
                f" {listed(batches[enough], fall[:, -1], '{:.2%}')}."
            ),
            numbers=numbers(late=late.values[enough].max(), last_fall=fall[:, -1].max()),
        ),
        Claim(
            quote=(
                "as the size of the unlabeled data used at each iteration $\\alpha_U$ decreases,"
                " the approach to the supervised loss becomes slower"
            ),
            test=(
                "The ratio at the largest T grows as alpha_U falls (the better of with and without"
                " selection)."
            ),
            ruling=at_full_size(full, positive("smallest increase", -np.diff(last.values).max())),
            found=(
                f"Ratio at T = {longest_run} by alpha_U: {listed(batches, last.values, '{:.4f}')}."
            ),
            numbers=numbers(
                **{f"ratio_{a:g}": r for a, r in zip(batches, last.values, strict=True)}
            ),
        ),
        Claim(
            quote=(
                "the performance is catastrophically poor when $\\alpha_U$ is smaller than some"
                " threshold"
            ),
            test=(
                f"At the largest T the ratio is above {1 + POOR.size:g} for the smallest batches"
                " and below it for the largest."
            ),
            ruling=at_full_size(
                full,
                above("excess of the smallest batches", last.values[0] - 1, POOR),
                below("excess of the largest batches", last.values[-1] - 1, POOR),
            ),
            found=(
                f"It is above at T = {longest_run} for alpha_U = {_these(poor)}. With ever more"
                f" steps the threshold is alpha_U = {THRESHOLD:g}: see the findings."
            ),
            numbers=numbers(largest_poor=poor.max(initial=0.0)),
        ),
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    endless = data["endless"]
    under = endless["ratio"].sel(alpha_u=endless.alpha_u < THRESHOLD)
    over = endless["ratio"].sel(alpha_u=endless.alpha_u > THRESHOLD)
    at = float(endless["ratio"].sel(alpha_u=THRESHOLD))
    ridge = endless["lambda_u"]
    found = data["chains"]
    shown = [0.25, 0.5, 0.75]
    ratios = np.array([float(endless["ratio"].sel(alpha_u=a)) for a in shown])
    ridges = np.array([float(ridge.sel(alpha_u=a)) for a in shown])
    return [
        Finding(
            says=(
                "The threshold is alpha_U = 1. As T goes to infinity (Gamma = 0, best ridge in (0,"
                " 0.1]) the error comes to that of the best direction above it (ratio below 1.001"
                " for alpha_U >= 1.001), and stays away from it below (above 1.05)."
            ),
            ruling=decided(
                below("largest excess above", over.max() - 1, COME),
                above("smallest excess below", under.min() - 1, AWAY),
            ),
            found=(
                "Ratio by alpha_U:"
                f" {listed(shown, ratios, '{:.4f}')},"
                f" {float(under[-1]):.4f} at {float(under.alpha_u[-1]):g}, {at:.4f} at 1,"
                f" {float(over[0]):.6f} at {float(over.alpha_u[0]):g}. Best ridge by alpha_U:"
                f" {listed(shown, ridges)}"
                " (the bound is 0.1)."
            ),
            numbers=numbers(largest_above=over.max(), smallest_below=under.min(), at_one=at),
        ),
        Finding(
            says=(
                "Runs of small batches have come to their limit at the largest T (error at alpha_U"
                " = 0.25, 0.5 and 0.75, without selection, within 1e-6 of the limit)."
            ),
            ruling=at_full_size(full, below("largest distance", _limit_gap(data), SAME)),
            found="Error at the largest T: "
            + listed(
                found.alpha_u.values[found.alpha_u.values < THRESHOLD],
                found["error"]
                .sel(selection=False)
                .isel(T=-1)
                .values[found.alpha_u.values < THRESHOLD],
                "{:.6f}",
            )
            + f"; largest relative distance from the limit {_limit_gap(data):.1e}.",
            numbers=numbers(distance=_limit_gap(data)),
        ),
        above_bayes(found["error"], found["bayes"], full),
    ]


def _limit_gap(data: Data) -> float:
    """The largest relative distance of the longest runs of small batches from their limit."""
    last = data["chains"]["error"].sel(selection=False).isel(T=-1)
    small = [a for a in last.alpha_u.values.tolist() if a < THRESHOLD]
    limits = data["endless"]["error"].sel(alpha_u=small).values
    return float(np.abs(last.sel(alpha_u=small).values / limits - 1).max())


def _these(batches: Array) -> str:
    return ", ".join(f"{a:g}" for a in batches) or "none"


def caption(data: Data) -> str:
    return (
        r"Error after $T$ tuned steps over that of supervised learning with $\alpha_L + \alpha_U T$"
        r" labelled points per feature (its "
        r"ridge in $(0, 0.1]$ too), without selection (a) and with (b). (c): the limit of ever more"
        r" steps at the best "
        r"ridge, over the error of the best direction, $H(1/\sqrt\Delta)$; above $\alpha_U = 1$ it"
        r" is one, reached with a ridge that goes to zero. Where weights fade to "
        r"less than any number, their direction goes on."
    )


FIGURE = Figure(
    "batch-size",
    "Relative error for different amounts of unlabelled data per step",
    Place("Section 4.1", 6, "fig: partition dependence balanced"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"$(\rho, \Delta) = (1/2, 0.75^2)$; {TUNED}.",
    chosen=(
        rf"$\alpha_L = {ALPHA_L:g}$; the $\alpha_U$ drawn; $T$ up to 1024; $\Gamma \in [0, 3]$;"
        r" panel (c) is ours."
    ),
)
