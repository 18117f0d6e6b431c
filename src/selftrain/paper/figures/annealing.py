r"""$a^*$ against T, the sharpness it leads to, and how hard the labels become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...sweeps import Task
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import listed, numbers, power_law
from ..ruling import Bar, at_full_size, below, positive
from ..setting import OPEN_AMOUNTS, TUNED, cases

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

FALL = Bar(0.1, "an order of magnitude is a decrease that no picture hides")
RATHER_HARD = Bar(0.5, "labels are nearer to hard ones than to one half")
LATE = 16
"""Runs of at least this many steps are long."""

SQUARE = Bar(0.5, "the exponent is nearer to -2 than to any other whole number")


def tasks(quick: bool) -> Mapping[str, Task]:
    return {"chains": cases(quick, heuristics=(True,))}


def draw(data: Data) -> Drawing:
    from ...plots.paper import (
        DASHED,
        JUMP,
        canvas,
        each,
        handle,
        legend_right,
        lengths_axis,
        letter,
        positive,
        rho_colors,
        rho_legend,
        series,
    )
    from ...plots.style import GREY, logarithmic, styled

    chains = data["chains"].isel(heuristics=0, selection=0)
    deltas, colors = chains.delta.values.tolist(), rho_colors(chains.rho.values)
    with styled():
        figure, axes = canvas(
            3, len(deltas), 3.4 * len(deltas) + 2.0, 7.4, sharex=True, sharey="row"
        )
        for column, delta in zip(axes.T, deltas, strict=True):
            rate, total, hard = column
            for case in each(chains.sel(delta=delta), ("rho",)):
                color = colors[float(case.rho)]
                a = positive(case["annealing"])
                series(rate, case.T, a, color, "o", jump=3 * JUMP)
                series(total, case.T, a * case.T.values**2, color, "o", jump=3 * JUMP)
                series(hard, case.T, case["hardness"].isel(along=-1), color, "o")
                series(hard, case.T, case["hardness"].isel(along=0), color, "o", filled=False)
            rate.set_title(rf"$\Delta = {delta:g}$")
            logarithmic(rate)
            logarithmic(total)
            hard.set_ylim(0, 1)
            lengths_axis(column, chains.T.values.tolist())
            rate.set_xlabel("")
            total.set_xlabel("")
        axes[0, 0].set_ylabel("$a^*$")
        axes[1, 0].set_ylabel(r"$a^* T^2$")
        axes[2, 0].set_ylabel(r"hardness $E|2p - 1|$")
        letter(axes.ravel())
        legend_right(
            figure,
            [
                *rho_legend(chains.rho.values),
                handle("last step", GREY, "o"),
                handle("first step", GREY, "o", DASHED, filled=False),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    chains = data["chains"].isel(heuristics=0, selection=0)
    a = chains["annealing"]
    rhos = chains.rho.values
    fall = (a.isel(T=-1) / a.max("T")).max("delta").values
    hard, soft = chains["hardness"].isel(T=0, along=-1), chains["hardness_soft"].isel(T=0)
    longest = int(chains.T[-1])
    return [
        Claim(
            quote=(
                "As the total number of iterations $T$ increases, this parameter gradually"
                " decreases"
            ),
            test=(
                f"a* at the largest T is below {FALL.size:g} of its largest value, in every case."
            ),
            ruling=at_full_size(full, below("a* at the end over its largest", fall.max(), FALL)),
            found=(
                f"Value at T = {longest} over the largest by rho, the larger of the Delta:"
                f" {listed(rhos, fall)}."
            ),
            numbers=numbers(largest_ratio=fall.max()),
        ),
        *(_hardening(chains.sel(rho=rho), full) for rho in rhos),
        Claim(
            quote=(
                "when the total number of iterations $T$ is small, its value is rather large,"
                " indicating ST fits the model to the almost hard labels"
            ),
            test=(
                f"At T = 1 the hardness of the labels, E|2p - 1|, is within {RATHER_HARD.size:g}"
                " of 1, that of hard labels, and above that of the same logits at a = 0, in every"
                " case."
            ),
            ruling=at_full_size(
                full,
                below("farthest from hard", 1 - hard.min(), RATHER_HARD),
                positive("smallest gain over a = 0", (hard - soft).min()),
            ),
            found=(
                f"It is {float(hard.min()):.2f} to {float(hard.max()):.2f} at a*,"
                f" {float(soft.min()):.2f} to {float(soft.max()):.2f} at a = 0 (1 is hard): "
                '"almost hard" is generous. a* at T = 1 by rho, the smaller of the Delta:'
                f" {listed(rhos, a.isel(T=0).min('delta').values)}."
            ),
            numbers=numbers(hardness=hard.min(), soft=soft.min(), smallest=a.isel(T=0).min()),
        ),
    ]


def _hardening(case: xr.Dataset, full: bool) -> Claim:
    """Whether labels become harder along the longest run, at one rho."""
    along = case["hardness"].isel(T=-1)
    gain = along.isel(along=-1) - along.isel(along=0)
    paths = "; ".join(
        f"Delta = {float(one.delta):g}: " + " ".join(f"{float(value):.3f}" for value in one.values)
        for one in along.transpose("delta", "along")
    )
    return Claim(
        case=f"rho = {float(case.rho):g}",
        quote=(
            "indicating that the pseudo-label is slowly approaching hard labels when the total"
            " number of iterations $T$ is large"
        ),
        test=(
            "Along the run of the largest T the labels of the last step are harder, E|2p - 1|,"
            " than those of the first, for every Delta."
        ),
        ruling=at_full_size(full, positive("smallest gain in hardness", gain.min())),
        found=(
            f"E|2p - 1| at T = {int(case['T'][-1])}, steps 1, T/4, T/2, 3T/4 and T: {paths}."
            " Each step sharpens labels that were sharpened before: their sharpness multiplies to"
            f" about exp(a* T^2/2), with a* T^2 ="
            f" {listed(case.delta, (case['annealing'] * case['T'] ** 2).isel(T=-1).values)}"
            " (by Delta)."
        ),
        numbers=numbers(first=along.isel(along=0).min(), last=along.isel(along=-1).min()),
    )


def findings(data: Data, full: bool) -> list[Finding]:
    chains = data["chains"].isel(heuristics=0, selection=0)
    late = chains.sel(T=chains["T"] >= min(LATE, int(chains["T"][-1])))
    total = late["annealing"] * late["T"] ** 2
    per_step = (late["annealing"] * late["T"]).max(("rho", "delta")).values
    off = max((abs(law + 2) for law in _exponents(late)), default=np.nan)
    grown = chains["hardness"].isel(T=-1)
    skewed = grown.sel(rho=grown.rho < 0.45)
    return [
        Finding(
            says=(
                "What counts is the product of all sharpnesses, about exp(a* T^2/2): from T ="
                f" {LATE} on a* falls nearly as T^-2 (fitted exponents within {SQUARE.size:g} of"
                " -2), so that a* T^2 stays of order one to ten while a* T vanishes."
            ),
            ruling=at_full_size(
                full,
                below("farthest exponent from -2", off, SQUARE),
                positive("smallest fall of a* T", -np.diff(per_step).max(initial=-np.inf)),
            ),
            found=(
                f"Exponents {_range(np.array(_exponents(late)))}. a* T^2 is {_range(total)};"
                " by rho:"
                + ",".join(f" {rho:g}: {_range(total.sel(rho=rho))}" for rho in total.rho.values)
                + f". Largest a* T by T: {listed(late['T'], per_step)}."
            ),
            numbers=numbers(smallest=total.min(), largest=total.max()),
        ),
        Finding(
            says=(
                "With imbalanced classes (rho = 0.4 and 0.2) the longest run ends with labels"
                " harder than it began; with balanced ones it begins nearly hard and ends soft."
            ),
            ruling=at_full_size(
                full,
                positive(
                    "smallest gain, imbalanced",
                    (skewed.isel(along=-1) - skewed.isel(along=0)).min(),
                ),
                positive(
                    "smallest loss, balanced",
                    (grown.isel(along=0) - grown.isel(along=-1)).sel(rho=0.5).min(),
                ),
            ),
            found="Hardness of the first and of the last step: "
            + "; ".join(
                f"rho = {float(one.rho):g}, Delta = {float(one.delta):g}:"
                f" {float(one[0]):.3f} -> {float(one[-1]):.3f}"
                for one in grown.stack(case=("rho", "delta")).transpose("case", "along")
            )
            + ".",
            numbers={},
        ),
    ]


def _exponents(chains: xr.Dataset) -> list[float]:
    """The powers of T with which a* falls, of all cases; none from runs that are too short."""
    if chains["T"].size < 3:
        return []
    cases = chains["annealing"].stack(case=("rho", "delta")).transpose("case", "T")
    return [power_law(one["T"], one.values).exponent for one in cases]


def _range(values: xr.DataArray | Array) -> str:
    return f"{float(values.min()):.3g} to {float(values.max()):.3g}" if values.size else "unknown"


def caption(data: Data) -> str:
    return (
        r"Best annealing $a$ of the labels, $\gamma^{(t)} = 1 + a t$ (a, b); $a T^2$, about twice"
        r" the logarithm of the product of all sharpnesses (c, d); and the hardness of the labels"
        r" of the last step (filled) and of the first one (white), 1 if they are hard (e, f). Bias"
        r" fixed, $\Gamma = 0$. Values of $a^*$ that are zero are not drawn; neighbours in"
        r" different valleys of the error are not joined."
    )


FIGURE = Figure(
    "annealing",
    "Best annealing against the number of steps",
    Place("Section 5.1", 10, "fig: optimal values of a"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"the cases of `heuristics`; $\Gamma = 0$; {TUNED}, and $a$.",
    chosen=(
        rf"{OPEN_AMOUNTS}, $\rho$ and $\Delta$ of `relative-error`, $T$ up to 1024, $a \in [0,"
        r" 10]$; (c) to (f) are ours."
    ),
)
