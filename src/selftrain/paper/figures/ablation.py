"""Ablation of the two heuristics: neither, annealed labels only, a fixed bias only, both."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.two_heuristics import ABLATION, WAYS
from ..entry import Claims, Data, Drawn, Tasks, fixed
from ..judge import ROUNDING, listed, listed_by
from ..ruling import Bar, above, below, decided, everywhere, positive
from ..setting import AMOUNTS, RHOS

NEITHER, ANNEALING, BIAS, BOTH = range(len(WAYS))
STEPS = 16
LITTLE = Bar(0.05, "a fifth of what both together do at least")
MUCH = Bar(0.25, "a quarter of the error")


def tasks(quick: bool) -> Tasks:
    axes = {"rho": RHOS[2:] if quick else RHOS}
    return {"ways": Task(ABLATION, Grid(axes, {**AMOUNTS, "steps": STEPS}))}


def draw(data: Data) -> Drawn:
    ways = data["ways"]
    colors = (style.GREY, style.GREEN, style.BLUE, style.ORANGE)
    width = 0.8 / len(WAYS)
    figure, axes = pic.canvas(1, 1, 7.2, 3.6)
    ax = axes[0, 0]
    places = np.arange(ways.rho.size)
    over = ways / ways["supervised"]
    for way, color in enumerate(colors):
        ratio = over["error"].isel(way=way).values
        at = places + width * (way - 1.5)
        ax.bar(at, ratio, width * 0.92, color=color)
        for x, value in zip(at, ratio, strict=True):
            foot = {"ha": "center", "va": "bottom", "fontsize": 7, "color": "white"}
            ax.text(x, 0.04, f"{value:.2f}", **foot)  # lines cross the bars higher up
    for name, dashes in (("bayes", pic.DOTTED), ("labeled_only", "solid")):
        for place, height in zip(places, over[name].values, strict=True):
            pic.reference(ax, (place - 0.44, place + 0.44), (height,) * 2, style.BLACK, dashes)
    ax.set_ylim(0, max(1.12 * float(over["error"].max()), 1.08 * float(over["labeled_only"].max())))
    ax.set_xticks(places, [rf"$\rho={rho:g}$" for rho in ways.rho.values])
    ax.set_ylabel(r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$")
    return figure, [
        *(pic.handle(name, color, "s", "none") for name, color in zip(WAYS, colors, strict=True)),
        pic.handle("labelled samples\nonly, tuned", style.BLACK),
        pic.handle("Bayes error", style.BLACK, "", pic.DOTTED),
    ]


def judge(data: Data) -> Claims:
    ways = data["ways"]
    ratio = ways["error"] / ways["supervised"]
    skewed = ratio.sel(rho=[0.4, 0.2])
    gain = 1 - skewed / skewed.isel(way=NEITHER)
    of_way = [ratio.isel(way=way) for way in range(len(WAYS))]
    best = ways["annealing"]
    yield decided(
        "neither-alone",
        "Error over that of supervised learning (ridge in (0, 0.1]): "
        f"{listed_by('rho', ratio, '{:.3f}', names=WAYS)}.",
        below("largest gain of annealing alone", gain.isel(way=ANNEALING).max(), LITTLE),
        positive("smallest loss of a fixed bias alone", -gain.isel(way=BIAS).max()),
        above("smallest gain of both", gain.isel(way=BOTH).min(), MUCH),
    )
    yield everywhere(
        "more-freedom",
        f"Best annealing with the bias trained by rho: {listed(best.isel(way=ANNEALING))};"
        f" with it fixed: {listed(best.isel(way=BOTH))}.",
        below(
            "largest loss by annealing",
            (of_way[ANNEALING] - of_way[NEITHER]).max(),
            ROUNDING,
        ),
        below(
            "largest loss by annealing, bias fixed",
            (of_way[BOTH] - of_way[BIAS]).max(),
            ROUNDING,
        ),
    )


def caption_values(data: Data) -> dict[str, Any]:
    return {"T": fixed(data["ways"], "steps")}
