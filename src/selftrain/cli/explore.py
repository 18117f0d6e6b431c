"""`selftrain explore`: the page with sliders, served on this machine."""

from typing import Annotated

import typer

from .output import remark


def explore(
    port: Annotated[int, typer.Option(metavar="P", help="Port; 0 takes any free one.")] = 8050,
    host: Annotated[
        str,
        typer.Option(
            metavar="H",
            help="Address to listen at. The default can be reached from this machine only.",
        ),
    ] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> None:
    """Open a page where every curve follows a slider."""
    from ..explorer.server import serve

    serve(host, port, not no_open, say=remark)
