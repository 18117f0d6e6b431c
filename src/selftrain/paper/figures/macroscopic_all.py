r"""$q$, $m$, $B$, $\epsilon_g$ of finite systems against the theory for three $\rho$."""

from __future__ import annotations

from ..entry import Claims, Data, Tasks
from .macroscopic import SEEDS, SEEDS_QUICK, caption_values, draw, judge_at, powers, runs

__all__ = ["caption_values", "draw", "judge", "tasks"]

RHOS = (0.5, 0.495, 0.4)
SIZES = (128, 1024, 8192)


def tasks(quick: bool) -> Tasks:
    seeds = SEEDS_QUICK if quick else SEEDS
    return runs(RHOS, {size: seeds[size] for size in SIZES})


def judge(data: Data) -> Claims:
    yield from (one for rho in RHOS for one in judge_at(data, rho))
    yield powers(data)
