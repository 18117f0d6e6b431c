r"""Distributions of weights and training logits, finite system and theory, $\rho = 0.4$."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.finite import HISTOGRAM, SHARES
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import by_size, over_seeds
from ..ruling import Bar, Judged, at_full_size
from ..setting import EXPERIMENT

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
    """Draw histograms of one system and the densities of the theory, a panel for each kind, N and
    rho.
    """
    drawn = data["drawn"]
    sizes, rhos = drawn.features.values.tolist(), drawn.rho.values.tolist()
    panels = list(product(KINDS, sizes, rhos))
    columns, alone = max(len(rhos), 2), len(panels) == len(KINDS)
    rows = len(panels) // columns
    figure, axes = pic.canvas(rows, columns, 3.1 * columns + (2.2 if alone else 0.9), 2 * rows + 1)
    colors = dict(zip(drawn.step.values.tolist(), COLORS, strict=False))
    for ax, (kind, features, rho) in zip(axes.ravel(), panels, strict=True):
        for step, color in colors.items():
            at = drawn.sel(rho=rho, features=features, step=step)
            histogram, edges = at[f"{kind}_histogram"].values, at[f"{kind}_edge"].values
            ax.stairs(histogram, edges, fill=True, color=color, alpha=0.3)
            ax.plot(at[f"{kind}_curve"], at[f"{kind}_density"], color=color, linewidth=1.2)
        ax.set_ylim(bottom=0)
        title = rf"{kind}, $N={features}$, $\rho={rho:g}$"
        ax.set_title(KINDS[kind] if alone else title, fontsize=9 if alone else 8)
    pic.label_rows(axes, *["density"] * rows)
    return figure, [pic.handle(f"$t={step}$", color) for step, color in colors.items()]


def judge(data: Data) -> Claims:
    for kind in KINDS:
        yield judge_law("law", data, kind, 0.4, 2**13)


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
