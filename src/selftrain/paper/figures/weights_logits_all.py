r"""Weights and training logits against their laws: $\rho = 0.5, 0.495, 0.4$, $N = 2^{10}, 2^{13}$."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...sweep import Task
from ..figure import Claim, Data, Figure
from .weights_logits import KINDS, caption, draw_kind, histograms, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

RHOS = (0.5, 0.495, 0.4)
SIZES = (2**10, 2**13)


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"systems": histograms(RHOS, SIZES, quick)}


def draw(data: Data) -> Drawing:
    from ...plots.paper import canvas
    from ...plots.style import styled

    systems = data["systems"].isel(seed=0)
    rows = [(kind, features) for kind in KINDS for features in SIZES]
    with styled():
        figure, axes = canvas(len(rows), len(RHOS), 9.6, 8.6)
        for row, (kind, features) in zip(axes, rows, strict=True):
            for ax, rho in zip(row, RHOS, strict=True):
                draw_kind(ax, systems.sel(rho=rho, features=features), kind)
                ax.set_title(rf"{KINDS[kind]},  $(N, \rho) = ({features}, {rho:g})$", fontsize=8)
        axes[0, 0].legend()
    return figure


def claims(data: Data) -> list[Claim]:
    return [
        claim
        for rho in RHOS
        for features in SIZES
        for claim in judge(data["systems"], rho, features)
    ]


FIGURE = Figure(
    "weights-logits-all",
    "Laws of weights and logits, all panels of the appendix",
    "Appendix, `fig: empirical dist with experiment`",
    tasks,
    draw,
    claims,
    caption,
)
