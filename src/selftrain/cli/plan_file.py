"""`selftrain plan`: advice whether to self-train, from a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, option
from .output import OutputFiles, print_json, terminal


def plan(
    rows: Annotated[Path, typer.Argument(help="CSV file with a header.", metavar="ROWS.csv")],
    target: Annotated[str, typer.Option("--target", help="Column of the classes.", metavar="NAME")],
    unlabeled: Annotated[
        str,
        typer.Option(
            help="Marker of unlabelled rows in the target; empty cells count too.", metavar="TEXT"
        ),
    ] = "-1",
    positive: Annotated[
        str | None,
        option("The class to plan against all others; needed with more than two.", "CLASS"),
    ] = None,
    encode: Annotated[bool, option("One-hot encode columns of text.", "", "--encode")] = False,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0, metavar="K")] = 0,
    plot: Annotated[Path | None, option("Draw the plan (png, pdf, svg).", "FILE")] = None,
    json: AsJson = False,
) -> None:
    """Say whether self-training will help on a table with few labels; fill in missing numbers."""
    files = OutputFiles(plot).check()

    from ..estimator.planning.plan import plan_file

    advice = plan_file(
        rows, target, unlabeled=unlabeled, positive=positive, encode=encode, seed=seed
    )
    files.write(advice.plot)
    if json:
        print_json(advice.to_dict())
    else:
        terminal().print(str(advice), markup=False)
