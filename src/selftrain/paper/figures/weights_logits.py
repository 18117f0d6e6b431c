r"""Weights and training logits of a finite system against their laws, $\rho = 0.4$, $N =
2^{13}$.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sweeps import Grid, Task
from ..computations.finite import HISTOGRAM, SHARES
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import Agreement, agreement, by_size, numbers
from ..ruling import Bar, at_full_size
from ..setting import ALPHA_L, ALPHA_U, DELTA, EXPERIMENT

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SHOWN = (1, 6, 11, 16)
SEEDS, SEEDS_QUICK = {2**10: 256, 2**13: 64}, 4
KINDS = {"weights": r"weights  $w_i^{(t)}$", "logits": r"logits  $u_\nu^{(t)}$"}
ALMOST_COMPLETE = Bar(0.03, "1/sqrt(1024): what chance makes of a sample of 1024")
GOOD = Bar(0.06, "twice what counts as almost complete")
"""Distances of distribution functions."""


def systems(rhos: Sequence[float], sizes: Sequence[int], quick: bool) -> dict[str, Task]:
    """One system for each rho and N that is drawn, and several that are judged."""
    fixed: dict[str, Any] = {**EXPERIMENT, "shown": SHOWN}
    axes: dict[str, Any] = {"rho": tuple(rhos)}
    drawn = Grid({**axes, "features": tuple(sizes)}, {**fixed, "seed": 0})
    tasks = {"drawn": Task(HISTOGRAM, drawn)}
    for features in sizes:
        seeds = tuple(range(SEEDS_QUICK if quick else SEEDS[features]))
        grid = Grid({**axes, "seed": seeds}, {**fixed, "features": features})
        tasks[f"N{features}"] = Task(SHARES, grid)
    return tasks


def tasks(quick: bool) -> Mapping[str, Task]:
    return systems((0.4,), (2**13,), quick)


def draw(data: Data) -> Drawing:
    from ...plots.paper import canvas, legend_right, letter
    from ...plots.style import styled

    drawn = data["drawn"].isel(features=0)
    rhos = drawn.rho.values.tolist()
    with styled():
        figure, axes = canvas(len(rhos), 2, 8.4, 2.9 * len(rhos) + 0.5)
        for row, rho in zip(axes, rhos, strict=True):
            for ax, (kind, title) in zip(row, KINDS.items(), strict=True):
                draw_kind(ax, drawn.sel(rho=rho), kind)
                ax.set_title(title + (rf",  $\rho={rho:g}$" if len(rhos) > 1 else ""))
            row[0].set_ylabel("density")
        letter(axes.ravel())
        legend_right(figure, step_handles(drawn))
    return figure


def step_colors() -> tuple[str, ...]:
    """A colour for each step."""
    from ...plots.style import BLUE, GREEN, ORANGE, YELLOW

    return (BLUE, GREEN, YELLOW, ORANGE)


def step_handles(one: xr.Dataset) -> list[Any]:
    """The entries of the legend."""
    from ...plots.paper import handle

    steps = zip(one.step.values, step_colors(), strict=False)
    return [handle(f"$t={int(step)}$", color) for step, color in steps]


def draw_kind(ax: Axes, one: xr.Dataset, kind: str) -> None:
    """Histograms of one system and the densities of their laws."""
    for index, color in enumerate(step_colors()[: one.step.size]):
        at = one.isel(step=index)
        ax.stairs(
            at[f"{kind}_histogram"].values,
            at[f"{kind}_edge"].values,
            fill=True,
            color=color,
            alpha=0.3,
        )
        ax.plot(
            at[f"{kind}_curve"],
            at[f"{kind}_density"],
            color=color,
            linewidth=1.2,
            label=f"$t={int(at.step)}$",
        )
    ax.set_ylim(bottom=0)


def claims(data: Data, full: bool) -> list[Claim]:
    from .macroscopic import OVERALL

    return [judge(data, kind, 0.4, 2**13, OVERALL, full) for kind in KINDS]


def findings(data: Data, full: bool) -> list[Finding]:
    return []


def compare(systems: xr.Dataset, kind: str) -> Agreement:
    """Shares of the samples below some points against the law, the mean of all systems."""
    gap = systems[f"{kind}_share"].mean("seed") - systems[f"{kind}_law"].isel(seed=0)
    seeds = systems.seed.size
    error = systems[f"{kind}_share"].std("seed", ddof=1) / np.sqrt(seeds)
    return agreement(gap, error, seeds)


def judge(data: Data, kind: str, rho: float, features: int, quote: str, full: bool) -> Claim:
    """Whether the law is where the systems are."""
    here = dict(by_size(data))[features].sel(rho=rho)
    bar = ALMOST_COMPLETE if features > 1024 else GOOD
    found = compare(here, kind)
    single = float(abs(here[f"{kind}_share"] - here[f"{kind}_law"]).isel(seed=0).max())
    return Claim(
        case=f"{kind}, rho = {rho:g}, N = {features}",
        quote=quote,
        test=(
            f"The distribution function of the {kind}, averaged over {here.seed.size} systems, is"
            f" within {bar.size:g} of the law at 25 points of every step shown, each with a"
            " confidence of 95 %."
        ),
        ruling=at_full_size(full, found.within("largest difference", bar)),
        found=(
            f"Largest difference {found.largest:.2g}, at most {found.at_most:.2g}; one of"
            f" {found.detectable:.2g} would be seen with a power of 90 %. The system drawn differs"
            f" by {single:.2g}."
        ),
        numbers=numbers(
            distance=found.largest,
            at_most=found.at_most,
            detectable=found.detectable,
            distance_drawn=single,
        ),
    )


def caption(data: Data) -> str:
    return (
        r"Weights and logits of the training points that selection kept, of one finite system"
        r" (histograms), and the predicted laws "
        r"(lines), at several steps. Points that selection rejected are left out. Weights are in"
        r" units where every entry of $v$ is 1. "
        r"Drawn is the system of seed 0; the claims use all seeds."
    )


FROM_PAPER = (
    rf"$T = 16$, $t$ = 1, 6, 11, 16, $(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g},"
    rf" {DELTA:g})$, $\lambda_L$, $\lambda_U$ in $(0, 0.1)$ "
    r"and $\Gamma$ tuned for the last error"
)

FIGURE = Figure(
    "weights-logits",
    "Laws of weights and logits: a finite system against theory",
    Place("Section 3.4", 1, "fig: representative empirical dist with experiment"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"{FROM_PAPER}, $\rho = 0.4$, $N = 2^{{13}}$.",
    chosen=r"the number of systems judged, 64; $\Gamma \in [0, 3]$.",
)
