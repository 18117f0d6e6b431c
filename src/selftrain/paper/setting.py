r"""The parameters shared by the figures, those of the paper if it gives them.

$(\alpha_L, \alpha_U, \Delta) = (0.5, 2, 0.75^2)$ is given by Section 3.4 for the comparison with
experiments (in the names of its image files), and by the caption of `fig: vs continuous squared
loss` for continuous time. The same $(\alpha_L, \alpha_U)$ is used if a caption gives only $(\rho,
\Delta)$.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..sweeps import Computation, Grid, Task
from .computations.chains import CHAIN

ALPHA_L, ALPHA_U, DELTA = 0.5, 2.0, 0.75**2
AMOUNTS = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA}
RHOS = (0.5, 0.495, 0.4, 0.2)
"""The proportions of the positive class that the paper names."""

BETWEEN = 0.3
"""A proportion between the last two, which is not in the paper."""

WIDE = 1.0
r"""The larger $\Delta$ of the paper."""

DELTAS = (WIDE, DELTA)
EXPERIMENT = {**AMOUNTS, "steps": 16}
"""The setting of the finite-size experiments."""

TUNED = (
    r"tuned for every $T$ for the error of the last step, no domain shift, logistic loss, "
    r"$\lambda_L, \lambda_U \in (0, 0.1]$"
)
"""What Section 4.1 fixes for all its figures."""

OPEN_AMOUNTS = rf"$(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$"
SECTION_3_4 = rf"$(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$"


def longest(quick: bool) -> int:
    """Return the largest T."""
    return 8 if quick else 1024


def chains(quick: bool, axes: Mapping[str, Iterable[Any]], **fixed: Any) -> Task:
    """Return the task of tuned runs with T = 1, 2, 4, ... steps; parameters that are neither in
    `axes` nor in `fixed` have their usual values.
    """
    usual = {**AMOUNTS, "selection": False, "heuristics": False, "longest": longest(quick)}
    grid = {name: tuple(values) for name, values in axes.items()}
    rest = {name: value for name, value in (usual | fixed).items() if name not in grid}
    return Task(CHAIN, Grid(grid, rest))


def cases(
    quick: bool,
    selection: tuple[bool, ...] = (False,),
    heuristics: tuple[bool, ...] = (False,),
    rhos: tuple[float, ...] = RHOS,
) -> Task:
    r"""Return the task of tuned runs with T = 1, 2, 4, ... steps, for several $(\rho, \Delta)$."""
    axes: dict[str, Any] = {
        "rho": rhos,
        "delta": DELTAS[1:] if quick else DELTAS,
        "selection": selection,
        "heuristics": heuristics,
    }
    return chains(quick, axes)


def with_systems(
    theory: Computation,
    system: Computation,
    axes: Mapping[str, Any],
    fixed: Mapping[str, Any],
    seeds: Mapping[int, int],
) -> dict[str, Task]:
    """Return the task of a theory, and those of finite systems, named by N.

    Arguments:
        theory, system: the computations.
        axes, fixed: of the grids of both; those of finite systems also have `seed` and `features`.
        seeds: number of systems for each N.
    """
    tasks = {"theory": Task(theory, Grid(dict(axes), dict(fixed)))}
    for features, count in seeds.items():
        grid = Grid({**axes, "seed": tuple(range(count))}, {**fixed, "features": features})
        tasks[f"N{features}"] = Task(system, grid)
    return tasks
