"""Self-training with hyperparameters free at every step, compared with the Bayes error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.free_schedules import CONFIRMED, LIMIT, SCHEDULES, WAYS
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed, listed_by, power_law
from ..ruling import Bar, Judged, above, at_full_size, below, positive
from ..setting import AMOUNTS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["LIMIT", "draw", "judge", "tasks"]

JUDGED_ONLY = ("confirmed",)
RHOS = (0.5, 0.4, 0.2)
CONSTANT, SECOND, RIDGE, ALL = range(len(WAYS))
TRAINED, FIXED = False, True
WORTH = Bar(0.1, "a tenth of the excess")
UNCURED = Bar(0.5, "one half of the limit")
CLOSE = Bar(0.02, "a fiftieth of the error")
FOLLOWED = Bar(1.0, "0.1 % of the theory or four standard errors, whichever is more")
BALANCED = Bar(0.3, "half of the distance between 1/t and what imbalanced classes have")


def tasks(quick: bool) -> Tasks:
    rhos = RHOS[:2] if quick else RHOS
    axes: dict[str, Any] = {"rho": rhos, "fix_bias": (TRAINED, FIXED)}
    size = {"steps": 16, "features": 2**17, "seeds": 16}
    if quick:
        size = {"steps": 4, "features": 2**13, "seeds": 4}
    return {
        "schedules": Task(SCHEDULES, Grid(axes, {**AMOUNTS, "longest": 4 if quick else 256})),
        "confirmed": Task(CONFIRMED, Grid({"rho": rhos}, {**AMOUNTS, **size})),
    }


def draw(data: Data) -> Drawn:
    found = data["schedules"]
    colors = (style.BLACK, style.BLUE, style.GREEN, style.ORANGE)
    size = (3.0 * found.rho.size + 2.0, 9.6)
    figure, axes = pic.canvas(4, found.rho.size, *size, sharey="row")
    axes[1, 0].sharey(axes[0, 0])
    for column, rho in zip(axes.T, found.rho.values, strict=True):
        case = found.sel(rho=rho)
        for ax, fixed in zip(column[:2], (TRAINED, FIXED), strict=True):
            one = case.sel(fix_bias=fixed)
            for way, color in enumerate(colors):
                pic.series(
                    ax, case.T, one["error"].isel(way=way) / one["bayes"] - 1, color, "o", fixed
                )
            style.logarithmic(ax)
            excess = one["supervised"] / one["bayes"] - 1
            ax.plot(case.T, excess, color=style.GREY, linestyle=pic.DOTTED)
            ax.set_title(rf"bias {'fixed' if fixed else 'trained'}, $\rho = {rho:g}$")
        pic.lengths_axis(column[:2], case.T.values.tolist())
        _draw_ridges(column[2], case, colors)
        _draw_labels(column[3], case, (style.PURPLE, style.SKY))
    error = r"$\epsilon_g^{(T)}/\epsilon_{Bayes} - 1$"
    labels = (error, error, r"$\lambda_U^{(t)}$", r"$\gamma^{(t)} - 1$, $\Gamma^{(t)}$")
    pic.label_rows(axes, *labels)
    names = ("constant ridge", "and selection\nor annealing", "ridge free", "all free")
    return figure, [
        *(pic.handle(name, color, "o") for name, color in zip(names, colors, strict=True)),
        *pic.switch_legend("bias fixed", "bias trained"),
        pic.handle("supervised;\n" + r"$\propto 1/t$ below", style.GREY, "", pic.DOTTED),
        pic.handle(r"$\gamma - 1$", style.PURPLE),
        pic.handle(r"$\Gamma$", style.SKY),
    ]


def _draw_ridges(ax: Axes, case: xr.Dataset, colors: tuple[str, ...]) -> None:
    ridges = case["lambda_u"].isel(T=-1)
    for fixed in (TRAINED, FIXED):
        dashes: Any = "solid" if fixed else pic.DASHED
        for way in (RIDGE, ALL):
            curve = ridges.sel(fix_bias=fixed).isel(way=way)
            ax.plot(case.t, curve, color=colors[way], linestyle=dashes)
    t = case.t.values
    guide = float(ridges.sel(fix_bias=FIXED).isel(way=ALL, t=-1)) * t[-1] / t
    ax.plot(t[guide <= 0.1], guide[guide <= 0.1], color=style.GREY, linestyle=pic.DOTTED)
    ax.set_title(rf"ridges, $T = {t[-1]}$")
    ax.set_xscale("log", base=2)
    style.logarithmic(ax)
    ax.set_xlabel("step $t$")


def _draw_labels(ax: Axes, case: xr.Dataset, colors: tuple[str, str]) -> None:
    longest = case.isel(T=-1, way=ALL).sel(fix_bias=FIXED)
    ax.plot(case.t, longest["sharpness"] - 1, color=colors[0])
    ax.plot(case.t, longest["threshold"], color=colors[1])
    ax.set_title(rf"labels, all free, $T = {int(case.t[-1])}$")
    ax.set_xscale("log", base=2)
    ax.set_yscale("symlog", linthresh=1e-3)
    ax.set_xlabel("step $t$")


def judge(data: Data) -> Claims:
    found, finite = data["schedules"], data["confirmed"]
    excess = found["error"] / found["bayes"] - 1
    longest = int(found.T[-1])
    gain = 1 - excess.isel(way=RIDGE) / excess.isel(way=CONSTANT)
    balanced = gain.sel(rho=0.5, fix_bias=TRAINED)
    long = balanced.where(min(16, longest) <= found.T, drop=True)  # quick: the longest
    last = excess.isel(T=-1)
    trained = last.sel(fix_bias=TRAINED)
    best = found["error"].sel(fix_bias=FIXED)
    ratio = best.isel(way=ALL) / found["supervised"].sel(fix_bias=FIXED)
    free = best.isel(way=ALL) / best.isel(way=SECOND)
    worse = float(free.max())
    z = (finite["mean"] - finite["theory"]) / finite["standard_error"]
    off = finite["mean"] / finite["theory"] - 1
    yield at_full_size(
        "ridge",
        f"Share taken away at T = {listed(balanced)}.",
        above("smallest share", long.min(), WORTH),
    )
    yield at_full_size(
        "uncured",
        f"Excess of all free at T = {longest}: {listed(trained.isel(way=ALL))}; of a constant"
        f" ridge: {listed(trained.isel(way=CONSTANT))}.",
        above("excess", trained.isel(way=ALL, rho=-1), UNCURED),
    )
    yield at_full_size(
        "heuristics",
        f"Error over that of the heuristics: at most {worse:.4f}; by rho at T = {longest}: "
        f"{listed(free.isel(T=-1))}.",
        positive("smallest reduction", 1 - worse),
    )
    yield at_full_size(
        "supervised",
        "Error over that of supervised learning with lambda <= 0.1, at"
        f" {listed_by('T', ratio)}. Excess over the Bayes error at T = {longest}:"
        f" {listed(last.sel(fix_bias=FIXED).isel(way=ALL))}.",
        below("largest excess", ratio.isel(T=-1).max() - 1, CLOSE),
    )
    yield _rule_of_thumb(found.sel(fix_bias=FIXED).isel(way=ALL, T=-1), longest)
    yield at_full_size(
        "finite",
        f"Relative deviations: {listed(off)}; in standard errors: {listed(z)} (at an optimum"
        " fluctuations can only raise the error, by an amount of order 1/N); theory"
        f" {listed(finite['theory'])}, simulation {listed(finite['mean'])}.",
        below(
            "largest deviation in these units",
            np.minimum(np.abs(z) / 4, np.abs(off) / 1e-3).max(),
            FOLLOWED,
        ),
    )


def _rule_of_thumb(best: xr.Dataset, longest: int) -> Judged:
    """Judge how the best ridges fall with t, from the longest runs with all hyperparameters free
    and the bias fixed.
    """
    if longest < 64:
        unknown = below("distance of the exponent from -1", np.nan, BALANCED)
        words = "Runs of 64 steps or more are needed to tell."
        return at_full_size("rule", words, unknown)
    late = best["lambda_u"].sel(t=best.t >= longest // 8)
    laws = {float(one.rho): power_law(one.t, one).exponent for one in late.transpose("rho", "t")}
    first = best.isel(t=0)
    return at_full_size(
        "rule",
        f"Exponents: {listed(laws)}. t times the last ridge:"
        f" {listed(longest * best['lambda_u'].isel(t=-1))}. First step: sharpness"
        f" {listed(first['sharpness'])}, threshold {listed(first['threshold'])}.",
        *(
            below("distance of the exponent from -1, balanced", abs(value + 1), BALANCED)
            if rho == 0.5
            else above(f"how far below -1 at rho = {rho:g}", -1 - value, BALANCED)
            for rho, value in laws.items()
        ),
    )
