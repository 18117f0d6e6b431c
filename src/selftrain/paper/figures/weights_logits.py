r"""Weights and training logits of a finite system against their laws, $\rho = 0.4$, $N = 2^{13}$."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ...sweep import Grid, Task
from ..computations.finite import HISTOGRAM
from ..figure import Claim, Data, Figure
from ..judge import numbers
from ..setting import ALPHA_L, ALPHA_U, DELTA, EXPERIMENT

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SHOWN = (1, 6, 11, 16)
SEEDS, SEEDS_QUICK = 16, 4
KINDS = {"weights": r"weights  $w_i^{(t)}$", "logits": r"logits  $u_\nu^{(t)}$"}
LEVEL = 1e-3


def histograms(rhos: Sequence[float], sizes: Sequence[int], quick: bool) -> Task:
    """Several systems for each rho and N; the first is drawn."""
    seeds = tuple(range(SEEDS_QUICK if quick else SEEDS))
    axes: dict[str, Any] = {"rho": tuple(rhos), "features": tuple(sizes), "seed": seeds}
    return Task(HISTOGRAM, Grid(axes, {**EXPERIMENT, "shown": SHOWN}))


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"systems": histograms((0.4,), (2**13,), quick)}


def draw(data: Data) -> Drawing:
    from ...plots.paper import canvas
    from ...plots.style import styled

    one = data["systems"].isel(rho=0, features=0, seed=0)
    with styled():
        figure, axes = canvas(1, 2, 8.4, 3.4)
        for ax, (kind, title) in zip(axes[0], KINDS.items(), strict=True):
            draw_kind(ax, one, kind)
            ax.set_title(title)
        axes[0, 0].set_ylabel("density")
        axes[0, 0].legend()
    return figure


def draw_kind(ax: Axes, one: xr.Dataset, kind: str) -> None:
    """Histograms of one system and the densities of their laws, a colour for each step."""
    from ...plots.style import BLUE, GREEN, ORANGE, YELLOW

    colors = (BLUE, GREEN, YELLOW, ORANGE)
    for index, color in enumerate(colors[: one.step.size]):
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


def claims(data: Data) -> list[Claim]:
    return judge(data["systems"], 0.4, 2**13)


def judge(systems: xr.Dataset, rho: float, features: int) -> list[Claim]:
    """Whether the laws lie within chance of what the systems show."""
    here = systems.sel(rho=rho, features=features)
    seeds = here.seed.size
    claimed = []
    for kind in KINDS:
        gap = here[f"{kind}_share"].mean("seed") - here[f"{kind}_law"].isel(seed=0)
        spread = here[f"{kind}_share"].std("seed", ddof=1)
        z = abs(gap) / (spread / np.sqrt(seeds))
        limit = float(stats.t.isf(LEVEL / (2 * z.size), seeds - 1))
        distance = float(abs(gap).max())
        single = float(abs(here[f"{kind}_share"] - here[f"{kind}_law"]).isel(seed=0).max())
        claimed.append(
            Claim(
                f"rho = {rho:g}, N = {features:,}: the {kind} follow their law (no share of {z.size}, "
                f"averaged over {seeds} systems, is farther from the law than chance explains at "
                f"level {LEVEL:g}).",
                bool(float(z.max()) < limit),
                f"Largest |z| {float(z.max()):.2f}, limit {limit:.2f}; largest difference of the "
                f"distribution functions {distance:.2g} (the system drawn: {single:.2g}).",
                numbers(z=z.max(), limit=limit, distance=distance, distance_drawn=single),
            )
        )
    return claimed


def caption(data: Data) -> str:
    return (
        r"Weights (left) and logits of the training points that selection kept (right) of one finite "
        r"system (histograms), and the predicted laws (lines), at several steps of $T = 16$; "
        rf"$(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$, ridges in $(0, 0.1]$ and threshold tuned "
        r"for the last error. Points that selection rejected are left out. Weights are in units where every "
        r"entry of $v$ is 1. Drawn is the system of seed 0; the claims use all seeds."
    )


FIGURE = Figure(
    "weights-logits",
    "Laws of weights and logits: a finite system against theory",
    "Section 3.4, `fig: representative empirical dist with experiment`",
    tasks,
    draw,
    claims,
    caption,
)
