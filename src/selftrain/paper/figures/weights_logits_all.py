r"""Weights and training logits against their laws: $\rho = 0.5, 0.495, 0.4$, $N = 2^{10},
2^{13}$.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...sweeps import Task
from ..figure import Claim, Data, Figure, Finding, Place
from .weights_logits import (
    FROM_PAPER,
    KINDS,
    caption,
    draw_kind,
    judge,
    step_handles,
    systems,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

QUOTES = {
    2**10: (
        "The figure shows that the empirical distributions of both the weight vector and the logits"
        " at each iteration step are in good agreement even at $N=1024$."
    ),
    2**13: "the results of $N=8192$ show almost complete agreement with the RS solution",
}
RHOS = (0.5, 0.495, 0.4)
SIZES = (2**10, 2**13)


def tasks(quick: bool) -> Mapping[str, Task]:
    return systems(RHOS, SIZES, quick)


def draw(data: Data) -> Drawing:
    from ...plots.paper import canvas, legend_right, letter
    from ...plots.style import styled

    drawn = data["drawn"]
    rows = [(kind, features) for kind in KINDS for features in SIZES]
    rhos = drawn.rho.values.tolist()
    with styled():
        figure, axes = canvas(len(rows), len(rhos), 3.1 * len(rhos) + 0.9, 8.6)
        for row, (kind, features) in zip(axes, rows, strict=True):
            for ax, rho in zip(row, rhos, strict=True):
                draw_kind(ax, drawn.sel(rho=rho, features=features), kind)
                ax.set_title(rf"{kind}, $N={features}$, $\rho={rho:g}$", fontsize=8)
        letter(axes.ravel())
        legend_right(figure, step_handles(drawn))
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    return [
        judge(data, kind, rho, features, QUOTES[features], full)
        for features in SIZES
        for rho in RHOS
        for kind in KINDS
        if (features, rho) != (2**13, 0.4)  # Figure 1
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    return []


FIGURE = Figure(
    "weights-logits-all",
    "Laws of weights and logits, all panels of the appendix",
    Place("Appendix B", 11, "fig: empirical dist with experiment"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"{FROM_PAPER}, $\rho$ = 0.5, 0.495, 0.4, $N$ = 1024, 8192.",
    chosen=(
        r"the number of systems judged, 256 at $N = 1024$ and 64 at 8192; $\Gamma \in [0, 3]$."
    ),
)
