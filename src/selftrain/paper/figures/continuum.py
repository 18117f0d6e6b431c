"""The squared cosine of tuned runs against its continuous-time limit, squared and logistic loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.paths import PATH
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import above_bayes, listed, listed_by
from ..ruling import Bar, Criterion, above, at_full_size, below, positive
from ..setting import AMOUNTS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

FEW_TIMES = Bar(2.0, "in two time scales the odds of M grow by a factor of seven only")
ALIGNED = Bar(0.01, "the level at which the direction counts as found")


def tasks(quick: bool) -> Tasks:
    axes: dict[str, Any] = {
        "loss": ("squared", "logistic"),
        "steps": (16,) if quick else (64, 256, 1024),
        "rho": (0.2, 0.4, 0.5),
    }
    return {"paths": Task(PATH, Grid(axes, AMOUNTS))}


def draw(data: Data) -> Drawn:
    paths = data["paths"]
    rows = [(loss, steps) for loss in paths.loss.values for steps in paths.steps.values]
    size = (len(rows), paths.rho.size, 7.8, 1.75 * len(rows) + 0.6)
    figure, axes = pic.canvas(*size, r"$\tau = \lambda_U t$", "$M$", sharey=True)
    for row, (loss, steps) in zip(axes, rows, strict=True):
        for ax, rho in zip(row, paths.rho.values, strict=True):
            _panel(ax, paths.sel(loss=loss, steps=steps, rho=rho))
    entries = [
        pic.handle(r"continuous time, $\lambda_U \to 0$", style.BLUE),
        pic.handle("discrete run", style.ORANGE, "", pic.DASHED),
        pic.handle(r"$\tau_M$", style.GREY),
    ]
    style.legend_under(figure, entries, columns=4)
    return figure, []


def _panel(ax: Axes, one: xr.Dataset) -> None:
    ax.plot(one["tau"], one["squared_cosine"], color=style.BLUE, label=r"$\lambda_U \to 0$")
    run: Any = {"color": style.ORANGE, "label": "discrete run"}
    ax.plot(one["tau_run"], one["squared_cosine_run"], linestyle=pic.DASHED, **run)
    scale, end = float(one["time_scale"]), float(one["tau"][-1])
    ax.axvline(scale, color=style.GREY, linewidth=0.9, label=r"$\tau_M$")
    ax.set_xlim(0, end)
    ax.set_ylim(0, 1.02)
    pic.few_ticks(ax)
    steps, ridge = int(one.steps), float(one["lambda_u"])
    ax.set_title(
        rf"{one.loss.item()}, $T={steps}$, $\rho={float(one.rho):g}$" + "\n"
        rf"$\lambda_U^* T = {steps * ridge / scale:.2g}\,\tau_M$",
        fontsize=7,
    )


def judge(data: Data) -> Claims:
    paths, logistic = (data["paths"].sel(loss=loss) for loss in ("squared", "logistic"))
    end = float(paths["squared_cosine"].isel(point=-1).min())
    ridges = positive("smallest fall of the ridge", _falls(paths["lambda_u"]))
    yield at_full_size("continuous", _differences(paths), _nearer(paths), ridges)
    yield at_full_size("elapsed", _times(paths), *_ends_early(paths))
    yield at_full_size(
        "aligned",
        f"Smallest M at the end: {end:.5f}.",
        below("largest 1 - M at the end", 1 - end, ALIGNED),
    )
    yield at_full_size(
        "logistic",
        f"{_differences(logistic)} {_times(logistic)}",
        _nearer(logistic),
        *_ends_early(logistic),
    )
    yield above_bayes(data["paths"]["error"], data["paths"]["bayes"])


def _nearer(paths: xr.Dataset) -> Criterion:
    """Require that runs come closer to their limit with every larger T."""
    return positive("smallest fall of the difference", _falls(paths["apart"]))


def _falls(values: xr.DataArray) -> float:
    """Return the smallest decrease from one T to the next; NaN if there is only one T."""
    return float(-values.diff("steps").max()) if values.steps.size > 1 else float("nan")


def _ends_early(paths: xr.Dataset) -> tuple[Criterion, Criterion]:
    """Require imbalanced runs to end within few time scales, and balanced ones not to."""
    last = _elapsed(paths)
    return (
        below("most time scales, imbalanced", last.sel(rho=[0.2, 0.4]).max(), FEW_TIMES),
        above("time scales, balanced", last.sel(rho=0.5), FEW_TIMES),
    )


def _elapsed(paths: xr.Dataset) -> xr.DataArray:
    """Return the total time of the longest runs, in units of their time scale."""
    last = paths.isel(steps=-1)
    return last["lambda_u"] * last["steps"] / last["time_scale"]


def _differences(paths: xr.Dataset) -> str:
    return f"Largest difference of M by T: {listed_by('rho', paths['apart'])}."


def _times(paths: xr.Dataset) -> str:
    times = listed(_elapsed(paths))
    return f"lambda_U* T / tau_M at T = {int(paths.steps[-1])} by rho: {times}."
