r"""Which of the two heuristics does it: neither, annealed labels only, a fixed bias only, both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sweeps import Grid, Task
from ..computations.ablation import ABLATION, WAYS
from ..figure import Claim, Data, Figure, Finding, Place, fixed
from ..judge import ROUNDING, listed, numbers
from ..ruling import Bar, above, below, decided, everywhere, positive
from ..setting import ALPHA_L, ALPHA_U, DELTA, RHOS, TUNED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

NEITHER, ANNEALING, BIAS, BOTH = range(len(WAYS))
STEPS = 16
LITTLE = Bar(0.05, "a fifth of what both together do at least")
MUCH = Bar(0.25, "a quarter of the error")


def tasks(quick: bool) -> Mapping[str, Task]:
    axes: dict[str, Any] = {"rho": RHOS[2:] if quick else RHOS}
    setting = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA, "steps": STEPS}
    return {"ways": Task(ABLATION, Grid(axes, setting))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import DOTTED, canvas, handle, legend_right
    from ...plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, styled

    ways = data["ways"]
    colors = (GREY, GREEN, BLUE, ORANGE)
    width = 0.8 / len(WAYS)
    with styled():
        figure, axes = canvas(1, 1, 7.2, 3.6)
        ax = axes[0, 0]
        places = np.arange(ways.rho.size)
        for way, color in enumerate(colors):
            ratio = (ways["error"] / ways["supervised"]).isel(way=way).values
            at = places + width * (way - 1.5)
            ax.bar(at, ratio, width * 0.92, color=color)
            for x, value in zip(at, ratio, strict=True):
                foot = {"ha": "center", "va": "bottom", "fontsize": 7, "color": "white"}
                ax.text(x, 0.04, f"{value:.2f}", **foot)  # lines cross the bars higher up
        for place, rho in zip(places, ways.rho.values, strict=True):
            one = ways.sel(rho=rho)
            for name, dashes in (("bayes", DOTTED), ("labeled_only", "solid")):
                height = float(one[name] / one["supervised"])
                ends = (place - 0.44, place + 0.44)
                ax.plot(ends, (height, height), color=BLACK, linestyle=dashes, linewidth=1.0)
        ax.set_ylim(0, 1.12 * float((ways["error"] / ways["supervised"]).max()))
        top = float(
            max(ax.get_ylim()[1], 1.08 * float((ways["labeled_only"] / ways["supervised"]).max()))
        )
        ax.set_ylim(0, top)
        ax.set_xticks(places, [rf"$\rho={rho:g}$" for rho in ways.rho.values])
        ax.set_ylabel(r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$")
        legend_right(
            figure,
            [
                *(
                    handle(name, color, "s", "none")
                    for name, color in zip(WAYS, colors, strict=True)
                ),
                handle("labelled points\nonly, tuned", BLACK),
                handle("Bayes limit", BLACK, "", DOTTED),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    return []


def findings(data: Data, full: bool) -> list[Finding]:
    ways = data["ways"]
    ratio = ways["error"] / ways["supervised"]
    skewed = ratio.sel(rho=[0.4, 0.2])
    alone = 1 - skewed.isel(way=[ANNEALING, BIAS]) / skewed.isel(way=NEITHER)
    both = 1 - skewed.isel(way=BOTH) / skewed.isel(way=NEITHER)
    return [
        Finding(
            says=(
                f"Neither heuristic does it alone: after {STEPS} steps at rho = 0.4 and 0.2"
                f" annealing alone lowers the error by less than {LITTLE.size:.0%}, a fixed bias"
                f" alone raises it, and both together lower it by more than {MUCH.size:.0%}."
            ),
            ruling=decided(
                below("largest gain of annealing alone", alone.isel(way=0).max(), LITTLE),
                positive("smallest loss of a fixed bias alone", -alone.isel(way=1).max()),
                above("smallest gain of both", both.min(), MUCH),
            ),
            found="Error over that of supervised learning (ridge in (0, 0.1]): "
            + "; ".join(
                f"rho = {float(rho):g}: {listed(WAYS, ratio.sel(rho=rho).values, '{:.3f}')}"
                for rho in ways.rho
            )
            + ".",
            numbers=numbers(
                **{
                    f"{WAYS[way].replace(' ', '_')}_{float(rho):g}": float(
                        ratio.sel(rho=rho).isel(way=way)
                    )
                    for rho in ways.rho
                    for way in range(len(WAYS))
                }
            ),
        ),
        Finding(
            says=(
                "More freedom is never worse (annealing within neither, both within a fixed bias;"
                " to 1e-9)."
            ),
            ruling=everywhere(
                full,
                below(
                    "largest loss by annealing",
                    (ratio.isel(way=ANNEALING) - ratio.isel(way=NEITHER)).max(),
                    ROUNDING,
                ),
                below(
                    "largest loss by annealing, bias fixed",
                    (ratio.isel(way=BOTH) - ratio.isel(way=BIAS)).max(),
                    ROUNDING,
                ),
            ),
            found=(
                "Best annealing with the bias trained by rho:"
                f" {listed(ways.rho, ways['annealing'].isel(way=ANNEALING).values)}; with it fixed:"
                f" {listed(ways.rho, ways['annealing'].isel(way=BOTH).values)}."
            ),
            numbers=numbers(largest=(ratio.isel(way=BOTH) / ratio.isel(way=BIAS)).max()),
        ),
    ]


def caption(data: Data) -> str:
    return (
        rf"Error after $T = {fixed(data['ways'], 'steps')}$ tuned steps over that of supervised"
        r" learning with $\alpha_L + \alpha_U T$ labelled points per feature (ridge in $(0,"
        r" 0.1]$), "
        r"with neither heuristic, with annealed labels only, with a fixed bias only, and with both."
        r" Lines: the best fit to the labelled points (solid) and the "
        r"Bayes limit (dotted), over the same denominator."
    )


FIGURE = Figure(
    "ablation",
    "The two heuristics apart",
    Place("beyond the paper, next to Figure 9, `fig: pseudo-label annealing`"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=(
        rf"$(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$ as in Section"
        rf" 3.4; {TUNED}."
    ),
    chosen=rf"$T = {STEPS}$, $\Gamma = 0$, $a \in [0, 10]$; the figure is ours.",
)
