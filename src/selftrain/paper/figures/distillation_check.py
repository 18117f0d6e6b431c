r"""Three fits of self-distillation at given ridges: theory and finite systems, both losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.distillation import CHECK, CHECK_RUN
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed, over_seeds
from ..ruling import Bar, at_full_size

RHO, DELTA, NOISE = 0.4, 0.5, 0.2
RIDGES, SHARPNESS = (1.5, 0.5, 2.0), (0.8, 1.2)
LOSSES = ("squared", "logistic")
ALPHAS = tuple(np.linspace(1.0, 6.0, 21).tolist())
MEASURED = (1.5, 3.0, 5.0)
FEATURES, SEEDS = 2000, 64
FEATURES_QUICK, SEEDS_QUICK = 250, 4
JUDGED_ONLY = ("at",)
NEAR = Bar(0.05, "a twentieth of the error: two standard errors of the noisiest mean, and 1/N")


def tasks(quick: bool) -> Tasks:
    fixed: dict[str, Any] = {"rho": RHO, "delta": DELTA, "label_noise": NOISE}
    fixed |= {"ridges": RIDGES, "sharpness": SHARPNESS}
    axes = {"loss": LOSSES, "alpha_l": ALPHAS[::4] if quick else ALPHAS}
    features, seeds = (FEATURES_QUICK, SEEDS_QUICK) if quick else (FEATURES, SEEDS)
    systems = {"loss": LOSSES, "alpha_l": MEASURED, "seed": tuple(range(seeds))}
    return {
        "theory": Task(CHECK, Grid(axes, fixed)),
        "at": Task(CHECK, Grid({"loss": LOSSES, "alpha_l": MEASURED}, fixed)),
        "systems": Task(CHECK_RUN, Grid(systems, {**fixed, "features": features})),
    }


def draw(data: Data) -> Drawn:
    theory, systems = data["theory"], data["systems"]["error"]
    colors = pic.SERIES[: theory.fit.size]
    figure, axes = pic.canvas(
        1, 2, 8.6, 3.0, r"$\alpha$", r"error  $\epsilon_g^{(t)}$", sharey=True
    )
    for ax, loss in zip(axes[0], theory.loss.values, strict=True):
        for t, color in zip(theory.fit.values, colors, strict=True):
            pic.reference(ax, theory.alpha_l, theory["error"].sel(loss=loss, fit=t), color, "solid")
            pic.systems(ax, systems.alpha_l, systems.sel(loss=loss, fit=t), color, "o")
        ax.set_title(f"{loss} loss")
    return figure, [
        *(pic.handle(f"fit {t}", color) for t, color in enumerate(colors)),
        pic.handle(f"finite systems,\n{systems.seed.size} seeds", style.GREY, "o", "none"),
    ]


def judge(data: Data) -> Claims:
    told, systems = data["at"]["error"], data["systems"]["error"]
    apart = over_seeds(systems, told, told)
    last = told.isel(fit=-1)
    yield at_full_size(
        "agree",
        f"Largest distance {apart.largest:.1%}, at most {apart.at_most:.1%}. Errors of the last"
        " fit in theory, by alpha: "
        + "; ".join(f"{loss}, {listed(last.sel(loss=loss), '{:.4f}')}" for loss in told.loss.values)
        + ".",
        apart.within("largest distance", NEAR),
    )
