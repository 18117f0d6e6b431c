r"""Two fits of self-distillation, tuned: hard labels, linear ones, and the best between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...sweeps import Grid, Task
from ..computations.distillation import RELABELED
from ..entry import Data, Drawn, Judged
from ..judge import judged, listed
from ..ruling import Bar, above, at_full_size, everywhere, positive
from .distillation_optimum import ALPHAS, ALPHAS_QUICK, DELTA, HALF, NOISE, RHO, moderate

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DELTA", "HALF", "NOISE", "RHO", "draw", "judge", "tasks"]

KINDS = {"linear": "linear", "hard": "hard", "tuned": "best sharpness"}
FROM, UP_TO = 1.0, 10.0
MOST = Bar(0.8, "four fifths: what is left over is a detail")


def tasks(quick: bool) -> Mapping[str, Task]:
    axes = {"alpha_l": ALPHAS_QUICK if quick else ALPHAS, "sharpness": tuple(KINDS)[: 3 - quick]}
    fixed = {"rho": RHO, "delta": DELTA, "label_noise": NOISE, "fix_bias": False}
    return {"two": Task(RELABELED, Grid(axes, fixed))}


def draw(data: Data) -> Drawn:
    from ...plots import paper as pic

    found = data["two"]
    figure, axes = pic.canvas(1, 3, 11.2, 3.0, sharex=True)
    error, gain, wrong = axes[0]
    one = found.isel(sharpness=0)
    pic.series(error, found.alpha_l, one["supervised"], pic.BLACK)
    pic.reference(error, found.alpha_l, one["bayes"])
    colors = dict(zip(found.sharpness.values.tolist(), pic.SERIES[1:], strict=False))
    for kind, color in colors.items():
        case = found.sel(sharpness=kind)
        pic.series(error, found.alpha_l, case["error"], color)
        pic.series(gain, found.alpha_l, 1 - case["error"] / case["supervised"], color)
    pic.series(wrong, found.alpha_l, 1 - found["right"].sel(sharpness="hard"), colors["hard"])
    pic.bound(wrong, NOISE)
    for ax in axes[0]:
        ax.set_xscale("log")
        ax.set_xlabel(r"$\alpha$")
    error.set_ylabel(r"error  $\epsilon_g$")
    gain.set_ylabel("gain over one fit")
    wrong.set_ylabel("wrong labels")
    return figure, [
        pic.handle("one fit", pic.BLACK, "o"),
        *(pic.handle(f"two fits,\n{KINDS[kind]}", color, "o") for kind, color in colors.items()),
        pic.handle("Bayes error;\ngiven labels", pic.GREY, "", pic.DOTTED),
    ]


def judge(data: Data) -> list[Judged]:
    found = data["two"]
    gain = 1 - found["error"] / found["supervised"]
    right = found["right"].sel(sharpness="hard")
    hard = gain.sel(sharpness="hard")
    full = "tuned" in found.sharpness
    return [
        *(_against_best(gain) if full else []),
        judged(
            "denoise",
            everywhere(positive("smallest reduction of wrong labels", (right - (1 - NOISE)).min())),
            f"Wrong labels by alpha: {listed(1 - right, '{:.3f}')}; of the given ones {NOISE:g}.",
            case="denoising",
            smallest=(right - (1 - NOISE)).min(),
        ),
        judged(
            "moderate",
            moderate(hard),
            f"Gain by alpha: {listed(hard, '{:.1%}')}.",
            case="two fits, hard labels",
            largest=hard.max(),
        ),
    ]


def _against_best(gain: xr.DataArray) -> list[Judged]:
    """Judge what only the full version has: gains against that of the best sharpness."""
    best = gain.sel(sharpness="tuned")
    shares = {kind: gain.sel(sharpness=kind) / best for kind in ("hard", "linear")}
    enough = shares["hard"].sel(alpha_l=best.alpha_l >= FROM)
    rest = best - gain.sel(sharpness=["hard", "linear"]).max("sharpness")
    smallest = rest.sel(alpha_l=rest.alpha_l <= UP_TO).min()
    said = {kind: f"Share of the gain by alpha: {listed(one, '{:.0%}')}." for kind, one in shares.items()}
    return [
        judged(
            "hard",
            at_full_size(above("smallest share", enough.min(), MOST)),
            said["hard"],
            case="hard labels",
            smallest=enough.min(),
        ),
        judged(
            "linear",
            at_full_size(above("smallest share", shares["linear"].min(), MOST)),
            said["linear"],
            smallest=shares["linear"].min(),
        ),
        judged(
            "between",
            at_full_size(positive("smallest additional gain", smallest)),
            f"Additional gain by alpha: {listed(rest, '{:.2%}')}.",
            smallest=smallest,
        ),
    ]
