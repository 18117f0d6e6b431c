"""Annealed labels and a fixed bias against naive self-training, relative to supervised learning."""

from __future__ import annotations

from ...plots import paper_figures as pic
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import above_bayes, last_slope, listed
from ..ruling import Bar, above, at_full_size, below, positive
from ..setting import cases

CLOSE = Bar(0.05, "a twentieth, where naive self-training is off by a half and more")
SLOWLY = Bar(0.1, "with such a power ten times the steps take away a fifth")
SIGNIFICANT = Bar(0.2, "a fifth of the error")


def tasks(quick: bool) -> Tasks:
    return {"chains": cases(quick, heuristics=(False, True))}


def draw(data: Data) -> Drawn:
    return pic.draw_ratio(
        data["chains"].isel(selection=0), "heuristics", "with heuristics", "naive"
    )


def judge(data: Data) -> Claims:
    chains = data["chains"].isel(selection=0)
    ratio = chains["error"] / chains["supervised"]
    last = ratio.isel(T=-1)
    helped, naive = last.sel(heuristics=True, drop=True), last.sel(heuristics=False, drop=True)
    longest = int(chains.T[-1])
    skewed, unaided = float(helped.sel(rho=0.2).max()), float(naive.sel(rho=0.2).min())
    better = (helped / naive).where(chains.rho < 0.5, drop=True)
    nearly = abs(ratio.sel(rho=0.495, heuristics=False) - 1)
    slope = min(last_slope(chains.T, one.values) for one in nearly.transpose("delta", "T"))
    left = float(nearly.isel(T=-1).min())
    yield at_full_size(
        "improved",
        "Largest ratio of the errors with and without by rho: "
        f"{listed(better.max('delta'), '{:.4f}')}.",
        positive("smallest reduction", 1 - better.max()),
        above(
            "smallest reduction at rho = 0.4 and 0.2",
            1 - better.sel(rho=[0.4, 0.2]).max(),
            SIGNIFICANT,
        ),
    )
    yield at_full_size(
        "compatible",
        f"At T = {longest} it is {skewed:.4f} or less with the heuristics and "
        f"{unaided:.4f} or more without.",
        below("largest excess", skewed - 1, CLOSE),
    )
    yield at_full_size(
        "stuck",
        f"It is {left:.3g} or more at T = {longest}, and falls with the power {slope:.3g} of T.",
        below("fastest fall", -slope, SLOWLY),
    )
    yield above_bayes(chains["error"], chains["bayes"])
