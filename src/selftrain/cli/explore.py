"""`selftrain explore`: the page with sliders, served on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import SelfTrainError
from .output import remark


def explore(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="A saved run to begin with, or a sweep to click on."),
    ] = None,
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
    try:
        from ..explorer.server import serve
    except ImportError as error:
        reason = f"the page needs {error.name}: pip install '.[explore]' in a clone"
        raise SelfTrainError(reason) from None
    serve(host, port, not no_open, say=remark, path=path)
