r"""Relative error of balanced classes for large to small batches, and its limit $T \to \infty$."""

from __future__ import annotations

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.endless import ENDLESS
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import above_bayes, listed
from ..ruling import Bar, above, at_full_size, below, decided, positive
from ..setting import DELTA, chains

BATCHES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
BATCHES_QUICK = (0.25, 0.75, 1.5, 4.0)
ENDLESS_BATCHES = (
    *np.round(np.arange(0.05, 1.0, 0.05), 12).tolist(),
    *(0.98, 0.99, 0.995, 0.999, 1.0, 1.001, 1.005, 1.01, 1.02, 1.05, 1.1, 1.2),
)
THRESHOLD = 1.0
r"""Below this $\alpha_U$, no number of steps reaches the error of supervised learning."""

ENOUGH = 1.5
r"""Smallest $\alpha_U$ for which the paper's sentences on selection are judged."""

POOR = Bar(0.25, "a quarter above supervised learning; larger batches end within a hundredth")
DRASTIC = Bar(0.05, "a twentieth of the error is visible in the figure")
MINOR = Bar(0.01, "a hundredth is the width of a line in the figure")
COME = Bar(1e-3, "a tenth of what the figure shows")
AWAY = Bar(0.05, "fifty times that")
SAME = Bar(1e-6, "the accuracy of a search")


PANELS = {"endless": "(c), the limit of balanced classes, which does not depend on the start"}


def balanced(quick: bool) -> Task:
    r"""Return the task of tuned runs of balanced classes: several $\alpha_U$, with and without
    selection.
    """
    axes = {"alpha_u": BATCHES_QUICK if quick else BATCHES, "selection": (False, True)}
    return chains(quick, axes, rho=0.5)


def tasks(quick: bool) -> Tasks:
    endless = Grid({"alpha_u": ENDLESS_BATCHES}, {"delta": DELTA})
    return {"chains": balanced(quick), "endless": Task(ENDLESS, endless)}


def draw(data: Data) -> Drawn:
    found, endless = data["chains"], data["endless"]
    ratio = found["error"] / found["supervised"]
    figure, axes = pic.canvas(1, 3, 11.4, 3.9)
    without, chosen, limit = axes[0]
    for ax, selection in ((without, False), (chosen, True)):
        pic.draw_batches(ax, ratio.sel(selection=selection), selection)
        ax.set_title(r"$\Gamma$ tuned" if selection else r"$\Gamma = 0$")
    without.set_ylabel(r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$")
    chosen.sharey(without)
    pic.ratio_ticks((without,))
    for side in (endless.alpha_u <= THRESHOLD, endless.alpha_u > THRESHOLD):
        part = endless.sel(alpha_u=side)
        limit.plot(part.alpha_u, part["ratio"], color=style.BLACK, linewidth=1.2)
    limit.axvline(THRESHOLD, color=style.GREY, linestyle=pic.DASHED, linewidth=0.9)
    limit.set_xlabel(r"$\alpha_U$")
    limit.set_title(r"$T \to \infty$, $\Gamma = 0$")
    limit.set_ylabel(r"$\epsilon_g^{(\infty)}$ over that of the best direction")
    pic.ratio_ticks((limit,))
    return figure, [
        *pic.value_legend(r"\alpha_U", pic.batch_colors(found)),
        pic.handle(r"$\alpha_U = 1$", style.GREY, "", pic.DASHED),
    ]


def judge(data: Data) -> Claims:
    found, endless = data["chains"], data["endless"]
    ratio = found["error"] / found["supervised"]
    batches, last_length = found.alpha_u.values, int(found.T[-1])
    last = ratio.isel(T=-1).min("selection")
    gain = 1 - ratio.sel(selection=True, drop=True) / ratio.sel(selection=False, drop=True)
    early, late = gain.where(gain["T"] <= 4, drop=True).max("T"), gain.isel(T=-1)
    enough = batches >= ENOUGH
    falls = np.diff(-np.log(found["error"].sel(selection=True, alpha_u=enough).values), axis=-1)
    first_fall, last_fall = falls[:, 0], falls[:, -1]
    poor = batches[last.values - 1 > POOR.size]
    limit = endless["ratio"]
    under = limit.sel(alpha_u=endless.alpha_u < THRESHOLD)
    over = limit.sel(alpha_u=endless.alpha_u > THRESHOLD)
    at = float(limit.sel(alpha_u=THRESHOLD))
    shown = endless.sel(alpha_u=[0.25, 0.5, 0.75])
    ends = found["error"].isel(T=-1).sel(selection=False, alpha_u=batches < THRESHOLD)
    distance = abs(ends.values / endless["error"].sel(alpha_u=ends.alpha_u).values - 1).max()
    yield at_full_size(
        "drastic",
        f"Largest reduction at T <= 4 by alpha_U: {listed(early, '{:.1%}')}.",
        above("smallest of the best reductions", early.values[enough].min(), DRASTIC),
    )
    yield at_full_size(
        "minor",
        f"Reduction at T = {last_length} by alpha_U: {listed(late, '{:.2%}')}. Fall of the"
        f" error over the first doubling: {listed(first_fall, '{:.1%}', batches[enough])};"
        f" over the last: {listed(last_fall, '{:.2%}', batches[enough])}.",
        below("largest reduction at the end", late.values[enough].max(), MINOR),
        positive("smallest slowing", (first_fall - last_fall).min()),
    )
    yield at_full_size(
        "slower",
        f"Ratio at T = {last_length} by alpha_U: {listed(last, '{:.4f}')}.",
        positive("smallest increase", -np.diff(last.values).max()),
    )
    yield at_full_size(
        "catastrophic",
        f"It is above at T = {last_length} for alpha_U ="
        f" {', '.join(f'{a:g}' for a in poor) or 'none'}. With ever more steps the threshold"
        f" is alpha_U = {THRESHOLD:g}: see the findings.",
        above("excess of the smallest batches", last.values[0] - 1, POOR),
        below("excess of the largest batches", last.values[-1] - 1, POOR),
    )
    yield decided(
        "threshold",
        f"Ratio by alpha_U: {listed(shown['ratio'], '{:.4f}')},"
        f" {float(under[-1]):.4f} at {float(under.alpha_u[-1]):g}, {at:.4f} at 1,"
        f" {float(over[0]):.6f} at {float(over.alpha_u[0]):g}. Best ridge by alpha_U:"
        f" {listed(shown['lambda_u'])} (the bound is 0.1).",
        below("largest excess above", over.max() - 1, COME),
        above("smallest excess below", under.min() - 1, AWAY),
    )
    yield at_full_size(
        "at-limit",
        f"Error at the largest T: {listed(ends, '{:.6f}')}; largest relative distance from"
        f" the limit {distance:.1e}.",
        below("largest distance", distance, SAME),
    )
    yield above_bayes(found["error"], found["bayes"])
