"""`python -m selftrain.report --out FOLDER`: compute the findings, draw them, print a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .headline import BOUNDS, RIDGES, Contender, Headline, headline

if TYPE_CHECKING:
    from rich.table import Table


def main() -> None:
    """Write the figures to a folder and tell the numbers."""
    parser = argparse.ArgumentParser(prog="python -m selftrain.report", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the figures")
    parser.add_argument("--features", type=int, default=16384, help="size of simulated systems")
    parser.add_argument("--seeds", type=int, default=8, help="systems a contender; 0 for none")
    asked = parser.parse_args()

    from rich.console import Console

    from ..plots.headline import plot_headline

    console = Console(highlight=False)
    console.width = max(console.width, 120)
    with console.status("tuning four ways to learn from the same data, and simulating two"):
        told = headline(features=asked.features, seeds=asked.seeds)
    asked.out.mkdir(parents=True, exist_ok=True)
    figure = asked.out / "headline.png"
    plot_headline(told).savefig(figure)
    console.print(table(told))
    for sentence in (*legend(told), *sentences(told)):
        console.print(sentence, soft_wrap=True)
    console.print(f"Figure: {figure}")


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
