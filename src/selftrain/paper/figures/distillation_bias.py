r"""Self-distillation under class imbalance: the bias of the first fit, or trained in every fit."""

from __future__ import annotations

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.distillation import RELABELED
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed_by
from ..ruling import everywhere, positive

DELTA, NOISE = 0.5, 0.3
RHOS, ALPHAS = (0.5, 0.4, 0.3), (1.0, 3.0)
KINDS = ("linear", "hard")


def tasks(quick: bool) -> Tasks:
    axes = {
        "rho": (0.5, 0.3) if quick else RHOS,
        "alpha_l": (3.0,) if quick else ALPHAS,
        "labels": KINDS[:1] if quick else KINDS,
        "fix_bias": (False, True),
    }
    return {"bias": Task(RELABELED, Grid(axes, {"delta": DELTA, "label_noise": NOISE}))}


def draw(data: Data) -> Drawn:
    error = data["bias"]["error"]
    ratio = error.sel(fix_bias=True) / error.sel(fix_bias=False)
    kinds = ratio.labels.values.tolist()
    labels = (r"$\rho$", "error, bias fixed over trained")
    figure, axes = pic.canvas(1, len(kinds), 3.2 * len(kinds) + 1.8, 3.0, *labels, sharey=True)
    colors = dict(zip(ratio.alpha_l.values.tolist(), pic.SERIES[1:], strict=False))
    for ax, kind in zip(axes[0], kinds, strict=True):
        for alpha, color in colors.items():
            pic.series(ax, ratio.rho, ratio.sel(labels=kind, alpha_l=alpha), color)
        ax.axhline(1.0, color=style.GREY, linewidth=0.8, linestyle=pic.DOTTED)
        ax.set_title(f"{kind} labels")
    return figure, pic.value_legend(r"\alpha", colors)


def judge(data: Data) -> Claims:
    found = data["bias"]["error"]
    gain = 1 - found.sel(fix_bias=True) / found.sel(fix_bias=False)
    gain = gain.transpose("labels", "rho", "alpha_l")
    for one in gain:
        case = f"{one.labels.item()} labels"
        yield everywhere(
            "fixing",
            f"Gain by alpha: {listed_by('rho', one, '{:.1%}')}.",
            positive("smallest gain", one.drop_sel(rho=0.5).min()),
            case=case,
            values={"case": case},
        )
