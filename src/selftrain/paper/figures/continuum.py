r"""The squared cosine of tuned runs against its continuous-time limit, squared and logistic loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...sweep import Grid, Task
from ..computations.paths import PATH
from ..figure import Claim, Data, Figure
from ..judge import above_bayes, listed, numbers
from ..setting import ALPHA_L, ALPHA_U, DELTA, RIDGES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

LOSSES = ("squared", "logistic")


def tasks(quick: bool) -> Mapping[str, Task]:
    axes: dict[str, Any] = {
        "loss": LOSSES,
        "steps": (16, 64) if quick else (64, 256, 1024),
        "rho": (0.2, 0.4, 0.5),
    }
    fixed = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA}
    return {"paths": Task(PATH, Grid(axes, fixed))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import canvas
    from ...plots.style import styled

    paths = data["paths"]
    rows = [(loss, steps) for loss in paths.loss.values for steps in paths.steps.values]
    with styled():
        figure, axes = canvas(len(rows), paths.rho.size, 7.8, 1.75 * len(rows) + 0.3, sharey=True)
        for row, (loss, steps) in zip(axes, rows, strict=True):
            for ax, rho in zip(row, paths.rho.values, strict=True):
                _panel(ax, paths.sel(loss=loss, steps=steps, rho=rho))
            row[0].set_ylabel("$M$")
        for ax in axes[-1]:
            ax.set_xlabel(r"$\tau = \lambda_U t$")
        axes[0, 0].legend(loc="lower right", fontsize=7)
    return figure


def _panel(ax: Axes, one: Any) -> None:
    from ...plots.paper import DASHED
    from ...plots.style import BLUE, GREY, ORANGE

    ax.plot(one["tau"], one["squared_cosine"], color=BLUE, label=r"$\lambda_U \to 0$")
    ax.plot(
        one["tau_run"],
        one["squared_cosine_run"],
        color=ORANGE,
        linestyle=DASHED,
        label="discrete run",
    )
    scale = float(one["time_scale"])
    ax.axvline(scale, color=GREY, linewidth=0.9, label=r"$\tau_M$")
    ax.set_xlim(0, float(one["tau"][-1]))
    ax.set_ylim(0, 1.02)
    steps, ridge = int(one.steps), float(one["lambda_u"])
    ax.set_title(
        rf"{one.loss.item()}, $(T, \rho) = ({steps}, {float(one.rho):g})$" + "\n"
        rf"$\lambda_U^* T = {steps * ridge / scale:.2g}\,\tau_M$",
        fontsize=7.5,
    )


def claims(data: Data) -> list[Claim]:
    claimed = []
    for loss in LOSSES:
        paths = data["paths"].sel(loss=loss)
        apart = paths["apart"]
        elapsed = paths["lambda_u"] * paths.steps / paths["time_scale"]
        last = elapsed.isel(steps=-1)
        claimed += [
            Claim(
                f"{loss} loss: as T grows the discrete run goes over into the continuous one (the largest "
                "difference of M falls with every T, for every rho).",
                bool((apart.diff("steps") < 0).all()),
                "Largest difference by T: "
                + "; ".join(
                    f"rho = {rho:g}: {listed(paths.steps, apart.sel(rho=rho).values)}"
                    for rho in paths.rho.values
                )
                + ".",
                numbers(largest_at_end=apart.isel(steps=-1).max()),
            ),
            Claim(
                f"{loss} loss: with imbalanced classes the tuned run ends before the direction is "
                "aligned, with balanced ones it does not (lambda_U* T at the largest T below 2 tau_M for "
                "rho = 0.2 and 0.4, above it for rho = 0.5).",
                bool((last.sel(rho=[0.2, 0.4]) < 2).all() and last.sel(rho=0.5) > 2),
                f"lambda_U* T / tau_M at T = {int(paths.steps[-1])} by rho: "
                f"{listed(paths.rho, last.values)}.",
                numbers(
                    **{
                        f"elapsed_{float(r):g}": v
                        for r, v in zip(paths.rho, last.values, strict=True)
                    }
                ),
            ),
        ]
    return [*claimed, above_bayes(data["paths"]["error"], data["paths"]["bayes"])]


def caption(data: Data) -> str:
    return (
        r"Squared cosine $M = m^2/q$ of tuned runs (dashed, red) and of the continuous-time limit from the same start "
        r"(solid, blue) against $\tau = \lambda_U t$; grey: $\tau_M$, the time in which the odds $M/(1-M)$ grow by a factor $e$, "
        r"on average until $M = 0.99$ (a constant of the squared loss; beyond the end of some panels). The dashed run ends where its last step is. "
        rf"$(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$; {RIDGES}, tuned for the last error, "
        r"without selection. The panels of the logistic loss are beyond the paper."
    )


FIGURE = Figure(
    "continuum",
    "Discrete runs against continuous time",
    "Section 4.2, `fig: vs continuous squared loss`",
    tasks,
    draw,
    claims,
    caption,
)
