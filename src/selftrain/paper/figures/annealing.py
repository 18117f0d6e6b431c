r"""$a^*$ against T, the sharpness it leads to, and how hard the labels become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...sweep import Task
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import at_full_size, listed, numbers
from ..setting import OPEN_AMOUNTS, TUNED, cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FALL = 0.1
"""From its largest value to the largest T the annealing falls below this share."""

RATHER_HARD = 0.5
r"""Labels whose hardness $E|2p - 1|$ is above this are nearer to hard ones than to one half."""


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
            rate, final, hard = column
            for case in each(chains.sel(delta=delta), ("rho",)):
                color = colors[float(case.rho)]
                a = positive(case["annealing"])
                series(rate, case.T, a, color, "o", jump=3 * JUMP)
                series(final, case.T, a * case.T.values, color, "o", jump=3 * JUMP)
                series(hard, case.T, case["hardness"], color, "o")
                series(hard, case.T, case["hardness_soft"], color, "o", filled=False)
            rate.set_title(rf"$\Delta = {delta:g}$")
            logarithmic(rate)
            logarithmic(final)
            hard.set_ylim(0, 1)
            lengths_axis(column, chains.T.values.tolist())
            rate.set_xlabel("")
            final.set_xlabel("")
        axes[0, 0].set_ylabel("$a^*$")
        axes[1, 0].set_ylabel(r"$a^* T = \gamma^{(T)} - 1$")
        axes[2, 0].set_ylabel(r"hardness $E|2p - 1|$")
        letter(axes.ravel())
        legend_right(
            figure,
            [
                *rho_legend(chains.rho.values),
                handle(r"at $a^*$", GREY, "o"),
                handle(r"at $a = 0$", GREY, "o", DASHED, filled=False),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    chains = data["chains"].isel(heuristics=0, selection=0)
    a = chains["annealing"]
    rhos = chains.rho.values
    fall = (a.isel(T=-1) / a.max("T")).max("delta").values
    final = a * chains.T
    first, last = final.isel(T=0), final.isel(T=-1)
    grows = bool((last > first).all())
    hard, soft = chains["hardness"].isel(T=0), chains["hardness_soft"].isel(T=0)
    longest = int(chains.T[-1])
    return [
        Claim(
            quote=(
                "As the total number of iterations $T$ increases, this parameter gradually"
                " decreases"
            ),
            test=f"a* at the largest T is below {FALL:g} of its largest value, in every case.",
            holds=at_full_size(bool((fall < FALL).all()), full),
            found=(
                f"Value at T = {longest} over the largest by rho, the larger of the Delta:"
                f" {listed(rhos, fall)}."
            ),
            numbers=numbers(largest_ratio=fall.max()),
        ),
        Claim(
            quote=(
                "indicating that the pseudo-label is slowly approaching hard labels when the total"
                " number of iterations $T$ is large"
            ),
            test=(
                "The sharpness that labels have in the end, 1 + a* T, is larger at the largest T"
                " than at T = 1, in every case."
            ),
            holds=at_full_size(grows, full),
            found=(
                f"a* T falls from {float(first.min()):.3g}-{float(first.max()):.3g} at T = 1 to"
                f" {float(last.min()):.2g}-{float(last.max()):.2g} at T = {longest}: the sharpening"
                " vanishes, and annealing only makes up for the shrinkage of the weights."
            ),
            numbers=numbers(first=first.max(), last=last.max()),
        ),
        Claim(
            quote=(
                "when the total number of iterations $T$ is small, its value is rather large,"
                " indicating ST fits the model to the almost hard labels"
            ),
            test=(
                f"At T = 1 the hardness of the labels, E|2p - 1|, is above {RATHER_HARD:g} and"
                " above that of the same logits at a = 0, in every case."
            ),
            holds=at_full_size(bool((hard > RATHER_HARD).all() and (hard > soft).all()), full),
            found=(
                f"It is {float(hard.min()):.2f} to {float(hard.max()):.2f} at a*,"
                f" {float(soft.min()):.2f} to {float(soft.max()):.2f} at a = 0 (1 is hard): "
                '"almost hard" is generous. a* at T = 1 by rho, the smaller of the Delta:'
                f" {listed(rhos, a.isel(T=0).min('delta').values)}."
            ),
            numbers=numbers(hardness=hard.min(), soft=soft.min(), smallest=a.isel(T=0).min()),
        ),
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    chains = data["chains"].isel(heuristics=0, selection=0)
    final = chains["annealing"] * chains.T
    by_length = final.max(("rho", "delta")).values
    return [
        Finding(
            says=(
                "The final sharpening a* T vanishes in long runs (below 0.05 at the largest T,"
                " every case)."
            ),
            holds=at_full_size(bool(by_length[-1] < 0.05), full),
            found=f"Largest a* T by T: {listed(chains.T, by_length)}.",
            numbers=numbers(last=by_length[-1], first=np.max(by_length)),
        )
    ]


def caption(data: Data) -> str:
    return (
        r"Best annealing $a$ of the labels, $\gamma^{(t)} = 1 + a t$ (a, b), what it adds to the"
        r" sharpness by the last step (c, d), and the hardness of the "
        r"labels of that step, 1 if they are hard (e, f: filled at $a^*$, white the same logits at"
        r" $a = 0$), bias fixed, $\Gamma = 0$. Values of $a^*$ that are zero "
        r"are not drawn; neighbours in different valleys of the error are not joined."
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
