r"""The squared cosine of tuned runs against its continuous-time limit, squared and logistic
loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...sweeps import Grid, Task
from ..computations.paths import PATH
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import above_bayes, listed, numbers
from ..ruling import Bar, Criterion, above, at_full_size, below, positive
from ..setting import ALPHA_L, ALPHA_U, DELTA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

LOSSES = ("squared", "logistic")
FEW_TIMES = Bar(2.0, "in two time scales the odds of M grow by a factor of seven only")
ALIGNED = Bar(0.01, "the level at which the direction counts as found")


def tasks(quick: bool) -> Mapping[str, Task]:
    axes: dict[str, Any] = {
        "loss": LOSSES,
        "steps": (16,) if quick else (64, 256, 1024),
        "rho": (0.2, 0.4, 0.5),
    }
    fixed = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA}
    return {"paths": Task(PATH, Grid(axes, fixed))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import DASHED, canvas, handle, legend_under, letter
    from ...plots.style import BLUE, GREY, ORANGE, styled

    paths = data["paths"]
    rows = [(loss, steps) for loss in paths.loss.values for steps in paths.steps.values]
    with styled():
        figure, axes = canvas(len(rows), paths.rho.size, 7.8, 1.75 * len(rows) + 0.6, sharey=True)
        for row, (loss, steps) in zip(axes, rows, strict=True):
            for ax, rho in zip(row, paths.rho.values, strict=True):
                _panel(ax, paths.sel(loss=loss, steps=steps, rho=rho))
            row[0].set_ylabel("$M$")
        for ax in axes[-1]:
            ax.set_xlabel(r"$\tau = \lambda_U t$")
        letter(axes.ravel())
        legend_under(
            figure,
            [
                handle(r"continuous time, $\lambda_U \to 0$", BLUE),
                handle("discrete run", ORANGE, "", DASHED),
                handle(r"$\tau_M$", GREY),
            ],
        )
    return figure


def _panel(ax: Axes, one: Any) -> None:
    from ...plots.paper import DASHED, few_ticks
    from ...plots.style import BLUE, GREY, ORANGE

    ax.plot(one["tau"], one["squared_cosine"], color=BLUE, label=r"$\lambda_U \to 0$")
    ax.plot(
        one["tau_run"],
        one["squared_cosine_run"],
        color=ORANGE,
        linestyle=DASHED,
        label="discrete run",
    )
    scale, end = float(one["time_scale"]), float(one["tau"][-1])
    ax.axvline(scale, color=GREY, linewidth=0.9, label=r"$\tau_M$")
    ax.set_xlim(0, end)
    ax.set_ylim(0, 1.02)
    few_ticks(ax)
    steps, ridge = int(one.steps), float(one["lambda_u"])
    ax.set_title(
        rf"{one.loss.item()}, $T={steps}$, $\rho={float(one.rho):g}$" + "\n"
        rf"$\lambda_U^* T = {steps * ridge / scale:.2g}\,\tau_M$",
        fontsize=7,
    )


def claims(data: Data, full: bool) -> list[Claim]:
    paths = data["paths"].sel(loss="squared")
    apart, last = paths["apart"], _elapsed(paths).isel(steps=-1)
    end = float(paths["squared_cosine"].isel(point=-1).min())
    return [
        Claim(
            quote=(
                "As $T$ increases, $\\lambda_U^*$ decreases to justify the description by"
                " continuous-time dynamics"
            ),
            test=(
                "For every rho the best ridge and the largest difference of M between the discrete"
                " run and the continuous one fall with every T."
            ),
            ruling=at_full_size(full, _nearer(paths), _smaller_ridges(paths)),
            found=_differences(paths),
            numbers=numbers(largest_at_end=apart.isel(steps=-1).max()),
        ),
        Claim(
            quote=(
                "However, the elapsed time $\\lambda_U^* \\times t$ of the actual optimal"
                " regularization parameter $\\lambda_U^*$ is not sufficiently larger than $\\tau_M$"
                " when $\\rho\\neq 1/2$"
            ),
            test=(
                f"lambda_U* T at the largest T is below {FEW_TIMES.size:g} tau_M at rho = 0.2 and"
                " 0.4, and above it at rho = 0.5."
            ),
            ruling=at_full_size(full, *_ends_early(paths)),
            found=_times(paths),
            numbers=numbers(
                **{f"elapsed_{float(r):g}": v for r, v in zip(paths.rho, last.values, strict=True)}
            ),
        ),
        Claim(
            quote="although $M_{\\tilde t}\\simeq 1$ at $\\tilde t\\gg1$ as expected",
            test=(
                "The continuous run is followed over at least eight time scales; for every rho and"
                f" T its M ends above {1 - ALIGNED.size:g}."
            ),
            ruling=at_full_size(full, below("largest 1 - M at the end", 1 - end, ALIGNED)),
            found=f"Smallest M at the end: {end:.5f}.",
            numbers=numbers(smallest=end),
        ),
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    paths = data["paths"].sel(loss="logistic")
    return [
        Finding(
            says=(
                "The same holds for the logistic loss: runs go over into continuous time, and those"
                " of imbalanced classes end before their direction is aligned (the tests above)."
            ),
            ruling=at_full_size(full, _nearer(paths), *_ends_early(paths)),
            found=f"{_differences(paths)} {_times(paths)}",
            numbers=numbers(largest_at_end=paths["apart"].isel(steps=-1).max()),
        ),
        above_bayes(data["paths"]["error"], data["paths"]["bayes"], full),
    ]


def _nearer(paths: Any) -> Criterion:
    """Runs come nearer to their limit with every T."""
    return positive("smallest fall of the difference", _falls(paths["apart"]))


def _smaller_ridges(paths: Any) -> Criterion:
    return positive("smallest fall of the ridge", _falls(paths["lambda_u"]))


def _falls(values: Any) -> float:
    """The smallest fall from one T to the next; NaN if there is one T only."""
    return float(-values.diff("steps").max()) if values.steps.size > 1 else float("nan")


def _ends_early(paths: Any) -> tuple[Criterion, Criterion]:
    """Imbalanced runs end within few time scales, balanced ones do not."""
    last = _elapsed(paths).isel(steps=-1)
    return (
        below("most time scales, imbalanced", last.sel(rho=[0.2, 0.4]).max(), FEW_TIMES),
        above("time scales, balanced", last.sel(rho=0.5), FEW_TIMES),
    )


def _elapsed(paths: Any) -> Any:
    return paths["lambda_u"] * paths.steps / paths["time_scale"]


def _differences(paths: Any) -> str:
    return (
        "Largest difference of M by T: "
        + "; ".join(
            f"rho = {rho:g}: {listed(paths.steps, paths['apart'].sel(rho=rho).values)}"
            for rho in paths.rho.values
        )
        + "."
    )


def _times(paths: Any) -> str:
    last = _elapsed(paths).isel(steps=-1)
    return (
        f"lambda_U* T / tau_M at T = {int(paths.steps[-1])} by rho:"
        f" {listed(paths.rho, last.values)}."
    )


def caption(data: Data) -> str:
    return (
        r"Squared cosine $M = m^2/q$ of tuned runs (dashed, red) and of the continuous-time limit"
        r" from the same start "
        r"(solid, blue) against $\tau = \lambda_U t$; grey: $\tau_M$, the time in which the odds"
        r" $M/(1-M)$ grow by a factor $e$, "
        r"on average until $M = 0.99$ (a constant of the squared loss; beyond the end of some"
        r" panels). The dashed run ends where its last step is. "
        r"The panels of the logistic loss are ours."
    )


FIGURE = Figure(
    "continuum",
    "Discrete runs against continuous time",
    Place("Section 4.2", 8, "fig: vs continuous squared loss"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=(
        rf"$(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$, $T$ = 64, 256,"
        r" 1024, $\rho$ = 0.2, 0.4, 0.5, squared loss, "
        r"tuned for the last error."
    ),
    chosen=r"$\lambda_L, \lambda_U \in (0, 0.1]$, $\Gamma = 0$; the panels of the logistic loss.",
)
