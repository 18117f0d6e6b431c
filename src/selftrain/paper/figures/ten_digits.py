"""Ten handwritten digits: theory, synthetic Gaussian data and real samples in one picture."""

from __future__ import annotations

from collections.abc import Mapping

from ...sweeps import Grid, Task
from ..computations.ten_digits import TEN_DIGITS, TEN_DIGITS_RUN
from ..entry import Data, Drawn, Judged
from ..judge import judged, over_seeds
from ..ruling import Bar, at_full_size

DIRECTIONS, LABELS, BATCH = 50, 300, 350
STEPS, STEPS_QUICK, SEEDS, SEEDS_QUICK = 3, 1, 24, 4
LOSSES = ("squared", "logistic")
SOURCES = {"synthetic": "synthetic\nGaussian data", "real": "real samples"}
FOLLOWED = Bar(0.15, "finite size: a few dozen features")
REAL = Bar(0.3, "real digits are not Gaussian")


def tasks(quick: bool) -> Mapping[str, Task]:
    fixed = {"directions": DIRECTIONS, "labels": LABELS, "batch": BATCH}
    fixed["steps"] = STEPS_QUICK if quick else STEPS
    axes = {"loss": LOSSES[:1] if quick else LOSSES}
    seeds = tuple(range(SEEDS_QUICK if quick else SEEDS))
    runs = Grid({**axes, "source": tuple(SOURCES), "seed": seeds}, fixed)
    return {"theory": Task(TEN_DIGITS, Grid(axes, fixed)), "runs": Task(TEN_DIGITS_RUN, runs)}


def draw(data: Data) -> Drawn:
    from ...plots import paper as pic

    theory, runs = data["theory"], data["runs"]
    losses = theory.loss.values.tolist()
    figure, axes = pic.canvas(
        len(losses), 2, 8.6, 2.6 * len(losses) + 0.3, sharex="col", sharey="col"
    )
    colors = {"synthetic": pic.BLUE, "real": pic.ORANGE}
    for (error, recall), loss in zip(axes, losses, strict=True):
        told, found = theory.sel(loss=loss), runs.sel(loss=loss)
        pic.reference(error, told.t, told["error"], pic.BLACK, "solid")
        pic.reference(recall, told.digit, told["recall"], pic.BLACK, "solid")
        for shift, (source, color) in zip((-0.06, 0.06), colors.items(), strict=True):
            case = found.sel(source=source)
            for ax, name, along in ((error, "error", case.t), (recall, "recall", case.digit)):
                means, n = case[name].mean("seed"), case.seed.size
                pic.measured(
                    ax, along + shift, means, case[name].std("seed", ddof=1) / n**0.5, color, "o"
                )
        error.set_title(f"{loss} loss")
        recall.set_title(f"{loss} loss, last step")
        recall.set_xticks(told.digit)
        error.set_xticks(told.t)
    axes[-1, 0].set_xlabel("step $t$")
    axes[-1, 1].set_xlabel("digit")
    for error, recall in axes:
        error.set_ylabel(r"error  $\epsilon_g^{(t)}$")
        recall.set_ylabel("recall")
    return figure, [
        pic.handle("theory", pic.BLACK),
        *(pic.handle(SOURCES[source], color, "o", "none") for source, color in colors.items()),
    ]


def judge(data: Data) -> list[Judged]:
    told, runs = data["theory"]["error"], data["runs"]["error"]
    verdicts = []
    for key, source, bar in (("gaussian", "synthetic", FOLLOWED), ("real", "real", REAL)):
        apart = over_seeds(runs.sel(source=source), told, told)
        ends = runs.sel(source=source).isel(t=-1).mean("seed")
        verdicts.append(
            judged(
                key,
                at_full_size(apart.within("largest distance", bar)),
                f"Largest distance {apart.largest:.1%}, at most {apart.at_most:.1%}; last errors: "
                + ", ".join(
                    f"{loss}, {float(ends.sel(loss=loss)):.3f} (theory"
                    f" {float(told.isel(t=-1).sel(loss=loss)):.3f})"
                    for loss in told.loss.values
                )
                + ".",
                largest=apart.largest,
                at_most=apart.at_most,
            )
        )
    return verdicts
