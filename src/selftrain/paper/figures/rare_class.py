"""Three and ten classes of unequal proportions: which one is lost, and what saves it."""

from __future__ import annotations

from typing import Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.unequal_classes import RARE_CLASS, RARE_CLASS_RUN, WAYS
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed, over_seeds
from ..ruling import Bar, Judged, above, at_full_size, below, positive

STEPS, STEPS_QUICK, STEPS_TEN = 8, 1, 4
FEATURES, SEEDS, SEEDS_TEN = 500, 16, 8
LOST = Bar(0.1, "nine of ten of its samples are taken for others")
SAVED = Bar(0.3, "a third of its samples are recognised")
MUCH = Bar(0.1, "a tenth of the error")
SURE = 3.5
"""Number of standard errors of a mean over eight seeds that chance exceeds with probability 1 %."""

NEAR = Bar(0.05, "a twentieth of the error")
TITLES = {"naive": "naive", "heuristics": "both heuristics", "weighted": "classes weighed equally"}


def tasks(quick: bool) -> Tasks:
    axes: dict[str, Any] = {"way": WAYS}
    three = {"classes": 3, "steps": STEPS_QUICK if quick else STEPS}
    made = {"theory": Task(RARE_CLASS, Grid(axes, three))}
    seeds = {**axes, "seed": tuple(range(2 if quick else SEEDS))}
    made["three"] = Task(RARE_CLASS_RUN, Grid(seeds, {**three, "features": FEATURES}))
    if not quick:
        ten = {"classes": 10, "steps": STEPS_TEN, "features": FEATURES}
        seeds = {**axes, "seed": tuple(range(SEEDS_TEN))}
        made["ten"] = Task(RARE_CLASS_RUN, Grid(seeds, ten))
    return made


def draw(data: Data) -> Drawn:
    theory, systems = data["theory"], data["three"]
    rows = 2 if "ten" in data else 1
    figure, axes = pic.canvas(rows, len(WAYS), 9.6, 2.5 * rows + 0.4, sharey=True)
    colors = pic.SERIES[1 : 1 + theory["class"].size]
    for ax, way in zip(axes[0], WAYS, strict=True):
        for k, color in enumerate(colors):
            pic.reference(
                ax, theory.t, theory["recall"].sel({"way": way, "class": k}), color, "solid"
            )
            found = systems["recall"].sel({"way": way, "class": k})
            pic.systems(ax, found.t, found, color, "o")
        ax.set_title(f"K = 3, {TITLES[way]}")
        ax.set_xlabel("step $t$")
    if rows == 2:
        ten = data["ten"]["recall"].isel(t=-1).mean("seed")
        first = data["ten"]["recall"].isel(t=0).mean("seed")
        for ax, way in zip(axes[1], WAYS, strict=True):
            pic.series(ax, ten["class"] + 1, first.sel(way=way), style.GREY, "o", False)
            pic.series(ax, ten["class"] + 1, ten.sel(way=way), style.BLACK)
            ax.set_title(f"K = 10, {TITLES[way]}")
            ax.set_xlabel("class, largest first")
    pic.label_rows(axes, *["recall"] * rows)
    handles = [
        pic.handle(f"{share:.0%} of samples", color)
        for share, color in zip((0.7, 0.2, 0.1), colors, strict=True)
    ]
    handles.append(
        pic.handle(f"N = {FEATURES},\n{systems.seed.size} seeds", style.GREY, "o", "none")
    )
    if rows == 2:
        handles.append(pic.handle("K = 10: first fit", style.GREY, "o", pic.DASHED, filled=False))
        handles.append(pic.handle("K = 10: last fit", style.BLACK, "o"))
    return figure, handles


def judge(data: Data) -> Claims:
    theory, systems = data["theory"], data["three"]
    last = theory["recall"].isel(t=-1)
    rarest = last.isel({"class": -1})
    error, best = theory["error"].isel(t=-1), theory["best_error"]
    apart = over_seeds(systems["error"], theory["error"], theory["error"])
    yield at_full_size(
        "lost",
        f"Recalls after the last step: {_recalls(last)}.",
        *(
            below(f"recall of the rarest class, {TITLES[way]}", rarest.sel(way=way), LOST)
            for way in ("naive", "heuristics")
        ),
    )
    yield at_full_size(
        "saved",
        f"Last errors: {listed(error, '{:.4f}')}.",
        above("recall of the rarest class", rarest.sel(way="weighted"), SAVED),
        positive("gain", error.sel(way="heuristics") - error.sel(way="weighted")),
    )
    yield at_full_size(
        "bias",
        f"Last errors with the best biases: {listed(best, '{:.4f}')}; recalls:"
        f" {_recalls(theory['best_recall'])}.",
        positive("gain", error.sel(way="heuristics") - best.sel(way="naive")),
    )
    yield at_full_size(
        "finite",
        f"Largest distance {apart.largest:.1%}, at most {apart.at_most:.1%}.",
        apart.within("largest distance", NEAR),
    )
    if "ten" in data:
        yield _ten(data)


def _ten(data: Data) -> Judged:
    """Judge the finite systems of ten classes."""
    ten = data["ten"]
    recall, error = (ten[name].isel(t=-1).mean("seed") for name in ("recall", "error"))
    rare = recall.isel({"class": slice(-3, None)}).mean("class")
    last = ten["error"].isel(t=-1)
    gain = 1 - last.sel(way="weighted") / last.sel(way="heuristics")
    sure = gain.mean() - SURE * gain.std(ddof=1) / gain.seed.size**0.5
    return at_full_size(
        "ten",
        f"Mean recall of the three rarest: {listed(rare, '{:.3f}')}; errors:"
        f" {listed(error, '{:.4f}')}.",
        above("gain", gain.mean(), MUCH, sure, 2 * gain.mean() - sure),
        *(below(f"recall of the three rarest, {way}", rare.sel(way=way), LOST) for way in WAYS),
    )


def _recalls(values: Any) -> str:
    return "; ".join(
        f"{TITLES[way]}, {', '.join(f'{float(x):.3f}' for x in values.sel(way=way))}"
        for way in WAYS
    )
