r"""The setting that the figures share: where the paper says it, as it says; where it is open,
chosen here.

Section 3.4 fixes $(\alpha_L, \alpha_U, \Delta) = (0.5, 2, 0.75^2)$ for the comparison with
experiments (in the names of its picture files), the caption of `fig: vs continuous squared loss`
for continuous time; the same $(\alpha_L, \alpha_U)$ is taken where captions name $(\rho, \Delta)$
only.
"""

from __future__ import annotations

from typing import Any

from ..sweeps import Grid, Task
from .computations.chains import CHAIN

ALPHA_L, ALPHA_U, DELTA = 0.5, 2.0, 0.75**2
RHOS = (0.5, 0.495, 0.4, 0.2)
"""The shares of the positive class that the paper names."""

BETWEEN = 0.3
"""A share of our own, between the last two."""

DELTAS = (1.0, 0.75**2)
LONGEST, LONGEST_QUICK = 1024, 8

EXPERIMENT = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "delta": DELTA, "steps": 16}
"""The setting of the finite-size experiments."""

RIDGES = r"$\lambda_L, \lambda_U \in (0, 0.1]$"
TUNED = (
    r"tuned for every $T$ for the error of the last step, no domain shift, logistic loss, "
    r"$\lambda_L, \lambda_U \in (0, 0.1]$"
)
"""What Section 4.1 fixes for all its figures."""

OPEN_AMOUNTS = rf"$(\alpha_L, \alpha_U) = ({ALPHA_L:g}, {ALPHA_U:g})$"


def longest(quick: bool) -> int:
    """The largest T."""
    return LONGEST_QUICK if quick else LONGEST


def cases(
    quick: bool,
    selection: tuple[bool, ...] = (False,),
    heuristics: tuple[bool, ...] = (False,),
    rhos: tuple[float, ...] = RHOS,
) -> Task:
    r"""Tuned runs against T for several $(\rho, \Delta)$."""
    axes: dict[str, Any] = {
        "rho": rhos,
        "delta": DELTAS[1:] if quick else DELTAS,
        "selection": selection,
        "heuristics": heuristics,
    }
    fixed = {"alpha_l": ALPHA_L, "alpha_u": ALPHA_U, "longest": longest(quick)}
    return Task(CHAIN, Grid(axes, fixed))
