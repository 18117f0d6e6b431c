r"""Severely limited labels: both heuristics down to $\alpha_L = 0.02$, theory and finite systems
side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...sweeps import Grid, Task
from ..computations.few_labels import FEW_LABELS, FEW_LABELS_RUN
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import above_bayes, by_size, listed, numbers
from ..ruling import Bar, at_full_size, below, decided, positive
from ..setting import ALPHA_U, DELTA, TUNED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

RHOS = (0.4, 0.2)
LABELS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
LABELS_QUICK = (0.02, 0.1, 0.5)
SEEDS = {1024: 32, 8192: 8}
SEEDS_QUICK = {1024: 8}
STEPS = 16
MODERATE = Bar(0.1, "a tenth of the error with the best bias")

USUAL, SEVERE = 0.5, 0.02


def tasks(quick: bool) -> Mapping[str, Task]:
    axes: dict[str, Any] = {"rho": RHOS, "alpha_l": LABELS_QUICK if quick else LABELS}
    fixed = {"alpha_u": ALPHA_U, "delta": DELTA, "steps": STEPS}
    parts = {"theory": Task(FEW_LABELS, Grid(axes, fixed))}
    for features, count in (SEEDS_QUICK if quick else SEEDS).items():
        grid = Grid({**axes, "seed": tuple(range(count))}, {**fixed, "features": features})
        parts[f"N{features}"] = Task(FEW_LABELS_RUN, grid)
    return parts


def draw(data: Data) -> Drawing:
    from ...plots.paper import DASHED, DOTTED, canvas, handle, legend_right, letter
    from ...plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, styled

    theory, sizes = data["theory"], by_size(data)
    lines = (
        ("error", BLACK, "solid", "both heuristics"),
        ("best_bias", BLACK, DASHED, "with the best bias"),
        ("naive", PURPLE, "solid", "naive"),
        ("labeled_only", GREEN, "solid", "labelled only"),
        ("supervised", GREY, "solid", "every label given"),
        ("bayes", GREY, DOTTED, "Bayes limit"),
    )
    with styled():
        columns = theory.rho.size
        figure, axes = canvas(2, columns, 3.4 * columns + 1.8, 6.2, sharex=True, sharey="row")
        for (upper, lower), rho in zip(axes.T, theory.rho.values, strict=True):
            one = theory.sel(rho=rho)
            for name, color, dashes, _ in lines:
                upper.plot(one.alpha_l, one[name], color=color, linestyle=dashes, linewidth=1.2)
            lower.plot(one.alpha_l, one["error"] / one["best_bias"], color=BLACK, linewidth=1.2)
            for index, (_, runs) in enumerate(sizes):
                here = runs.sel(rho=rho)
                for ax, values in (
                    (upper, here["error"]),
                    (lower, here["error"] / here["best_bias"]),
                ):
                    ax.errorbar(
                        one.alpha_l * 2 ** (0.12 * (index - 0.5)),
                        values.mean("seed"),
                        values.std("seed", ddof=1),
                        color=(BLUE, ORANGE)[index],
                        marker="os"[index],
                        linestyle="none",
                        markersize=3.5,
                        elinewidth=0.8,
                    )
            upper.set_title(rf"$\rho = {rho:g}$")
            lower.set_xscale("log")
            lower.set_xlabel(r"$\alpha_L$")
            lower.set_xticks(theory.alpha_l.values, [f"{a:g}" for a in theory.alpha_l.values])
            lower.set_xticks([], minor=True)
        axes[0, 0].set_ylabel(r"error  $\epsilon_g^{(T)}$")
        axes[1, 0].set_ylabel("error over that with the best bias")
        axes[0, 0].set_ylim(bottom=0)
        letter(axes.ravel())
        legend_right(
            figure,
            [
                *(handle(text, color, "", dashes) for _, color, dashes, text in lines),
                *(
                    handle(
                        f"N = {features:,}\n{runs.seed.size} seeds",
                        (BLUE, ORANGE)[index],
                        "os"[index],
                        "none",
                    )
                    for index, (features, runs) in enumerate(sizes)
                ),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    theory = data["theory"]
    cost = theory["error"] / theory["best_bias"] - 1
    at = cost.sel(alpha_l=USUAL)
    severe = cost.sel(alpha_l=SEVERE)
    return [
        Claim(
            quote=(
                "We expect the bias term of the initial classifier to be moderately good unless the"
                " labeled data is severely limited."
            ),
            test=(
                f"In theory the bias of step 0 costs less than {MODERATE.size:.0%} of the error at"
                f" alpha_L = {USUAL:g}, against the best bias for the last direction, and more at"
                f" alpha_L = {SEVERE:g}, for rho = 0.4 and 0.2."
            ),
            ruling=decided(
                below("largest cost", at.max(), MODERATE),
                positive("smallest additional cost of few labels", (severe - at).min()),
            ),
            found="Cost by alpha_L: "
            + "; ".join(
                f"rho = {float(rho):g}: {listed(cost.alpha_l, cost.sel(rho=rho).values, '{:.2%}')}"
                for rho in cost.rho
            )
            + ".",
            numbers=numbers(usual=at.max(), severe=severe.max()),
        )
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    theory = data["theory"]
    ratio = theory["error"] / theory["naive"]
    excess = {
        features: runs["error"].mean("seed") / theory["error"] - 1
        for features, runs in by_size(data)
    }
    last, largest = max(excess.items())
    severe = float(largest.sel(alpha_l=SEVERE).max())
    usual = float(largest.sel(alpha_l=USUAL).max())
    return [
        Finding(
            says=(
                "In theory the heuristics help down to two labels per hundred features: at every"
                " alpha_L their error is below the naive one."
            ),
            ruling=at_full_size(full, positive("smallest reduction", 1 - ratio.max())),
            found="Error with over without by alpha_L: "
            + "; ".join(
                f"rho = {float(rho):g}: {listed(ratio.alpha_l, ratio.sel(rho=rho).values)}"
                for rho in ratio.rho
            )
            + ".",
            numbers=numbers(largest=ratio.max()),
        ),
        Finding(
            says=(
                "Finite systems need labels more than the theory does: at N = 8192 the mean error"
                f" exceeds the theory by more at alpha_L = {SEVERE:g} than at {USUAL:g}."
            ),
            ruling=at_full_size(full, positive("difference", severe - usual)),
            found="Excess of the mean error by alpha_L: "
            + "; ".join(
                f"N = {features}, rho = {float(rho):g}:"
                f" {listed(one.alpha_l, one.sel(rho=rho).values, '{:.1%}')}"
                for features, one in excess.items()
                for rho in one.rho
            )
            + ".",
            numbers=numbers(severe=severe, usual=usual, N=last),
        ),
        above_bayes(theory["error"], theory["bayes"], full),
    ]


def caption(data: Data) -> str:
    return (
        r"Self-training with both heuristics from few labels. Above: error after the last step in"
        r" theory (black), with the bias that suits the last direction best (dashed), and of "
        r"finite systems at the same recipe (mean and standard deviation over seeds), next to naive"
        r" self-training, the labelled points alone, supervised learning with every label (ridge "
        r"in $(0, 0.1]$) and the Bayes limit. Below: what the bias of step 0 costs. At $\alpha_L ="
        r" 0.02$ a system of $N = 1024$ has 20 labels. Sizes are drawn side by side."
    )


FIGURE = Figure(
    "few-labels",
    "Both heuristics with severely limited labels",
    Place("beyond the paper, on Section 5, `heuristics: bias fixing`"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=(
        rf"$\alpha_U = {ALPHA_U:g}$, $\Delta = {DELTA:g}$ as in Section 3.4; {TUNED}, and $a$."
    ),
    chosen=(
        rf"$\alpha_L$ from 0.02 to 1, $T = {STEPS}$, $\rho$ = 0.4 and 0.2, $\Gamma = 0$, sizes and"
        r" numbers of seeds; the figure is ours."
    ),
)
