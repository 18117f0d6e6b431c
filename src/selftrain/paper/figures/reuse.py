"""Data reuse: unlabelled samples split into fresh batches, or all of them in every step; labelled
samples in every step, or in step 0 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.data_reuse import BOUNDS, REUSE
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import agreement, listed
from ..ruling import Bar, above, at_full_size, below, decided, everywhere, positive
from ..setting import ALPHA_L, DELTA

if TYPE_CHECKING:
    import xarray as xr

SAMPLES = 8.0
"""Unlabelled samples per feature, in total."""

(LOWEST, HIGHEST), STEEPEST = BOUNDS["lambda_l"], BOUNDS["annealing"][1]
RHOS = (0.5, 0.4, 0.2)
STEPS, STEPS_QUICK = 4, 2
SPLITS = (1, 2, 4)
FEATURES, SEEDS = 512, 6
FOLLOWED = Bar(0.05, "a twentieth of the error")
LITTLE = Bar(0.05, "a twentieth of the error")
MATTER = Bar(0.1, "a tenth of the error")
ACCURATE = Bar(1e-3, "the accuracy of runs with data reuse")


def tasks(quick: bool) -> Tasks:
    cases: dict[str, Any] = {
        "rho": (0.4,) if quick else RHOS,
        "heuristics": (True,) if quick else (False, True),
    }
    ways: dict[str, Any] = {"reused": (False, True), "kept": (False,) if quick else (False, True)}
    fixed = {"alpha_l": ALPHA_L, "alpha_u": SAMPLES, "delta": DELTA, "features": FEATURES}
    whole = {**fixed, "seeds": 2 if quick else SEEDS, "steps": STEPS_QUICK if quick else STEPS}
    split = {**fixed, "seeds": 0, "reused": False, "kept": False}
    return {
        "theory": Task(REUSE, Grid({**cases, **ways}, whole)),
        **{
            f"split{count}": Task(REUSE, Grid(cases, {**split, "steps": count}))
            for count in (SPLITS[:1] if quick else SPLITS)
        },
    }


def last_errors(data: Data) -> xr.DataArray:
    """Return the error of the last step, with the axes rho, heuristics, reused and kept."""
    return data["theory"]["error"].isel(t=-1)


def splits(data: Data) -> dict[int, xr.DataArray]:
    """Return the error of the last step by the number of fresh batches."""
    return {
        one.sizes["t"] - 1: one["error"].isel(t=-1)
        for name, one in data.items()
        if name.startswith("split")
    }


def draw(data: Data) -> Drawn:
    theory, fresh = data["theory"], splits(data)
    colors = {False: style.BLUE, True: style.ORANGE}
    rhos, helped = theory.rho.values.tolist(), theory.heuristics.values.tolist()
    size = (len(helped), len(rhos), 2.5 * len(rhos) + 2.2, 2.7 * len(helped) + 0.3)
    labels = ("step $t$", r"error  $\epsilon_g^{(t)}$")
    figure, axes = pic.canvas(*size, *labels, sharex=True, sharey=True)
    for ax, one in zip(axes.ravel(), pic.each(theory, ("heuristics", "rho")), strict=True):
        for way in pic.each(one, ("reused", "kept")):
            color, kept = colors[bool(way.reused)], bool(way.kept)
            dashes: Any = pic.DASHED if kept else "solid"
            ax.plot(one.t, way["error"], color=color, linewidth=1.2, linestyle=dashes)
            faces = "white" if kept else color
            look = {"s": 10, "color": color, "zorder": 3, "facecolors": faces, "linewidths": 0.8}
            ax.scatter(one.t, way["mean"], **look)
        case = {"rho": one.rho, "heuristics": one.heuristics}
        ends = [float(error.sel(case)) for error in fresh.values()]
        ax.plot(list(fresh), ends, color=style.BLACK, marker="D", linestyle="none", markersize=4)
        limit = float(one["bayes"].mean())
        ax.axhline(limit, color=style.GREY, linestyle=pic.DOTTED, linewidth=1.0)
        words = "both heuristics" if bool(one.heuristics) else "naive"
        ax.set_title(rf"$\rho = {float(one.rho):g}$, {words}")
    for ax in axes[-1]:
        ax.set_xticks(range(theory.t.size))
    return figure, [
        pic.handle("fresh batches", style.BLUE),
        pic.handle("and labels kept", style.BLUE, "", pic.DASHED),
        pic.handle("all samples reused", style.ORANGE),
        pic.handle("and labels kept", style.ORANGE, "", pic.DASHED),
        pic.handle("fresh, split into\n$t$ batches", style.BLACK, "D", "none"),
        pic.handle("Bayes error\nof all samples", style.GREY, "", pic.DOTTED),
        pic.handle(f"N = {FEATURES:,},\nmean over seeds", style.GREY, "o", "none"),
    ]


def judge(data: Data) -> Claims:
    theory, error = data["theory"], last_errors(data)
    plain = error.sel(kept=False)
    again = plain.sel(reused=True) / plain.sel(reused=False)
    smallest = again.sel(heuristics=True).min()
    gap, error_bar = theory["mean"] / theory["error"] - 1, theory["spread"] / theory["error"]
    followed = agreement(gap.values, error_bar.values / SEEDS**0.5, SEEDS)
    bayes = float((theory["error"].isel(t=-1) / theory["bayes"]).min())
    yield at_full_size(
        "split",
        f"Error with all samples reused over that of the split: {_by_rho(again)}.",
        positive("smallest excess", smallest - 1),
    )
    if True in theory.kept:
        yield from _full(error)
    yield at_full_size(
        "finite",
        f"Largest distance {followed.largest:.2%}, at most {followed.at_most:.2%} ({SEEDS} seeds).",
        followed.within("largest distance", FOLLOWED),
    )
    yield everywhere(
        "limit",
        f"The smallest ratio of an error to its Bayes error is {bayes:.4f}.",
        below("largest shortfall", 1 - bayes, ACCURATE),
    )


def _full(error: xr.DataArray) -> Claims:
    """Judge the claims that need the full version: on labelled samples in every step, and on naive
    runs.
    """
    keeping = error.sel(kept=True) / error.sel(kept=False)
    mild, strong = keeping.sel(rho=[0.5, 0.4]), keeping.sel(rho=0.2)
    reused = error.sel(reused=True, kept=False)
    gain = reused.sel(heuristics=True) / reused.sel(heuristics=False)
    largest = gain.sel(rho=[0.4, 0.2]).max()
    ways = {"fresh": False, "reused": True}
    yield decided(
        "kept",
        "Error with kept labels over that without: "
        + "; ".join(f"{words}, {_by_rho(keeping.sel(reused=way))}" for words, way in ways.items())
        + ".",
        positive("smallest loss at rho = 0.5 and 0.4", mild.min() - 1),
        below("largest gain at rho = 0.2", 1 - strong.min(), LITTLE),
    )
    yield decided(
        "heuristics",
        f"Error with over without, samples reused: {listed(gain)}.",
        above("smallest reduction", 1 - largest, MATTER),
    )


def _by_rho(ratio: xr.DataArray) -> str:
    return "; ".join(
        f"{'heuristics' if bool(one.heuristics) else 'naive'}: {listed(one)}"
        for one in ratio.transpose("heuristics", "rho")
    )
