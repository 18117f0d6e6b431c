r"""Distributions of weights and training logits for three $\rho$ and two $N$."""

from __future__ import annotations

from itertools import product

from ..entry import Claims, Data, Tasks
from .weights_logits import KINDS, draw, finite_systems, judge_law

__all__ = ["draw", "judge", "tasks"]

RHOS = (0.5, 0.495, 0.4)
SIZES = (2**10, 2**13)


def tasks(quick: bool) -> Tasks:
    return finite_systems(RHOS, SIZES, quick)


def judge(data: Data) -> Claims:
    for features, rho, kind in product(SIZES, RHOS, KINDS):
        if (features, rho) != (2**13, 0.4):  # Figure 1
            yield judge_law(f"N{features}", data, kind, rho, features)
