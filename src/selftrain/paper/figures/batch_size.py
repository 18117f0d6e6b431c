r"""Relative error of balanced classes for batches from large to too small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...sweep import Grid, Task
from ..computations.chains import CHAIN
from ..figure import Claim, Data, Figure
from ..judge import above_bayes, at_the_end, in_long_runs, listed, numbers
from ..setting import ALPHA_L, DELTA, RIDGES, longest

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

BATCHES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
BATCHES_QUICK = (0.25, 0.75, 1.5, 4.0)
FAILS = 1.25


def chains(quick: bool) -> Task:
    r"""Balanced tuned runs for several $\alpha_U$, with and without selection."""
    axes = {
        "alpha_u": BATCHES_QUICK if quick else BATCHES,
        "selection": (False, True),
    }
    fixed = {
        "alpha_l": ALPHA_L,
        "rho": 0.5,
        "delta": DELTA,
        "heuristics": False,
        "longest": longest(quick),
    }
    return Task(CHAIN, Grid(axes, fixed))


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": chains(quick)}


def draw(data: Data) -> Drawing:
    from ...plots.paper import draw_batches
    from ...plots.style import styled

    found = data["chains"]
    with styled():
        figure = draw_batches(
            found, found["error"] / found["supervised"], found["bayes"] / found["supervised"]
        )
        ax = figure.axes[0]
        ax.set_ylabel(r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$")
        ticks = [value for value in (0.8, 0.9, 1, 1.2, 1.5, 2, 2.5) if value < ax.get_ylim()[1]]
        ax.set_yticks(ticks, [f"{value:g}" for value in ticks])
        ax.set_yticks([], minor=True)
    return figure


def claims(data: Data) -> list[Claim]:
    found = data["chains"]
    ratio = found["error"] / found["supervised"]
    last = at_the_end(ratio).min("selection")
    batches, longest_run = found.alpha_u.values, int(found.T[-1])
    failing = batches[last.values > FAILS]
    gain = 1 - ratio.sel(selection=True, drop=True) / ratio.sel(selection=False, drop=True)
    early, late = gain.where(gain["T"] <= 4, drop=True).max("T"), at_the_end(gain)
    faded = batches[ratio.isel(T=-1).isnull().all("selection").values]
    large = batches >= 1.5
    return [
        Claim(
            "The smaller the batches, the slower the approach to supervised learning (the ratio at "
            "the largest T grows as alpha_U falls).",
            in_long_runs(bool((np.diff(last.values) < 0).all()), longest_run),
            f"Ratio at T = {longest_run} by alpha_U: {listed(batches, last.values, '{:.4f}')}.",
            numbers(**{f"ratio_{a:g}": r for a, r in zip(batches, last.values, strict=True)}),
        ),
        Claim(
            f"Below some alpha_U the outcome is catastrophically poor (ratio above {FAILS:g} at the "
            "largest T, for the smallest batches and not for the largest).",
            in_long_runs(bool(0 < failing.size < batches.size), longest_run),
            f"So it is for alpha_U = {_these(failing)} at the largest T that has a solution. For alpha_U = "
            f"{_these(faded)} that is below {longest_run}: the weights shrink by a factor a step until "
            "they are gone.",
            numbers(largest_failing=failing.max(initial=0.0), T=longest_run),
        ),
        Claim(
            "Selection lowers the error drastically at few steps and hardly at many (alpha_U >= 1.5: "
            "5 % or more at T <= 4, less than 1 % at the largest T).",
            in_long_runs(
                bool((early.values[large] > 0.05).all() and (late.values[large] < 0.01).all()),
                longest_run,
            ),
            f"Reduction at T <= 4 by alpha_U: {listed(batches, early.values, '{:.1%}')}; at "
            f"T = {longest_run}: {listed(batches, late.values, '{:.2%}')}.",
            numbers(early=early.values[large].min(), late=late.values[large].max()),
        ),
        above_bayes(found["error"], found["bayes"]),
    ]


def _these(batches: Array) -> str:
    return ", ".join(f"{a:g}" for a in batches) or "none"


def caption(data: Data) -> str:
    return (
        r"Error after $T$ tuned steps over that of supervised learning with $\alpha_L + \alpha_U T$ "
        rf"labelled points per feature, $(\rho, \Delta) = (1/2, {DELTA:g})$, $\alpha_L = {ALPHA_L:g}$ (chosen), for "
        r"several $\alpha_U$ (chosen). Filled: $\Gamma$ tuned, white: $\Gamma = 0$; dotted: the Bayes limit "
        rf"over the same denominator. {RIDGES}, $\Gamma \in [0, 3]$, tuned for every $T$."
    )


FIGURE = Figure(
    "batch-size",
    "Relative error for different amounts of unlabelled data a step",
    "Section 4.1, `fig: partition dependence balanced`",
    tasks,
    draw,
    claims,
    caption,
)
