r"""How close self-training comes to the Bayes limit when hyperparameters are free at every step:
beyond the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sweeps import Grid, Task
from ..computations.schedules import CONFIRMED, LIMIT, SCHEDULES, WAYS
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import listed, numbers, power_law
from ..ruling import Bar, above, at_full_size, below, positive
from ..setting import ALPHA_L, ALPHA_U, DELTA

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

RHOS = (0.5, 0.4, 0.2)
CONSTANT, SECOND, RIDGE, ALL = range(len(WAYS))
TRAINED, FIXED = False, True
WORTH = Bar(0.1, "a tenth of the excess")
UNCURED = Bar(0.5, "one half of the limit")
CLOSE = Bar(0.02, "a fiftieth of the error")
FOLLOWED = Bar(1.0, "0.1 % of the theory or four standard errors, whichever is more")
BALANCED = Bar(0.3, "half of the distance between 1/t and what imbalanced classes have")


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
    from ...plots.paper import DASHED, DOTTED, canvas, handle, legend_right, lengths_axis, letter
    from ...plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, styled

    found = data["schedules"]
    colors = (BLACK, BLUE, GREEN, ORANGE)
    with styled():
        figure, axes = canvas(4, found.rho.size, 3.0 * found.rho.size + 2.0, 9.6, sharey="row")
        axes[1, 0].sharey(axes[0, 0])
        for column, rho in zip(axes.T, found.rho.values, strict=True):
            case = found.sel(rho=rho)
            for ax, fixed in zip(column[:2], (TRAINED, FIXED), strict=True):
                _draw_errors(ax, case.sel(fix_bias=fixed), colors, fixed)
                ratio = case.sel(fix_bias=fixed)
                excess = ratio["supervised"] / ratio["bayes"] - 1
                ax.plot(case.T, excess, color=GREY, linestyle=DOTTED)
                words = "fixed" if fixed else "trained"
                ax.set_title(rf"bias {words}, $\rho = {rho:g}$")
            lengths_axis(column[:2], case.T.values.tolist())
            _draw_ridges(column[2], case, colors, DASHED)
            _draw_labels(column[3], case, (PURPLE, SKY))
        axes[0, 0].set_ylabel(r"$\epsilon_g^{(T)}/\epsilon_{Bayes} - 1$")
        axes[1, 0].set_ylabel(r"$\epsilon_g^{(T)}/\epsilon_{Bayes} - 1$")
        axes[2, 0].set_ylabel(r"$\lambda_U^{(t)}$")
        axes[3, 0].set_ylabel(r"$\gamma^{(t)} - 1$, $\Gamma^{(t)}$")
        letter(axes.ravel())
        legend_right(
            figure,
            [
                handle("constant ridge", colors[CONSTANT], "o"),
                handle("and selection\nor annealing", colors[SECOND], "o"),
                handle("ridge free", colors[RIDGE], "o"),
                handle("all free", colors[ALL], "o"),
                handle("bias fixed", GREY, "o"),
                handle("bias trained", GREY, "o", DASHED, filled=False),
                handle("supervised;\n" + r"$\propto 1/t$ below", GREY, "", DOTTED),
                handle(r"$\gamma - 1$", PURPLE),
                handle(r"$\Gamma$", SKY),
            ],
        )
    return figure


def _draw_errors(ax: Axes, one: xr.Dataset, colors: tuple[str, ...], fixed: bool) -> None:
    from ...plots.paper import series
    from ...plots.style import logarithmic

    for way, color in enumerate(colors):
        series(ax, one.T, one["error"].isel(way=way) / one["bayes"] - 1, color, "o", fixed)
    logarithmic(ax)


def _draw_ridges(ax: Axes, case: xr.Dataset, colors: tuple[str, ...], dashed: Any) -> None:
    from ...plots.paper import DOTTED
    from ...plots.style import GREY, logarithmic

    longest = case.isel(T=-1)
    for fixed in (TRAINED, FIXED):
        for way in (RIDGE, ALL):
            curve = longest["lambda_u"].sel(fix_bias=fixed).isel(way=way)
            ax.plot(case.t, curve, color=colors[way], linestyle="solid" if fixed else dashed)
    last = float(longest["lambda_u"].sel(fix_bias=FIXED).isel(way=ALL, t=-1))
    t = case.t.values
    guide = last * t[-1] / t
    ax.plot(t[guide <= 0.1], guide[guide <= 0.1], color=GREY, linestyle=DOTTED)
    ax.set_title(rf"ridges, $T = {t[-1]}$")
    ax.set_xscale("log", base=2)
    logarithmic(ax)
    ax.set_xlabel("step $t$")


def _draw_labels(ax: Axes, case: xr.Dataset, colors: tuple[str, str]) -> None:
    longest = case.isel(T=-1, way=ALL).sel(fix_bias=FIXED)
    ax.plot(case.t, longest["sharpness"] - 1, color=colors[0])
    ax.plot(case.t, longest["threshold"], color=colors[1])
    ax.set_title(rf"labels, all free, $T = {int(case.t[-1])}$")
    ax.set_xscale("log", base=2)
    ax.set_yscale("symlog", linthresh=1e-3)
    ax.set_xlabel("step $t$")


def claims(data: Data, full: bool) -> list[Claim]:
    return []


def findings(data: Data, full: bool) -> list[Finding]:
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
    free = better.isel(way=ALL, T=-1) / better.isel(way=SECOND, T=-1)
    longer = balanced.where(min(16, int(found.T.max())) <= found.T, drop=True)  # quick: the longest
    return [
        Finding(
            says=(
                "A ridge that is free at every step is better than a constant one: with balanced"
                " classes it takes away more than a tenth of the excess over the Bayes limit in"
                " every run of 16 steps or more."
            ),
            ruling=at_full_size(
                full,
                above("smallest share", longer.min(), WORTH),
            ),
            found=f"Share taken away at T = {listed(found.T.values, balanced.values)}.",
            numbers=numbers(
                **{f"share_{int(T)}": float(balanced.sel(T=T)) for T in found.T.values}
            ),
        ),
        Finding(
            says=(
                "With a trained bias free schedules do not cure label imbalance: at rho = 0.2 the"
                " excess over the Bayes limit stays above one half of the limit."
            ),
            ruling=at_full_size(full, above("excess", trained.isel(way=ALL, rho=-1), UNCURED)),
            found=(
                f"Excess of all free at T = {longest}:"
                f" {listed(rhos, trained.isel(way=ALL).values)}; of a constant ridge:"
                f" {listed(rhos, trained.isel(way=CONSTANT).values)}."
            ),
            numbers=numbers(excess=float(trained.isel(way=ALL, rho=-1))),
        ),
        Finding(
            says=(
                "With the bias fixed and all hyperparameters free, self-training is better than the"
                " paper's heuristics at every rho and T."
            ),
            ruling=at_full_size(full, positive("smallest reduction", 1 - worse)),
            found=(
                f"Error over that of the heuristics: at most {worse:.4f}; by rho at T = {longest}: "
                f"{listed(rhos, free.values)}."
            ),
            numbers=numbers(largest_ratio=worse),
        ),
        Finding(
            says=(
                "It comes close to supervised learning with all labels (within 2 % at the"
                " largest T)."
            ),
            ruling=at_full_size(full, below("largest excess", ratio.isel(T=-1).max() - 1, CLOSE)),
            found="Error over that of supervised learning with lambda <= 0.1, at "
            + "; ".join(
                f"T = {int(T)}: {listed(rhos, ratio.sel(T=T).values)}" for T in found.T.values
            )
            + f". Excess over the Bayes limit at T = {longest}:"
            f" {listed(rhos, fixed.isel(way=ALL, T=-1).values)}.",
            numbers=numbers(
                **{f"ratio_{rho:g}": float(ratio.sel(rho=rho).isel(T=-1)) for rho in rhos}
            ),
        ),
        _rule_of_thumb(found, longest, full),
        Finding(
            says=(
                "Finite systems follow the best schedules (mean errors within 0.1 % of the theory,"
                " or four standard errors)."
            ),
            ruling=at_full_size(
                full,
                below(
                    "largest deviation in these units",
                    np.minimum(np.abs(z) / 4, np.abs(off) / 1e-3).max(),
                    FOLLOWED,
                ),
            ),
            found=(
                f"Relative deviations: {listed(rhos, off.values)}; in standard errors:"
                f" {listed(rhos, z.values)} (at an optimum fluctuations can only raise the error,"
                f" by an amount of order 1/N); theory {listed(rhos, finite['theory'].values)},"
                f" simulation {listed(rhos, finite['mean'].values)}."
            ),
            numbers=numbers(**{f"z_{rho:g}": float(z.sel(rho=rho)) for rho in rhos}),
        ),
    ]


def _rule_of_thumb(found: xr.Dataset, longest: int, full: bool) -> Finding:
    says = (
        "With balanced classes the best ridges fall as 1/t, with imbalanced ones faster (exponents"
        " fitted from an eighth of the run on, bias fixed, all free: within"
        f" {BALANCED.size:g} of -1 at rho = 0.5, below that at the others)."
    )
    if longest < 64:
        unknown = below("distance of the exponent from -1", np.nan, BALANCED)
        found_words = "Runs of 64 steps or more are needed to tell."
        return Finding(says=says, ruling=at_full_size(full, unknown), found=found_words)
    laws = {}
    for rho in found.rho.values:
        curve = found["lambda_u"].sel(rho=rho, fix_bias=FIXED).isel(way=ALL, T=-1)
        late = found.t.values >= longest // 8
        laws[float(rho)] = power_law(found.t.values[late], curve.values[late]).exponent
    first = found.isel(T=-1, way=ALL, t=0).sel(fix_bias=FIXED)
    return Finding(
        says=says,
        ruling=at_full_size(
            full,
            *(
                below("distance of the exponent from -1, balanced", abs(value + 1), BALANCED)
                if rho == 0.5
                else above(f"how far below -1 at rho = {rho:g}", -1 - value, BALANCED)
                for rho, value in laws.items()
            ),
        ),
        found=(
            f"Exponents: {listed(list(laws), np.array(list(laws.values())))}. t times the last"
            " ridge: "
        )
        + listed(
            found.rho.values,
            longest * found["lambda_u"].sel(fix_bias=FIXED).isel(way=ALL, T=-1, t=-1).values,
        )
        + f". First step: sharpness {listed(found.rho.values, first['sharpness'].values)}, "
        f"threshold {listed(found.rho.values, first['threshold'].values)}.",
        numbers=numbers(**{f"exponent_{rho:g}": value for rho, value in laws.items()}),
    )


def caption(data: Data) -> str:
    return (
        r"First two rows: excess of the error over the Bayes limit against $T$, for recipes with"
        r" ever more freedom, with the bias trained (white, dashed) and "
        r"fixed (filled, solid). Constant ridge; selection too (bias trained) or annealing too"
        r" (bias fixed: the paper's heuristics); ridge free at every step; "
        r"ridge, sharpness and threshold free at every step. Third row: the best ridges of the"
        r" longest runs, with $1/t$ dotted. Fourth row: sharpness and threshold of "
        rf"the longest run with all free and the bias fixed. A search has at most {LIMIT}"
        r" iterations, so the longest free schedules may be improved by less than "
        r"the width of a line."
    )


FIGURE = Figure(
    "schedules",
    "Free schedules against the Bayes limit",
    Place("beyond the paper: `docs/gradients.md`"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=(
        rf"$(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$ as in Section"
        r" 3.4; $\lambda \in (0, 0.1]$."
    ),
    chosen=r"everything else: the figure is ours.",
)
