r"""Two tuned fits of self-distillation: hard labels, linear labels, and the best sharpness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.distillation import RELABELED
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed
from ..ruling import Bar, at_full_size, below, everywhere, positive
from .distillation_optimum import ALPHAS, ALPHAS_QUICK, DELTA, HALF, NOISE, RHO, moderate

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DELTA", "HALF", "NOISE", "RHO", "draw", "judge", "tasks"]

KINDS = {"linear": "linear", "hard": "hard", "tuned": "best sharpness"}
FROM, UP_TO = 1.0, 10.0
REST = Bar(0.2, "a fifth of the gain: a detail beside the rest")


def tasks(quick: bool) -> Tasks:
    axes = {"alpha_l": ALPHAS_QUICK if quick else ALPHAS, "labels": tuple(KINDS)[: 3 - quick]}
    fixed = {"rho": RHO, "delta": DELTA, "label_noise": NOISE, "fix_bias": False}
    return {"two": Task(RELABELED, Grid(axes, fixed))}


def draw(data: Data) -> Drawn:
    found = data["two"]
    figure, axes = pic.canvas(1, 3, 11.2, 3.0, r"$\alpha$", r"error  $\epsilon_g$", sharex=True)
    error, gain, wrong = axes[0]
    one = found.isel(labels=0)
    pic.series(error, found.alpha_l, one["supervised"], style.BLACK)
    pic.reference(error, found.alpha_l, one["bayes"])
    colors = dict(
        zip(found.labels.values.tolist(), (style.BLUE, style.ORANGE, style.GREEN), strict=False)
    )
    for kind, color in colors.items():
        case = found.sel(labels=kind)
        pic.series(error, found.alpha_l, case["error"], color)
        pic.series(gain, found.alpha_l, 1 - case["error"] / case["supervised"], color)
    pic.series(wrong, found.alpha_l, 1 - found["right"].sel(labels="hard"), colors["hard"])
    pic.bound(wrong, NOISE)
    for ax in axes[0]:
        ax.set_xscale("log")
    gain.set_ylabel("gain over one fit")
    wrong.set_ylabel("wrong labels")
    return figure, [
        pic.handle("one fit", style.BLACK, "o"),
        *(pic.handle(f"two fits,\n{KINDS[kind]}", color, "o") for kind, color in colors.items()),
        pic.handle("Bayes error;\ngiven labels", style.GREY, "", pic.DOTTED),
    ]


def judge(data: Data) -> Claims:
    found = data["two"]
    gain = 1 - found["error"] / found["supervised"]
    right = found["right"].sel(labels="hard")
    fewer = right.sel(alpha_l=right.alpha_l >= FROM) - (1 - NOISE)
    hard = gain.sel(labels="hard")
    full = "tuned" in found.labels
    yield everywhere(
        "denoise",
        f"Wrong labels by alpha: {listed(1 - right, '{:.3f}')}; of the given ones {NOISE:g}.",
        positive("smallest reduction of wrong labels", fewer.min()),
        case="denoising",
    )
    yield moderate(
        "moderate",
        f"Gain by alpha: {listed(hard, '{:.1%}')}.",
        hard,
        case="two fits, hard labels",
    )
    if full:
        yield from _against_best(gain)


def _against_best(gain: xr.DataArray) -> Claims:
    """Judge gains relative to that of the best sharpness, which only the full version has."""
    best = gain.sel(labels="tuned")
    shares = {kind: gain.sel(labels=kind) / best for kind in ("hard", "linear")}
    enough = shares["hard"].sel(alpha_l=best.alpha_l >= FROM)
    rest = best - gain.sel(labels=["hard", "linear"]).max("labels")
    smallest = rest.sel(alpha_l=slice(FROM, UP_TO)).min()
    said = {
        kind: f"Share of the gain by alpha: {listed(share, '{:.0%}')}."
        for kind, share in shares.items()
    }
    yield at_full_size(
        "hard",
        said["hard"],
        below("largest part that is missing", 1 - enough.min(), REST),
        case="hard labels",
    )
    yield at_full_size(
        "linear",
        said["linear"],
        below("largest part that is missing", 1 - shares["linear"].min(), REST),
    )
    yield at_full_size(
        "between",
        f"Additional gain by alpha: {listed(rest, '{:.2%}')}.",
        positive("smallest additional gain", smallest),
    )
