"""`python -m selftrain.report --out FOLDER`: the quick report, one HTML page in that folder.

The headline first, with its table on the terminal too; then every figure of the paper in its quick version.
"""

from __future__ import annotations

import argparse
import html
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..paper.run import run, writable
from ..runtime.files import replacing, write_text
from .counts import claims_of, count, findings_of
from .headline import BOUNDS, RIDGES, Contender, Headline, headline
from .page import Section, figure_section, page, summary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

INTRODUCTION = (
    "<p>What self-training does to a linear classifier on Gaussian mixtures in high dimension: theory, simulation, "
    "and the figures of T. Takahashi, <i>The Role of Pseudo-labels in Self-training Linear Classifiers on "
    "High-dimensional Gaussian Mixture Data</i>, regenerated and judged. These are quick versions, with coarser "
    "grids and fewer seeds than most claims need: where the full run could say something else, the verdict is <i>cannot tell (needs the "
    "full run)</i>.</p>"
)


def main() -> None:
    """Compute the findings, write the page, tell the numbers."""
    parser = argparse.ArgumentParser(prog="python -m selftrain.report", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the report")
    parser.add_argument("--features", type=int, default=16384, help="size of simulated systems")
    parser.add_argument("--seeds", type=int, default=8, help="systems a contender; 0 for none")
    parser.add_argument("--figures", nargs="*", default=[], help="ids of figures; default: all")
    asked = parser.parse_args()

    from rich.console import Console

    console = Console(highlight=False)
    console.width = max(console.width, 120)
    begin = time.perf_counter()
    folder = writable(asked.out)
    with console.status("tuning four ways to learn from the same data, and simulating two"):
        told = headline(features=asked.features, seeds=asked.seeds)
    first = _headline(told, folder, console)
    quick = folder / "quick"
    outcomes = run(asked.figures, quick=True, out=quick)
    records = [one.record for one in outcomes if one.record is not None]
    report = folder / "index.html"
    sections = [first, summary(records), *(figure_section(one, quick) for one in records)]
    write_text(report, page("selftrain: the quick report", INTRODUCTION, sections))
    for one in outcomes:
        for failure in one.failures:
            console.print(f"{one.id}: {failure}", soft_wrap=True)
    claims, found = claims_of(records), findings_of(records)
    console.print(
        f"{len(records)} figures, quick versions. Of {len(claims)} claims of the paper {count(claims)} (needs the full run); "
        f"of {len(found)} findings {count(found)}.",
        soft_wrap=True,
    )
    console.print(f"Report: {report} ({time.perf_counter() - begin:.0f} s)")


def _headline(told: Headline, folder: Path, console: Console) -> Section:
    """Draw the headline, print its table, and give both as a section of the page."""
    from ..plots.headline import plot_headline

    figure = folder / "headline.png"
    with replacing(figure) as part:
        plot_headline(told).savefig(part, format="png")
    console.print(table(told))
    said = (*legend(told), *sentences(told))
    for sentence in said:
        console.print(sentence, soft_wrap=True)
    with console.capture() as captured:
        console.print(table(told))
    body = f"<pre>{html.escape(captured.get())}</pre><p>{html.escape(' '.join(said))}</p>"
    title = "With and without heuristics, between supervised learning and the limit"
    return Section("headline", title, figure, body)


def table(told: Headline) -> Table:
    """One row a contender, then the lines they are measured against."""
    from rich import box
    from rich.table import Table

    made = Table(title=f"{told.problem!r}", title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("way to learn", no_wrap=True)
    for name in ("λ_L", "λ_U", "a", "error, t=0", "t=T", "simulated"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_row(*_row(told.labeled_only))
    for contender in told:
        made.add_row(*_row(contender))
    full, limits = told.supervised, told.limits
    made.add_row(
        "supervised, every label given", f"{full.ridge:.3g}", "", "", "", f"{full.error:.5f}", ""
    )
    if full.unbounded is not None:
        best = full.unbounded
        made.add_row(
            "   the same, any ridge", f"{best.ridge:.3g}", "", "", "", f"{best.error:.5f}", ""
        )
    made.add_section()
    for name, limit in (
        ("Bayes, labelled points only", limits.labeled_only),
        ("Bayes, all data", limits.semi_supervised),
        ("Bayes, every label given", limits.all_labeled),
    ):
        made.add_row(name, "", "", "", "", f"{limit:.5f}", "")
    return made


def _row(contender: Contender) -> tuple[str, ...]:
    run, ensemble = contender.run, contender.simulated
    recipe, steps = run.recipe, run.problem.steps
    simulated = ""
    if ensemble is not None:
        simulated = f"{ensemble.mean('error')[-1]:.4f} ± {ensemble.std('error')[-1]:.4f}"
    return (
        contender.name,
        f"{recipe.lambda_l:.3g}",
        f"{recipe.lambda_u:.3g}" if steps else "",
        f"{recipe.annealing:.3g}" if steps else "",
        f"{run.error[0]:.5f}",
        f"{run.error[-1]:.5f}",
        simulated,
    )


def legend(told: Headline) -> list[str]:
    """What the columns are, and which of them were not filled."""
    said = [
        "λ_L, λ_U: ridge of the labelled fit and of the self-training steps; a: annealing, the "
        "sharpness of the pseudo-labels at step t is 1 + a t."
    ]
    ensemble = told.helped.simulated
    if ensemble is not None:
        said.append(
            f"simulated: mean ± standard deviation over {len(ensemble.seeds)} systems of "
            f"{ensemble.features} features. Naive self-training is not simulated at its optimum: "
            "with ridges that small the fit of a finite system is too ill-conditioned."
        )
    return said


def sentences(told: Headline) -> list[str]:
    """What the numbers say, the unflattering part included."""
    alone = float(told.labeled_only.run.error[0])
    naive = float(told.naive.run.error[-1])
    helped = float(told.helped.run.error[-1])
    gap = alone - told.supervised.error
    said = [
        f"Naive self-training at its best closes {(alone - naive) / gap:.0%} of the gap between "
        f"the labelled points alone and every label given; annealed labels with a fixed bias "
        f"close {(alone - helped) / gap:.0%}.",
    ]
    if told.naive.at_bounds.get("lambda_u") == "lowest":
        said.append(
            "The best ridge of naive self-training is the lowest allowed one, at which a step "
            "changes nothing: naive self-training is better not used here."
        )
    for contender in (told.naive, told.helped):
        for name, end in contender.at_bounds.items():
            said.append(f"{name} of “{contender.name}” ended at the {end} value allowed.")
    ranges = ", ".join(
        f"{name} {low:g} to {high:g}" for name, (low, high) in BOUNDS.items() if name in RIDGES
    )
    said.append(f"Ranges searched: {ranges}, annealing 0 to {BOUNDS['annealing'][1]:g}.")
    return said


if __name__ == "__main__":
    main()
