r"""Rows used again: the same unlabelled rows split into fresh batches, or all of them in every
step; labels kept or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...sweeps import Grid, Task
from ..computations.reuse import BOUNDS, REUSE
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import agreement, listed, numbers
from ..ruling import Bar, above, at_full_size, below, decided, everywhere, positive
from ..setting import ALPHA_L, DELTA

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

ROWS = 8.0
r"""Unlabelled rows per feature, in all."""

RHOS = (0.5, 0.4, 0.2)
STEPS, STEPS_QUICK = 4, 2
SPLITS = (1, 2, 4)
FEATURES, SEEDS = 512, 6
FOLLOWED = Bar(0.05, "a twentieth of the error")
LITTLE = Bar(0.05, "a twentieth of the error")
MATTER = Bar(0.1, "a tenth of the error")
ACCURATE = Bar(1e-3, "the accuracy of runs with data reuse")


def tasks(quick: bool) -> Mapping[str, Task]:
    cases: dict[str, Any] = {
        "rho": (0.4,) if quick else RHOS,
        "heuristics": (True,) if quick else (False, True),
    }
    ways: dict[str, Any] = {"reused": (False, True), "kept": (False,) if quick else (False, True)}
    fixed = {"alpha_l": ALPHA_L, "alpha_u": ROWS, "delta": DELTA}
    finite = {"features": FEATURES, "seeds": 2 if quick else SEEDS}
    whole = {**fixed, **finite, "steps": STEPS_QUICK if quick else STEPS}
    split = {**fixed, "features": FEATURES, "seeds": 0, "reused": False, "kept": False}
    return {
        "theory": Task(REUSE, Grid({**cases, **ways}, whole)),
        **{
            f"split{count}": Task(REUSE, Grid(cases, {**split, "steps": count}))
            for count in (SPLITS[:1] if quick else SPLITS)
        },
    }


def last_errors(data: Data) -> xr.DataArray:
    """The error of the last step, over rho, heuristics, reused, kept."""
    return data["theory"]["error"].isel(t=-1)


def splits(data: Data) -> dict[int, xr.DataArray]:
    """The error of the last step by the number of fresh batches that the rows are split into."""
    return {
        one.sizes["t"] - 1: one["error"].isel(t=-1)
        for name, one in data.items()
        if name.startswith("split")
    }


def draw(data: Data) -> Drawing:
    from ...plots.paper import DASHED, DOTTED, canvas, handle, legend_right, letter
    from ...plots.style import BLACK, BLUE, GREY, ORANGE, styled

    theory, fresh = data["theory"], splits(data)
    colors = {False: BLUE, True: ORANGE}
    rhos, helped = theory.rho.values.tolist(), theory.heuristics.values.tolist()
    with styled():
        width = 2.5 * len(rhos) + 2.2
        figure, axes = canvas(
            len(helped), len(rhos), width, 2.7 * len(helped) + 0.3, sharex=True, sharey=True
        )
        for line, heuristics in zip(axes, helped, strict=True):
            for ax, rho in zip(line, rhos, strict=True):
                one = theory.sel(rho=rho, heuristics=heuristics)
                for reused in one.reused.values.tolist():
                    for kept in one.kept.values.tolist():
                        way = {"reused": reused, "kept": kept}
                        color = colors[reused]
                        ax.plot(
                            one.t, one["error"].sel(way), color=color, linewidth=1.2,
                            linestyle=DASHED if kept else "solid",
                        )  # fmt: skip
                        ax.scatter(
                            one.t, one["mean"].sel(way), s=10, color=color, zorder=3,
                            facecolors="white" if kept else color, linewidths=0.8,
                        )  # fmt: skip
                ends = [float(e.sel(rho=rho, heuristics=heuristics)) for e in fresh.values()]
                ax.plot(list(fresh), ends, color=BLACK, marker="D", linestyle="none", markersize=4)
                limit = float(one["bayes"].mean())
                ax.axhline(limit, color=GREY, linestyle=DOTTED, linewidth=1.0)
                ax.set_title(rf"$\rho = {rho:g}$, {'both heuristics' if heuristics else 'naive'}")
        for ax in axes[-1]:
            ax.set_xlabel("step $t$")
            ax.set_xticks(range(theory.t.size))
        for ax in axes[:, 0]:
            ax.set_ylabel(r"error  $\epsilon_g^{(t)}$")
        letter(axes.ravel())
        kept_line: Any = DASHED
        legend_right(
            figure,
            [
                handle("fresh batches", BLUE),
                handle("and labels kept", BLUE, "", kept_line),
                handle("all rows again", ORANGE),
                handle("and labels kept", ORANGE, "", kept_line),
                handle("fresh, split into\n$t$ batches", BLACK, "D", "none"),
                handle("Bayes limit\nof all rows", GREY, "", DOTTED),
                handle(f"N = {FEATURES:,},\nmean over seeds", GREY, "o", "none"),
            ],
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    return []


def findings(data: Data, full: bool) -> list[Finding]:
    theory, error = data["theory"], last_errors(data)
    plain = error.sel(kept=False)
    again = plain.sel(reused=True) / plain.sel(reused=False)
    found = [
        Finding(
            says=(
                f"At the same number of steps, a split into {STEPS} fresh batches errs less than"
                " all rows again in every step, with both heuristics, at every rho."
            ),
            ruling=at_full_size(
                full, positive("smallest excess", again.sel(heuristics=True).min() - 1)
            ),
            found="Error with all rows again over that of the split: " + _by_rho(again) + ".",
            numbers=numbers(smallest=again.sel(heuristics=True).min()),
        )
    ]
    if full:
        keeping = error.sel(kept=True) / error.sel(kept=False)
        mild, strong = keeping.sel(rho=[0.5, 0.4]), keeping.sel(rho=0.2)
        gain = plain.sel(reused=True, heuristics=True) / plain.sel(reused=True, heuristics=False)
        found += [
            Finding(
                says=(
                    "Labelled rows that are kept in every step at full weight make the last error"
                    " larger at rho = 0.5 and 0.4, in every way to use the rows, and at rho = 0.2"
                    " they lower it by less than 5 %."
                ),
                ruling=decided(
                    positive("smallest loss at rho = 0.5 and 0.4", mild.min() - 1),
                    below("largest gain at rho = 0.2", 1 - strong.min(), LITTLE),
                ),
                found="Error with kept labels over that without: "
                + "; ".join(
                    f"{'reused' if reused else 'fresh'}, {_by_rho(keeping.sel(reused=reused))}"
                    for reused in (False, True)
                )
                + ".",
                numbers=numbers(mild=mild.min(), strong=strong.min()),
            ),
            Finding(
                says=(
                    "With rows used again too, the heuristics matter where classes are unbalanced:"
                    " at rho = 0.4 and 0.2 they lower the last error by more than a tenth."
                ),
                ruling=decided(
                    above("smallest reduction", 1 - gain.sel(rho=[0.4, 0.2]).max(), MATTER)
                ),
                found=f"Error with over without, rows reused: {listed(gain.rho, gain.values)}.",
                numbers=numbers(largest=gain.sel(rho=[0.4, 0.2]).max()),
            ),
        ]
    return [*found, _agreement(data, full), _limit(theory, full)]


def _by_rho(ratio: xr.DataArray) -> str:
    return "; ".join(
        f"{'heuristics' if bool(one.heuristics) else 'naive'}: {listed(one.rho, one.values)}"
        for one in ratio.transpose("heuristics", "rho")
    )


def _agreement(data: Data, full: bool) -> Finding:
    theory = data["theory"]
    gap = theory["mean"] / theory["error"] - 1
    error = theory["spread"] / theory["error"] / SEEDS**0.5
    judged = agreement(gap.values, error.values, SEEDS)
    return Finding(
        says=(
            f"Finite systems of N = {FEATURES} follow the theory in every way to use the rows: mean"
            f" errors within {FOLLOWED.size:.0%}."
        ),
        ruling=at_full_size(full, judged.within("largest distance", FOLLOWED)),
        found=(
            f"Largest distance {judged.largest:.2%}, at most {judged.at_most:.2%} ({SEEDS} seeds)."
        ),
        numbers=numbers(largest=judged.largest, at_most=judged.at_most),
    )


def _limit(theory: xr.Dataset, full: bool) -> Finding:
    ratio = float((theory["error"].isel(t=-1) / theory["bayes"]).min())
    return Finding(
        says="No error is below the Bayes limit of the same rows.",
        ruling=everywhere(full, below("largest shortfall", 1 - ratio, ACCURATE)),
        found=f"The smallest ratio of an error to its Bayes limit is {ratio:.4f}.",
        numbers=numbers(smallest_ratio=ratio),
    )


def caption(data: Data) -> str:
    return (
        rf"{ROWS:g} unlabelled rows per feature and {ALPHA_L:g} labelled ones, in every panel."
        r" Curves: the error over the steps in theory, the rows split into one fresh batch per"
        r" step (blue) or all "
        r"used again in every step (orange); dashed and white: the labelled rows kept with weight"
        r" 1. Diamonds: the last error of runs that split the rows into $t$ fresh batches. Each run"
        r" is tuned for "
        r"its last error. Points: finite systems at the same recipes. Dotted: the limit that no"
        r" method can beat on these rows. Above: naive self-training; below: bias fixed and labels"
        r" annealed."
    )


FIGURE = Figure(
    "reuse",
    "Rows used again: split the rows, or use them all in every step?",
    Place("beyond the paper: `docs/reuse.md`"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=(
        rf"$\alpha_L = {ALPHA_L:g}$, $\Delta = {DELTA:g}$ as in Section 3.4, $\rho$ among those it"
        r" names."
    ),
    chosen=(
        rf"{ROWS:g} unlabelled rows per feature in all, $T = {STEPS}$, ridges in"
        rf" $[{BOUNDS['lambda_l'][0]:g}, {BOUNDS['lambda_l'][1]:g}]$, $a$ in $[0,"
        rf" {BOUNDS['annealing'][1]:g}]$, sizes and seeds; the figure is ours."
    ),
)
