r"""The setting that the figures share: where the paper says it, as it says; where it is open, chosen here.

Section 4 fixes $(\alpha_L, \alpha_U, \Delta) = (0.5, 2, 0.75^2)$ for the comparison with experiments and with continuous time; the same
$(\alpha_L, \alpha_U)$ is taken where the captions name $(\rho, \Delta)$ only.
"""

from __future__ import annotations

from typing import Any

from ..sweep import Grid, Task
from .computations.chains import CHAIN

ALPHA_L, ALPHA_U, DELTA = 0.5, 2.0, 0.75**2
RHOS = (0.5, 0.495, 0.4, 0.3, 0.2)
DELTAS = (1.0, 0.75**2)
LONGEST, LONGEST_QUICK = 1024, 16

EXPERIMENT = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA, "steps": 16}
"""The setting of the finite-size experiments."""

RIDGES = r"$\lambda_L, \lambda_U \in (0, 0.1]$"


def longest(quick: bool) -> int:
    """The largest T."""
    return LONGEST_QUICK if quick else LONGEST


def cases(
    quick: bool, selection: tuple[bool, ...] = (False,), heuristics: tuple[bool, ...] = (False,)
) -> Task:
    r"""Tuned runs against T for several $(\rho, \Delta)$."""
    axes: dict[str, Any] = {
        "rho": (0.5, 0.495, 0.4, 0.2) if quick else RHOS,
        "delta": DELTAS[1:] if quick else DELTAS,
        "selection": selection,
        "heuristics": heuristics,
    }
    fixed = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "longest": longest(quick)}
    return Task(CHAIN, Grid(axes, fixed))
