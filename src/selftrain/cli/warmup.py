"""`selftrain warmup`: compile the kernels once, so that no later call has to wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

import typer


def warmup() -> None:
    """Compile what the solver, its gradients and the simulator need (a minute or two, once)."""
    begun = time.monotonic()
    for number, (name, part) in enumerate(_PARTS, start=1):
        typer.echo(f"compiling {number}/{len(_PARTS)}: {name} ...", err=True, nl=False)
        start = time.monotonic()
        part()
        typer.echo(f" {time.monotonic() - start:.1f} s", err=True)
    typer.echo(f"ready in {time.monotonic() - begun:.0f} s", err=True)


def _solver() -> None:
    from ..problem import Problem
    from ..recipe import Recipe
    from ..theory.solve import solve

    solve(Problem(0.5, 2.0, 0.4, 0.5625, steps=2), Recipe()).summary()


def _other_ways() -> None:
    from ..problem import Problem
    from ..recipe import Recipe
    from ..theory.solve import solve
    from ..theory.supervised import supervised_model

    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=2)
    solve(problem.replace(loss="squared"), Recipe(threshold=0.5))
    supervised_model(problem.replace(rho_u=0.3), 0.05)


def _shapes() -> None:
    import numpy as np

    from ..mixture.clusters import Clusters
    from ..problem import Problem
    from ..recipe import Recipe
    from ..theory.solve import solve

    clusters = Clusters(mean=np.array([1.0, 0.3]), covariance=np.array([0.5, 2.0]))
    for loss in ("logistic", "squared"):
        solve(Problem(0.5, 2.0, 0.4, clusters=clusters, steps=4, loss=loss), Recipe())


def _gradients() -> None:
    from ..problem import Problem
    from ..recipe import Recipe
    from ..theory.gradients.gradient import gradient
    from ..theory.solve import solve

    gradient(solve(Problem(0.5, 2.0, 0.4, 0.5625, steps=2), Recipe()))


def _simulator() -> None:
    from .. import simulate
    from ..problem import Problem
    from ..recipe import Recipe

    simulate(Problem(0.5, 2.0, 0.4, 0.5625, steps=1), Recipe(), features=64, seeds=1)


_PARTS: tuple[tuple[str, Callable[[], None]], ...] = (
    ("the solver", _solver),
    ("its other ways", _other_ways),
    ("clusters with a shape", _shapes),
    ("gradients", _gradients),
    ("the simulator", _simulator),
)
