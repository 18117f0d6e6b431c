"""`selftrain bench`: the speed and accuracy of the engines, as ratios measured in one run."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    help="Measure the engines against other ways to the same numbers.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]


@app.command("theory")
def theory(as_json: AsJson = False) -> None:
    """The solver against the paper's Algorithm 1 and against nested quadrature (some minutes)."""
    from ..bench.theory import theory as measure

    _report("theory", measure(), as_json)


def _report(name: str, lines, as_json: bool) -> None:  # type: ignore[no-untyped-def]
    from importlib.metadata import version

    from ..bench.measure import show

    if not as_json:
        show(lines)
        return
    import json

    typer.echo(
        json.dumps(
            {
                "bench": name,
                "version": version("selftrain"),
                "lines": [line.to_dict() for line in lines],
            }
        )
    )
