"""Entry point of the command line: the commands and their exit codes.

Exit codes: 0: done; 1: failed (one line on stderr says why); 2: wrong usage, or a value out of
range; 130: interrupted.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer
from typer.exceptions import TyperException

from ..errors import InvalidInput, SelfTrainError
from .continuum import continuum
from .examples import epilog
from .explore import explore
from .optimize import optimize
from .paper import app as paper
from .plan_file import plan
from .simulate import simulate
from .solve import solve
from .sweep import app as sweep
from .warmup import warmup

app = typer.Typer(
    help="Theory, simulation and practice of self-training linear classifiers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog=epilog(""),
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function in (solve, simulate, optimize, continuum, plan, explore, warmup):
    app.command(epilog=epilog(function.__name__))(function)
for name, group in (("paper", paper), ("sweep", sweep)):
    app.add_typer(group, name=name, epilog=epilog(name))
    for command in group.registered_commands:
        command.epilog = epilog(f"{name} {command.name}")


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"selftrain {version('selftrain')}")
        raise typer.Exit


@app.callback()
def _selftrain(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; anywhere on the line.")
    ] = False,
) -> None:
    """Declare the flags of all commands; `run` has already removed `--debug` from the arguments."""


_debug = False
"""Whether errors are shown with their traceback."""


def run() -> None:
    """Run the command with the arguments of this process, and exit with its code."""
    global _debug
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    _debug = len(arguments) < len(sys.argv) - 1
    try:
        code = app(arguments, prog_name="selftrain", standalone_mode=False)
    except TyperException as error:
        code = _fail(error.format_message(), error.exit_code)
    except SelfTrainError as error:
        code = _fail(str(error), 2 if isinstance(error, InvalidInput) else 1)
    except OSError as error:
        code = _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
    except ArithmeticError as error:
        code = _fail(f"overflow or underflow ({error})", 1)
    except MemoryError:
        code = _fail("not enough memory for a run of this size", 1)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _fail(reason: str, code: int) -> int:
    """Print the reason in one line on stderr, after the traceback if --debug is given; return the
    exit code.
    """
    if _debug:
        traceback.print_exc()
    if reason:
        from .output import remark

        remark(f"selftrain: {' '.join(reason.split())}")
    return code
