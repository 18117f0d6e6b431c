r"""$q$, $m$, $B$, $\epsilon_g$ of finite systems against the theory for $\rho = 0.5, 0.495,
0.4$.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...sweeps import Task
from ..figure import Claim, Data, Figure, Finding, Place
from .macroscopic import FROM_PAPER, SEEDS, SEEDS_QUICK, caption, draw, judge, powers, runs

RHOS = (0.5, 0.495, 0.4)
SIZES = (128, 1024, 8192)


def tasks(quick: bool) -> Mapping[str, Task]:
    seeds = SEEDS_QUICK if quick else SEEDS
    return runs(RHOS, {size: seeds[size] for size in SIZES})


def claims(data: Data, full: bool) -> list[Claim]:
    return [claim for rho in RHOS for claim in judge(data, rho, full)]


def findings(data: Data, full: bool) -> list[Finding]:
    return powers(data, full)


FIGURE = Figure(
    "macroscopic-all",
    "Macroscopic quantities, all panels of the appendix",
    Place("Appendix B", 12, "fig: macro with experiment"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"{FROM_PAPER}, $\rho$ = 0.5, 0.495, 0.4.",
    chosen=r"numbers of seeds (the paper: several), $\Gamma \in [0, 3]$.",
)
