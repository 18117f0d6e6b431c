"""The labelled samples in the second fit: not used, used with given labels, or relabelled; against
label noise.
"""

from __future__ import annotations

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.distillation import RELABEL, RELABELINGS
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed
from ..ruling import Bar, above, at_full_size, everywhere, positive

ALPHA_L, ALPHA_U, DELTA, RHO = 1.0, 2.0, 0.5, 0.5
NOISES, NOISES_QUICK = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4), (0.3,)
HEAVY = 0.2
MUCH = Bar(0.2, "a fifth of the error")


def tasks(quick: bool) -> Tasks:
    axes = {"label_noise": NOISES_QUICK if quick else NOISES, "way": tuple(RELABELINGS)}
    fixed = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA, "rho": RHO}
    return {"relabel": Task(RELABEL, Grid(axes, fixed))}


def draw(data: Data) -> Drawn:
    found = data["relabel"]
    figure, axes = pic.canvas(1, 1, 6.0, 3.2, "wrong labels", r"error  $\epsilon_g^{(1)}$")
    colors = dict(zip(RELABELINGS, pic.SERIES[1:], strict=False))
    for way, color in colors.items():
        pic.series(axes[0, 0], found.label_noise, found["error"].sel(way=way), color)
    pic.reference(axes[0, 0], found.label_noise, found["bayes"].isel(way=0))
    return figure, [
        *(pic.handle(way, color, "o") for way, color in colors.items()),
        pic.handle("Bayes error", style.GREY, "", pic.DOTTED),
    ]


def judge(data: Data) -> Claims:
    error = data["relabel"]["error"].transpose("way", "label_noise")
    over = error.sel(way="kept") / error.sel(way="relabelled") - 1
    out = error.sel(way="relabelled") / error.sel(way="left out") - 1
    heavy, noisy = over.sel(label_noise=over.label_noise >= HEAVY), out.label_noise > 0
    yield everywhere(
        "kept",
        f"Error with kept labels over relabelled, minus one, by noise: {listed(over, '{:.1%}')}.",
        positive("smallest excess", over.min()),
        above(f"smallest excess from {HEAVY:.0%} on", heavy.min(), MUCH),
    )
    if 0.0 in out.label_noise:
        yield at_full_size(
            "left-out",
            "Error of relabelled over left-out samples, minus one, by noise:"
            f" {listed(out, '{:.1%}')}.",
            positive("smallest excess with noise", out.sel(label_noise=noisy).min()),
            positive("gain without noise", -out.sel(label_noise=0.0)),
        )
