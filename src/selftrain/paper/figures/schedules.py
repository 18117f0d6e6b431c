r"""How close self-training comes to the Bayes limit when hyperparameters are free at every step: beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sweep import Grid, Task
from ..computations.schedules import CONFIRMED, LIMIT, SCHEDULES, WAYS
from ..figure import Claim, Data, Figure
from ..judge import listed, numbers, power_law
from ..setting import ALPHA_L, ALPHA_U, DELTA, RIDGES

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

RHOS = (0.5, 0.4, 0.2)
CONSTANT, SECOND, RIDGE, ALL = range(len(WAYS))
TRAINED, FIXED = False, True


def tasks(quick: bool) -> Mapping[str, Task]:
    setting = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA}
    rhos = RHOS[:2] if quick else RHOS
    chains = Grid(
        {"rho": rhos, "fix_bias": (TRAINED, FIXED)}, {**setting, "longest": 4 if quick else 256}
    )
    size = (
        {"steps": 4, "features": 2**13, "seeds": 4}
        if quick
        else {"steps": 16, "features": 2**17, "seeds": 16}
    )
    return {
        "schedules": Task(SCHEDULES, chains),
        "confirmed": Task(CONFIRMED, Grid({"rho": rhos}, {**setting, **size})),
    }


def draw(data: Data) -> Drawing:
    from ...plots.paper import DASHED, DOTTED, canvas, handle, legend_right, lengths_axis
    from ...plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, styled

    found = data["schedules"]
    colors = (BLACK, BLUE, GREEN, ORANGE)
    with styled():
        figure, axes = canvas(3, found.rho.size, 9.6, 7.4, sharey="row")
        for column, rho in enumerate(found.rho.values):
            case = found.sel(rho=rho)
            top, middle, bottom = axes[:, column]
            top.set_title(rf"$\rho = {rho:g}$")
            _draw_errors(top, case, colors)
            ratio = case.isel(fix_bias=0)
            top.plot(
                case.T, ratio["supervised"] / ratio["bayes"] - 1, color=PURPLE, linestyle=DOTTED
            )
            _draw_ridges(middle, case, colors, DASHED)
            _draw_labels(bottom, case)
            lengths_axis((top,), case.T.values.tolist())
        axes[0, 0].set_ylabel(r"$\epsilon_g^{(T)}/\epsilon_{Bayes} - 1$")
        axes[1, 0].set_ylabel(r"$\lambda_U^{(t)}$")
        axes[2, 0].set_ylabel(r"$\gamma^{(t)} - 1$, $\Gamma^{(t)}$")
        legend_right(
            figure,
            [
                handle("constant ridge", colors[CONSTANT], "o"),
                handle("and selection", colors[SECOND], "o", DASHED, filled=False),
                handle("and annealing", colors[SECOND], "o"),
                handle("ridge free", colors[RIDGE], "o"),
                handle("all free", colors[ALL], "o"),
                handle("bias fixed", GREY, "o"),
                handle("bias trained", GREY, "o", DASHED, filled=False),
                handle("supervised", PURPLE, "", DOTTED),
                handle(r"$\propto 1/t$", GREY, "", DOTTED),
                handle(r"$\gamma - 1$", ORANGE),
                handle(r"$\Gamma$", BLUE),
            ],
        )
    return figure


def _draw_errors(ax: Axes, case: xr.Dataset, colors: tuple[str, ...]) -> None:
    from ...plots.paper import series

    for fixed in (TRAINED, FIXED):
        one = case.sel(fix_bias=fixed)
        for way, color in enumerate(colors):
            excess = one["error"].isel(way=way) / one["bayes"] - 1
            series(ax, case.T, excess, color, "o", fixed)
    ax.set_yscale("log")


def _draw_ridges(ax: Axes, case: xr.Dataset, colors: tuple[str, ...], dashed: Any) -> None:
    from ...plots.paper import DOTTED
    from ...plots.style import GREY

    longest = case.isel(T=-1)
    for fixed in (TRAINED, FIXED):
        for way in (RIDGE, ALL):
            curve = longest["lambda_u"].sel(fix_bias=fixed).isel(way=way)
            ax.plot(case.t, curve, color=colors[way], linestyle="solid" if fixed else dashed)
    last = float(longest["lambda_u"].sel(fix_bias=FIXED).isel(way=ALL, t=-1))
    t = case.t.values
    guide = last * t[-1] / t
    ax.plot(t[guide <= 0.1], guide[guide <= 0.1], color=GREY, linestyle=DOTTED)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("step $t$")


def _draw_labels(ax: Axes, case: xr.Dataset) -> None:
    from ...plots.style import BLUE, ORANGE

    longest = case.isel(T=-1, way=ALL).sel(fix_bias=FIXED)
    ax.plot(case.t, longest["sharpness"] - 1, color=ORANGE)
    ax.plot(case.t, longest["threshold"], color=BLUE)
    ax.set_xscale("log", base=2)
    ax.set_yscale("symlog", linthresh=1e-3)
    ax.set_xlabel("step $t$")


def claims(data: Data) -> list[Claim]:
    found, finite = data["schedules"], data["confirmed"]
    error, bayes = found["error"], found["bayes"]
    excess = error / bayes - 1
    longest = int(found.T[-1])
    rhos = found.rho.values
    gain = 1 - excess.isel(way=RIDGE) / excess.isel(way=CONSTANT)
    balanced = gain.sel(rho=0.5, fix_bias=TRAINED)
    trained = excess.sel(fix_bias=TRAINED).isel(T=-1)
    fixed = excess.sel(fix_bias=FIXED)
    ratio = error.sel(fix_bias=FIXED).isel(way=ALL) / found["supervised"].sel(fix_bias=FIXED)
    better = error.sel(fix_bias=FIXED)
    worse = float((better.isel(way=ALL) / better.isel(way=SECOND)).max())
    z = (finite["mean"] - finite["theory"]) / finite["standard_error"]
    off = finite["mean"] / finite["theory"] - 1
    said = [
        Claim(
            "A ridge that is free at every step is better than a constant one: with balanced classes it takes away "
            "more than a tenth of the excess over the Bayes limit in every run of 16 steps or more.",
            bool((balanced.where(found.T >= 16, drop=True) > 0.1).all()) if longest >= 16 else None,
            f"Share taken away at T = {listed(found.T.values, balanced.values)}.",
            numbers(**{f"share_{int(T)}": float(balanced.sel(T=T)) for T in found.T.values}),
        ),
        Claim(
            "With a trained bias free schedules do not cure label imbalance: at the smallest rho the excess over the Bayes "
            "limit stays above one half of the limit.",
            bool(float(trained.isel(way=ALL, rho=-1)) > 0.5),
            f"Excess of all free at T = {longest}: {listed(rhos, trained.isel(way=ALL).values)}; "
            f"of a constant ridge: {listed(rhos, trained.isel(way=CONSTANT).values)}.",
            numbers(excess=float(trained.isel(way=ALL, rho=-1))),
        ),
        Claim(
            "With the bias fixed and all hyperparameters free, self-training is better than the paper's heuristics "
            "at every rho and T.",
            bool(worse < 1),
            f"Error over that of the heuristics: at most {worse:.4f}; by rho at T = {longest}: "
            f"{listed(rhos, (better.isel(way=ALL, T=-1) / better.isel(way=SECOND, T=-1)).values)}.",
            numbers(largest_ratio=worse),
        ),
        Claim(
            "It comes close to supervised learning with all labels (within 2 % at the largest T).",
            bool(float(ratio.isel(T=-1).max()) < 1.02) if longest >= 64 else None,
            "Error over that of supervised learning with lambda <= 0.1, at "
            + "; ".join(f"T = {int(T)}: {listed(rhos, ratio.sel(T=T).values)}" for T in found.T.values)
            + f". Excess over the Bayes limit at T = {longest}: {listed(rhos, fixed.isel(way=ALL, T=-1).values)}.",
            numbers(**{f"ratio_{rho:g}": float(ratio.sel(rho=rho).isel(T=-1)) for rho in rhos}),
        ),
        Claim(
            "Finite systems follow the best schedules (mean errors within 0.1 % of the theory, or four standard errors).",
            bool(((np.abs(z) < 4) | (np.abs(off) < 1e-3)).all()),
            f"Relative deviations: {listed(rhos, off.values)}; in standard errors: {listed(rhos, z.values)} (at an optimum "
            f"fluctuations can only raise the error, by an amount of order 1/N); theory {listed(rhos, finite['theory'].values)}, "
            f"simulation {listed(rhos, finite['mean'].values)}.",
            numbers(**{f"z_{rho:g}": float(z.sel(rho=rho)) for rho in rhos}),
        ),
    ]  # fmt: skip
    said.insert(4, _rule_of_thumb(found, longest))
    return said


def _rule_of_thumb(found: xr.Dataset, longest: int) -> Claim:
    says = (
        "The best ridges fall as 1/t (exponents between -1.35 and -0.75, fitted from an eighth of the run on, "
        "bias fixed, all free)."
    )
    if longest < 64:
        return Claim(says, None, "Runs of 64 steps or more are needed to tell.")
    laws = {}
    for rho in found.rho.values:
        curve = found["lambda_u"].sel(rho=rho, fix_bias=FIXED).isel(way=ALL, T=-1)
        late = found.t.values >= longest // 8
        laws[float(rho)] = power_law(found.t.values[late], curve.values[late])
    exponents = {rho: law.exponent for rho, law in laws.items()}
    first = found.isel(T=-1, way=ALL, t=0).sel(fix_bias=FIXED)
    return Claim(
        says,
        all(-1.35 < value < -0.75 for value in exponents.values()),
        f"Exponents: {listed(list(exponents), np.array(list(exponents.values())))}. t times the last ridge: "
        + listed(
            found.rho.values,
            longest * found["lambda_u"].sel(fix_bias=FIXED).isel(way=ALL, T=-1, t=-1).values,
        )
        + f". First step: sharpness {listed(found.rho.values, first['sharpness'].values)}, "
        f"threshold {listed(found.rho.values, first['threshold'].values)}.",
        numbers(**{f"exponent_{rho:g}": value for rho, value in exponents.items()}),
    )


def caption(data: Data) -> str:
    longest = int(data["schedules"].T[-1])
    return (
        r"Top: excess of the error over the Bayes limit against T, for recipes with ever more freedom; filled, solid: bias "
        r"fixed, white, dashed: bias trained. Constant ridge; selection too (bias trained) or annealing too (bias fixed: the "
        r"paper's heuristics); ridge free at every step; ridge, sharpness and threshold free at every step. Middle: the best "
        rf"ridges at $T = {longest}$, with $1/t$ dotted. Bottom: sharpness and threshold of the run with all free and the bias "
        rf"fixed. {RIDGES}, $(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$; a search has at most "
        rf"{LIMIT} iterations, so the longest free schedules may be improved by less than the width of a line."
    )


FIGURE = Figure(
    "schedules",
    "Free schedules against the Bayes limit",
    "beyond the paper: `docs/gradients.md`",
    tasks,
    draw,
    claims,
    caption,
)
