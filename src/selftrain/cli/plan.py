"""`selftrain plan`: from a CSV file to the advice whether to self-train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import check_output, print_json, remark, terminal, writing

PICTURES = ("png", "svg", "pdf")


def plan(
    rows: Annotated[Path, typer.Argument(help="CSV file with a header.", metavar="ROWS.csv")],
    target: Annotated[str, typer.Option("--target", help="Column of the classes.", metavar="NAME")],
    unlabeled: Annotated[
        str,
        typer.Option(
            "--unlabeled",
            help="What stands in the target where the class is not known; empty cells count too.",
            metavar="TEXT",
        ),
    ] = "-1",
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive",
            help="The class to plan against all others; needed with more than two.",
            metavar="CLASS",
            show_default=False,
        ),
    ] = None,
    encode: Annotated[
        bool, typer.Option("--encode", help="Make columns of 0 and 1 out of columns of text.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", help="Of folds, samples and draws.", min=0, metavar="K")
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Draw the plan into this file.", metavar="FILE", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say whether self-training is worth it on rows of which few are labelled."""
    if plot is not None:
        check_output("plot", plot, PICTURES)

    from ..estimator.planning.plan import plan_file

    advice = plan_file(
        rows, target, unlabeled=unlabeled, positive=positive, encode=encode, seed=seed
    )
    if plot is not None:
        with writing(plot):
            advice.plot().savefig(plot)
        remark(f"Figure: {plot}")
    if as_json:
        print_json(advice.to_dict())
    else:
        terminal().print(str(advice), markup=False)
