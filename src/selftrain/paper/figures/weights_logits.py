r"""Distributions of weights and training logits, finite system and theory, $\rho = 0.4$."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.finite import HISTOGRAM, SHARES
from ..entry import Data, Drawn, Tasks
from ..judge import by_size, over_seeds
from ..ruling import Bar, Judged, at_full_size
from ..setting import EXPERIMENT

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

SHOWN = (1, 6, 11, 16)
SEEDS, SEEDS_QUICK = {2**10: 256, 2**13: 64}, 4
KINDS = {"weights": r"weights  $w_i^{(t)}$", "logits": r"logits  $u_\nu^{(t)}$"}
ALMOST_COMPLETE = Bar(0.03, "1/sqrt(1024): what chance makes of a sample of 1024")
COLORS = (style.BLUE, style.GREEN, style.YELLOW, style.ORANGE)
GOOD = Bar(0.06, "twice what counts as almost complete")
"""Largest distance of distribution functions, for `ALMOST_COMPLETE` and for `GOOD` agreement."""


def finite_systems(rhos: Sequence[float], sizes: Sequence[int], quick: bool) -> dict[str, Task]:
    """Return the tasks of one system for each rho and N, which is drawn, and of several systems, by
    which claims are judged.
    """
    fixed: dict[str, Any] = {**EXPERIMENT, "shown": SHOWN}
    axes: dict[str, Any] = {"rho": tuple(rhos)}
    drawn = Grid({**axes, "features": tuple(sizes)}, {**fixed, "seed": 0})
    tasks = {"drawn": Task(HISTOGRAM, drawn)}
    for features in sizes:
        seeds = tuple(range(SEEDS_QUICK if quick else SEEDS[features]))
        grid = Grid({**axes, "seed": seeds}, {**fixed, "features": features})
        tasks[f"N{features}"] = Task(SHARES, grid)
    return tasks


def tasks(quick: bool) -> Tasks:
    return finite_systems((0.4,), (2**13,), quick)


def draw(data: Data) -> Drawn:
    drawn = data["drawn"].isel(features=0)
    rhos = drawn.rho.values.tolist()
    figure, axes = pic.canvas(len(rhos), 2, 8.4, 2.9 * len(rhos) + 0.5)
    for row, rho in zip(axes, rhos, strict=True):
        for ax, (kind, title) in zip(row, KINDS.items(), strict=True):
            draw_kind(ax, drawn.sel(rho=rho), kind)
            ax.set_title(title + (rf",  $\rho={rho:g}$" if len(rhos) > 1 else ""))
        row[0].set_ylabel("density")
    return figure, step_legend(drawn)


def step_colors(one: xr.Dataset) -> dict[int, str]:
    """Return a colour for each step."""
    return dict(zip(one.step.values.tolist(), COLORS, strict=False))


def step_legend(one: xr.Dataset) -> list[Any]:
    """Return the entries of the legend."""
    return [pic.handle(f"$t={step}$", color) for step, color in step_colors(one).items()]


def draw_kind(ax: Axes, one: xr.Dataset, kind: str) -> None:
    """Draw histograms of one system and the densities of the theory."""
    for step, color in step_colors(one).items():
        at = one.sel(step=step)
        histogram, edges = at[f"{kind}_histogram"].values, at[f"{kind}_edge"].values
        ax.stairs(histogram, edges, fill=True, color=color, alpha=0.3)
        ax.plot(at[f"{kind}_curve"], at[f"{kind}_density"], color=color, linewidth=1.2)
    ax.set_ylim(bottom=0)


def judge(data: Data) -> list[Judged]:
    return [judge_law("law", data, kind, 0.4, 2**13) for kind in KINDS]


def judge_law(key: str, data: Data, kind: str, rho: float, features: int) -> Judged:
    """Judge whether the mean distribution function over systems agrees with the theory."""
    here = dict(by_size(data))[features].sel(rho=rho)
    bar = ALMOST_COMPLETE if features > 1024 else GOOD
    share, law = here[f"{kind}_share"], here[f"{kind}_law"].isel(seed=0)
    found = over_seeds(share, law)
    single = float(abs(share.isel(seed=0) - law).max())
    return at_full_size(
        key,
        f"{found} The system drawn differs by {single:.2g}.",
        found.within("largest difference", bar),
        case=f"{kind}, rho = {rho:g}, N = {features}",
        values={"kind": kind, "systems": here.seed.size, "bar": bar},
    )
