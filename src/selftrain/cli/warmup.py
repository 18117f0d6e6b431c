"""`selftrain warmup`: compile the kernels, so that no later call has to wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

import typer


def warmup() -> None:
    """Compile the kernels of solver, gradients and simulator (a minute or two, once)."""
    begun = time.monotonic()
    parts = _parts()
    for number, (name, part) in enumerate(parts.items(), start=1):
        typer.echo(f"compiling {number}/{len(parts)}: {name} ...", err=True, nl=False)
        start = time.monotonic()
        part()
        typer.echo(f" {time.monotonic() - start:.1f} s", err=True)
    typer.echo(f"ready in {time.monotonic() - begun:.0f} s", err=True)


def _parts() -> dict[str, Callable[[], object]]:
    """Return calls, by name, that together compile all kernels."""
    import numpy as np

    from .. import Clusters, Problem, Recipe, gradient, simulate, solve
    from ..theory.supervised_fit import supervised_model

    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=2)
    clusters = Clusters(mean=np.array([1.0, 0.3]), covariance=np.array([0.5, 2.0]))
    general = Problem(0.5, 2.0, 0.4, clusters=clusters, steps=4)
    return {
        "the solver": lambda: solve(problem, Recipe()).summary(),
        "the squared loss, selection, the supervised baseline": lambda: (
            solve(problem.replace(loss="squared"), Recipe(threshold=0.5)),
            supervised_model(problem.replace(rho_u=0.3), 0.05),
        ),
        "general covariances": lambda: [
            solve(general.replace(loss=loss), Recipe()) for loss in ("logistic", "squared")
        ],
        "gradients": lambda: gradient(solve(problem, Recipe())),
        "the simulator": lambda: simulate(problem.replace(steps=1), Recipe(), features=64, seeds=1),
    }
