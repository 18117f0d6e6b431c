r"""Distributions of weights and training logits for three $\rho$ and two $N$."""

from __future__ import annotations

from itertools import product

from ...plots import paper_figures as pic
from ..entry import Data, Drawn, Tasks
from ..ruling import Judged
from .weights_logits import KINDS, draw_kind, finite_systems, judge_law, step_legend

RHOS = (0.5, 0.495, 0.4)
SIZES = (2**10, 2**13)


def tasks(quick: bool) -> Tasks:
    return finite_systems(RHOS, SIZES, quick)


def draw(data: Data) -> Drawn:
    drawn = data["drawn"]
    rhos = drawn.rho.values.tolist()
    panels = list(product(KINDS, SIZES, rhos))
    figure, axes = pic.canvas(len(panels) // len(rhos), len(rhos), 3.1 * len(rhos) + 0.9, 8.6)
    for ax, (kind, features, rho) in zip(axes.ravel(), panels, strict=True):
        draw_kind(ax, drawn.sel(rho=rho, features=features), kind)
        ax.set_title(rf"{kind}, $N={features}$, $\rho={rho:g}$", fontsize=8)
    return figure, step_legend(drawn)


def judge(data: Data) -> list[Judged]:
    return [
        judge_law(f"N{features}", data, kind, rho, features)
        for features, rho, kind in product(SIZES, RHOS, KINDS)
        if (features, rho) != (2**13, 0.4)  # Figure 1
    ]
