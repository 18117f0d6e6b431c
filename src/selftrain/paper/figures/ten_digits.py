"""Ten handwritten digits: theory, synthetic Gaussian data and real samples in one picture."""

from __future__ import annotations

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.real_samples import TEN_DIGITS, TEN_DIGITS_RUN
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed
from ..ruling import Bar, above, at_full_size, positive

DIRECTIONS, LABELS, BATCH = 50, 300, 350
STEPS, STEPS_QUICK, SEEDS, SEEDS_QUICK = 3, 1, 24, 4
SOURCES = {"synthetic": "synthetic\nGaussian data", "real": "real samples"}
ABOVE = Bar(0.05, "a twentieth of the error")
SURE = 2.5
"""Number of standard errors of a mean over 24 seeds that chance exceeds with probability 1 %."""

MORE = Bar(0.3, "beyond what finite size explains")


def tasks(quick: bool) -> Tasks:
    fixed = {"directions": DIRECTIONS, "labels": LABELS, "batch": BATCH}
    fixed["steps"] = STEPS_QUICK if quick else STEPS
    seeds = tuple(range(SEEDS_QUICK if quick else SEEDS))
    runs = Grid({"source": tuple(SOURCES), "seed": seeds}, fixed)
    return {"theory": Task(TEN_DIGITS, Grid({}, fixed)), "runs": Task(TEN_DIGITS_RUN, runs)}


def draw(data: Data) -> Drawn:
    theory, runs = data["theory"], data["runs"]
    figure, axes = pic.canvas(1, 2, 8.6, 3.0)
    error, recall = axes[0]
    colors = {"synthetic": style.BLUE, "real": style.ORANGE}
    pic.reference(error, theory.t, theory["error"], style.BLACK, "solid")
    pic.reference(recall, theory.digit, theory["recall"], style.BLACK, "solid")
    for source, color in colors.items():
        case = runs.sel(source=source)
        for ax, name, along in ((error, "error", case.t), (recall, "recall", case.digit)):
            sem = case[name].std("seed", ddof=1) / case.seed.size**0.5
            pic.measured(ax, along, case[name].mean("seed"), sem, color, "o")
    error.set_xticks(theory.t)
    error.set_xlabel("step $t$")
    error.set_ylabel(r"error  $\epsilon_g^{(t)}$")
    recall.set_xticks(theory.digit)
    recall.set_xlabel("digit")
    recall.set_ylabel("recall after the last step")
    return figure, [
        pic.handle("theory", style.BLACK),
        *(pic.handle(SOURCES[source], color, "o", "none") for source, color in colors.items()),
    ]


def judge(data: Data) -> Claims:
    told, runs = data["theory"]["error"], data["runs"]["error"]
    synthetic, real = (runs.sel(source=source) for source in ("synthetic", "real"))
    means = {"theory": told, "synthetic": synthetic.mean("seed"), "real": real.mean("seed")}
    excess = means["synthetic"] / told - 1
    sem = synthetic.std("seed", ddof=1) / told / synthetic.seed.size**0.5
    low = float((excess - SURE * sem).min())
    more = means["real"] / means["synthetic"] - 1
    rise = {name: float(one.diff("t").min()) for name, one in means.items()}
    said = "; ".join(f"{name}, {listed(one, '{:.4f}')}" for name, one in means.items())
    yield at_full_size(
        "finite",
        f"Errors by step: {said}. Excess: {listed(excess, '{:.0%}')}.",
        above("smallest excess", excess.min(), ABOVE, low, 2 * excess.min() - low),
    )
    yield at_full_size(
        "real",
        f"Excess by step: {listed(more, '{:.0%}')}.",
        above("smallest excess", more.min(), MORE),
    )
    yield at_full_size(
        "degrades",
        f"Smallest rise of a step: {listed(rise, '{:.4f}')}.",
        *(positive(f"smallest rise, {name}", one) for name, one in rise.items()),
    )
