r"""Both heuristics with few labels, down to $\alpha_L = 0.02$: theory and finite systems."""

from __future__ import annotations

from ...plots import paper_figures as pic
from ...plots import style
from ..computations.two_heuristics import FEW_LABELS, FEW_LABELS_RUN
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import above_bayes, by_size, listed, listed_by
from ..ruling import Bar, at_full_size, below, decided, positive
from ..setting import ALPHA_U, DELTA, with_systems

RHOS = (0.4, 0.2)
LABELS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
LABELS_QUICK = (0.02, 0.1, 0.5)
SEEDS = {1024: 32, 8192: 8}
SEEDS_QUICK = {1024: 8}
STEPS = 16
MODERATE = Bar(0.1, "a tenth of the error with the best bias")

USUAL, SEVERE = 0.5, 0.02


def tasks(quick: bool) -> Tasks:
    axes = {"rho": RHOS, "alpha_l": LABELS_QUICK if quick else LABELS}
    fixed = {"alpha_u": ALPHA_U, "delta": DELTA, "steps": STEPS}
    seeds = SEEDS_QUICK if quick else SEEDS
    return with_systems(FEW_LABELS, FEW_LABELS_RUN, axes, fixed, seeds)


def draw(data: Data) -> Drawn:
    theory, sizes = data["theory"], by_size(data)
    colors = (style.BLUE, style.ORANGE)
    lines = (
        ("error", style.BLACK, "solid", "both heuristics"),
        ("best_bias", style.BLACK, pic.DASHED, "with the best bias"),
        ("naive", style.PURPLE, "solid", "naive"),
        ("labeled_only", style.GREEN, "solid", "labelled only"),
        ("supervised", style.GREY, "solid", "fully supervised"),
        ("bayes", style.GREY, pic.DOTTED, "Bayes error"),
    )
    columns, labels = theory.rho.size, theory.alpha_l.values
    size = (3.4 * columns + 1.8, 6.2)
    figure, axes = pic.canvas(2, columns, *size, sharex=True, sharey="row")
    for (upper, lower), rho in zip(axes.T, theory.rho.values, strict=True):
        one = theory.sel(rho=rho)
        for name, color, dashes, _ in lines:
            upper.plot(labels, one[name], color=color, linestyle=dashes, linewidth=1.2)
        lower.plot(labels, one["error"] / one["best_bias"], color=style.BLACK, linewidth=1.2)
        for index, (_, runs) in enumerate(sizes):
            error, best = (runs[name].sel(rho=rho) for name in ("error", "best_bias"))
            look = (colors[index], pic.SIZE_MARKERS[index])
            for ax, values in ((upper, error), (lower, error / best)):
                pic.systems(ax, labels * 2 ** (0.12 * (index - 0.5)), values, *look)
        upper.set_title(rf"$\rho = {rho:g}$")
        lower.set_xscale("log")
        lower.set_xlabel(r"$\alpha_L$")
        lower.set_xticks(labels, [f"{a:g}" for a in labels])
        lower.set_xticks([], minor=True)
    pic.label_rows(axes, r"error  $\epsilon_g^{(T)}$", "error over that with the best bias")
    axes[0, 0].set_ylim(bottom=0)
    return figure, [
        *(pic.handle(text, color, "", dashes) for _, color, dashes, text in lines),
        *pic.size_legend(sizes, colors),
    ]


def judge(data: Data) -> Claims:
    theory, sizes = data["theory"], by_size(data)
    cost = theory["error"] / theory["best_bias"] - 1
    at, few = cost.sel(alpha_l=USUAL), cost.sel(alpha_l=SEVERE)
    ratio = theory["error"] / theory["naive"]
    excess = {n: runs["error"].mean("seed") / theory["error"] - 1 for n, runs in sizes}
    largest = excess[max(excess)]
    severe, usual = (float(largest.sel(alpha_l=amount).max()) for amount in (SEVERE, USUAL))
    yield decided(
        "bias-is-good",
        f"Cost by alpha_L: {listed_by('rho', cost, '{:.2%}')}.",
        below("largest cost", at.max(), MODERATE),
        positive("smallest additional cost of few labels", (few - at).min()),
    )
    yield at_full_size(
        "helps",
        f"Error with over without by alpha_L: {listed_by('rho', ratio)}.",
        positive("smallest reduction", 1 - ratio.max()),
    )
    yield at_full_size(
        "finite",
        "Excess of the mean error by alpha_L: "
        + "; ".join(
            f"N = {features}, rho = {rho:g}: {listed(one.sel(rho=rho), '{:.1%}')}"
            for features, one in excess.items()
            for rho in one.rho.values
        )
        + ".",
        positive("difference", severe - usual),
    )
    yield above_bayes(theory["error"], theory["bayes"])
