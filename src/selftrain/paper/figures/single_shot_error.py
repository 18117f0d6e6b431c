r"""One step with ridges up to 10: finite systems far from the theory, until they are very large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...sweeps import Grid, Task
from ..computations.single_shot import SINGLE_SHOT, SINGLE_SHOT_RUN
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import above_bayes, by_size, listed, numbers, power_law
from ..ruling import Bar, above, at_full_size, below, positive
from ..setting import ALPHA_L, DELTAS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

LARGEST = 10.0
BATCHES = (0.5, 1.0, 2.0, 4.0, 8.0)
BATCHES_QUICK = (1.0, 4.0)
HEAVY = Bar(0.1, "a tenth of the error is what the eye sees")
ROOT = Bar(0.1, "a fifth of the exponent")
SEEDS = {128: 256, 1024: 128, 8192: 32, 2**17: 8, 2**20: 3}
SEEDS_QUICK = {128: 32, 1024: 16, 8192: 8}


def tasks(quick: bool) -> Mapping[str, Task]:
    axes: dict[str, Any] = {"delta": DELTAS, "alpha_u": BATCHES_QUICK if quick else BATCHES}
    fixed = {"rho": 0.5, "alpha_l": ALPHA_L, "largest": LARGEST}
    parts = {"theory": Task(SINGLE_SHOT, Grid(axes, fixed))}
    for features, count in (SEEDS_QUICK if quick else SEEDS).items():
        grid = Grid({**axes, "seed": tuple(range(count))}, {**fixed, "features": features})
        parts[f"N{features}"] = Task(SINGLE_SHOT_RUN, grid)
    return parts


def draw(data: Data) -> Drawing:
    from ...plots.paper import DOTTED, SERIES, canvas, handle, legend_right, letter
    from ...plots.style import BLACK, GREY, styled

    theory = data["theory"]
    sizes = by_size(data)
    with styled():
        columns = theory.delta.size
        figure, axes = canvas(1, columns, 3.6 * columns + 1.6, 3.6)
        for ax, delta in zip(axes[0], theory.delta.values, strict=True):
            one = theory.sel(delta=delta)
            ax.plot(one.alpha_u, one["error"], color=BLACK)
            ax.plot(one.alpha_u, one["bayes"], color=GREY, linestyle=DOTTED)
            for index, (_, runs) in enumerate(sizes):
                values = runs["error"].sel(delta=delta)
                ax.errorbar(
                    one.alpha_u * 2 ** (0.06 * (index - 2)),
                    values.mean("seed"),
                    values.std("seed", ddof=1),
                    color=SERIES[1:][index],
                    marker="os^Dv"[index],
                    linestyle="none",
                    elinewidth=0.8,
                )
            ax.set_xscale("log", base=2)
            ax.set_xlabel(r"$\alpha_U$")
            ax.set_title(rf"$(\rho, \Delta) = (0.5, {delta:g})$")
        axes[0, 0].set_ylabel(r"$\epsilon_g^{(1)}$")
        letter(axes[0])
        legend_right(
            figure,
            [
                handle("theory", BLACK),
                *(
                    handle(
                        f"N = {features:,}\n{runs.seed.size} seeds",
                        SERIES[1:][index],
                        "os^Dv"[index],
                        "none",
                    )
                    for index, (features, runs) in enumerate(sizes)
                ),
                handle("Bayes limit", GREY, "", DOTTED),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    strong = _strong(data)
    largest = _excess(data)
    small = [features for features in largest if features <= 8192]
    return [
        Claim(
            quote="For moderately large $\\alpha_U$, $(\\lambda^{(0)}, \\lambda^{(1)})=(10,10)$",
            test="At the largest alpha_U both ridges are at their bound, 10, for both Delta.",
            ruling=at_full_size(
                full,
                positive("share at the bound, less one half", strong.isel(alpha_u=-1).min() - 0.5),
            ),
            found=(
                f"So it is at {int(strong.sum())} of {strong.size} points; at the largest alpha_U"
                f" for {int(strong.isel(alpha_u=-1).sum())} of {strong.delta.size} Delta."
            ),
            numbers=numbers(at_bound=strong.sum(), points=strong.size),
        ),
        Claim(
            quote=(
                "for such large regularization parameters, the experimental results heavily suffer"
                " from large finite-size effects"
            ),
            test=(
                "Where the ridges are at their bound the mean error is somewhere more than"
                f" {HEAVY.size:.0%} above the theory, at every N up to 8192."
            ),
            ruling=at_full_size(
                full,
                above(
                    "smallest of the largest excesses",
                    min(largest[features] for features in small) if strong.any() else 0.0,
                    HEAVY,
                ),
            ),
            found=(
                "Largest excess of the mean error by N: "
                f"{listed(list(largest), np.array(list(largest.values())), '{:.0%}')}."
            ),
            numbers=numbers(**{f"excess_{features}": value for features, value in largest.items()}),
        ),
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    theory, sizes = data["theory"], by_size(data)
    strong, largest = _strong(data), _excess(data)
    if not strong.any():
        return [above_bayes(theory["error"], theory["bayes"], full)]
    tilt = {
        features: _typical(runs["bias_to_norm"].where(strong).values) for features, runs in sizes
    }
    law = power_law(list(tilt), list(tilt.values()))
    turn = float((1 - sizes[-1][1]["one_minus_cosine"].mean("seed")).where(strong).mean())
    needed = float(np.exp(np.log(0.1 * turn / law.amplitude) / law.exponent))
    last = sizes[-1][0]
    return [
        Finding(
            says=(
                "It is an effect of size: the weights are so small that the bias, zero in theory,"
                " rules the answer, and it falls as N^(-1/2) (fitted exponent of the geometric mean"
                " of |B|/sqrt(q) between -0.6 and -0.4)."
            ),
            ruling=at_full_size(
                full, below("distance of the exponent from -1/2", abs(law.exponent + 0.5), ROOT)
            ),
            found=(
                f"Exponent {law.exponent:.3f}; |B|/sqrt(q) by N:"
                f" {listed(list(tilt), np.array(list(tilt.values())))}, where the cosine is"
                f" {turn:.3g}. It would be a tenth of the cosine at N = {needed:.1g}."
            ),
            numbers=numbers(exponent=law.exponent, cosine=turn, needed=needed),
        ),
        Finding(
            says=(
                "A million features are not enough for the theory (mean error at N = 2^20 more than"
                " 10 % above it somewhere)."
            ),
            ruling=at_full_size(full, above("largest excess", largest[last], HEAVY)),
            found=f"Largest excess at N = {last:,}: {largest[last]:.0%}.",
            numbers=numbers(excess=largest[last]),
        ),
        above_bayes(theory["error"], theory["bayes"], full),
    ]


def _strong(data: Data) -> xr.DataArray:
    """Where both ridges are at their bound."""
    theory = data["theory"]
    return (theory["lambda_u"] > 0.99 * LARGEST) & (theory["lambda_l"] > 0.99 * LARGEST)


def _excess(data: Data) -> dict[int, float]:
    """The largest excess of the mean error over the theory where the ridges are at their bound, by
    N.
    """
    theory, strong = data["theory"], _strong(data)
    return {
        features: float((runs["error"].mean("seed") / theory["error"] - 1).where(strong).max())
        for features, runs in by_size(data)
    }


def caption(data: Data) -> str:
    return (
        r"Error after one step of self-training at the ridges that minimise it in $(0, 10]^2$:"
        r" theory (black) and finite systems at the same "
        r"ridges (mean and standard deviation over seeds). Dotted: the Bayes limit. Sizes are drawn"
        r" side by side."
    )


def _typical(values: Array) -> float:
    """The geometric mean of the sizes of those that are there."""
    return float(np.exp(np.nanmean(np.log(np.abs(values)))))


FIGURE = Figure(
    "single-shot-error",
    "A single step with large ridges: finite systems against theory",
    Place("Appendix H", 15, "fig: large regularization single-shot ST"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=r"$T = 1$, $\rho = 1/2$, $\Delta$ = 1, 0.5625, ridges in $(0, 10)$.",
    chosen=(
        rf"$\alpha_L = {ALPHA_L:g}$, the $\alpha_U$ drawn, $\Gamma = 0$, sizes and numbers of"
        r" seeds."
    ),
)
