r"""Self-distillation with one ridge for all fits: when to stop."""

from __future__ import annotations

from typing import Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.distillation import STAGES
from ..entry import Claims, Data, Drawn, Tasks
from ..ruling import Bar, above, at_full_size

DELTA = 0.5
RHOS, NOISES, ALPHAS = (0.5, 0.4, 0.3), (0.1, 0.3), (1.0, 3.0, 10.0)
RIDGES, LOSSES = (0.1, 1.0, 10.0), ("squared", "logistic")
STEPS, STEPS_QUICK = 5, 3
SHOWN = 3.0
NOTABLE = Bar(0.05, "a twentieth of the error")
BROADLY = Bar(0.5, "in most cases")


def tasks(quick: bool) -> Tasks:
    axes: dict[str, Any] = {
        "rho": RHOS[:2] if quick else RHOS,
        "label_noise": NOISES[1:] if quick else NOISES,
        "alpha_l": (SHOWN,) if quick else ALPHAS,
        "ridge": RIDGES,
        "loss": LOSSES[:1] if quick else LOSSES,
    }
    fixed = {"delta": DELTA, "steps": STEPS_QUICK if quick else STEPS}
    return {"stages": Task(STAGES, Grid(axes, fixed))}


def draw(data: Data) -> Drawn:
    error = data["stages"]["error"].sel(alpha_l=SHOWN, method="nearest")
    ratio = error / error.isel(fit=0)
    rhos, noises = ratio.rho.values, ratio.label_noise.values
    size = (noises.size, rhos.size, 2.4 * rhos.size + 2.0, 2.3 * noises.size + 0.4)
    labels = ("fit $t$", r"$\epsilon_g^{(t)} / \epsilon_g^{(0)}$")
    figure, axes = pic.canvas(*size, *labels, sharex=True, sharey=True)
    colors = dict(
        zip(ratio.ridge.values.tolist(), (style.BLUE, style.GREEN, style.ORANGE), strict=False)
    )
    dashes = dict(zip(LOSSES, ("solid", pic.DASHED), strict=True))
    for i, noise in enumerate(noises):
        for j, rho in enumerate(rhos):
            ax = axes[i, j]
            ax.set_title(rf"$\rho = {rho:g}$, {noise:.0%} wrong")
            for ridge, color in colors.items():
                for loss in ratio.loss.values.tolist():
                    case = {"rho": rho, "label_noise": noise, "ridge": ridge, "loss": loss}
                    pic.reference(ax, ratio.fit, ratio.sel(case), color, dashes[loss])
            ax.axhline(1.0, color=style.GREY, linewidth=0.8, linestyle=pic.DOTTED)
    return figure, [
        *(pic.handle(rf"$\lambda = {ridge:g}$", color) for ridge, color in colors.items()),
        *(pic.handle(f"{loss} loss", style.GREY, "", dashes[loss]) for loss in ratio.loss.values),
    ]


def judge(data: Data) -> Claims:
    error = data["stages"]["error"]
    best, last = error.min("fit"), error.isel(fit=-1)
    lost = last / best - 1 > NOTABLE.size
    helped = lost & (best < error.isel(fit=0))
    cases = {"balanced classes": lost.rho == 0.5, "imbalanced classes": lost.rho < 0.5}
    for case, chosen in cases.items():
        of = lost.sel(rho=chosen)
        yield at_full_size(
            "stopping",
            f"{int(of.sum())} of {of.size} settings, in {int(helped.sel(rho=chosen).sum())} of"
            " which the best number of fits is above one.",
            above("share of the settings", of.mean(), BROADLY),
            case=case,
        )
