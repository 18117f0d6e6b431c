r"""Which rows a step fits: groups of rows that are used together, and their weights $k_g(t)$.

The labelled rows are one group, with weight 1 in step 0 and `keep_labeled` later. `batches` names
the unlabelled rows of each step: "fresh" (rows of their own in every step), "reused" (the same rows
in every step), or a sequence of names, one per step. A name that returns means the same rows; names
joined by "+" mean several sets of rows, which share the `alpha_u` of the step equally: the parts of
a pool.
"""

from __future__ import annotations

from typing import NamedTuple

from .arrays import Array
from .protocol import LABELED, BatchNames, parts_of

__all__ = ["RowGroup", "unlabeled_groups"]


class RowGroup(NamedTuple):
    r"""Rows that are always used together.

    Attributes:
        name: its name; "labeled" for the labelled rows.
        alpha, rho, delta: rows per feature and the mixture they come from (delta is NaN for
            clusters with a shape).
        weights: $k(t)$ for t = 0..T; 0 where the step does not use them.
    """

    name: str
    alpha: float
    rho: float
    delta: float
    weights: tuple[float, ...]

    @property
    def labeled(self) -> bool:
        """Whether their true labels are given."""
        return self.name == LABELED

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that use them."""
        return tuple(t for t, weight in enumerate(self.weights) if weight > 0)


def unlabeled_groups(
    batches: BatchNames, alpha: Array, rho: Array, delta: Array
) -> tuple[RowGroup, ...]:
    """The parts in the order of their first use."""
    steps = alpha.size
    found: dict[str, tuple[float, float, float]] = {}
    used: dict[str, list[float]] = {}
    for t, parts in enumerate(parts_of(batches, steps), start=1):
        mine = (float(alpha[t - 1]) / len(parts), float(rho[t - 1]), float(delta[t - 1]))
        for part in parts:
            found.setdefault(part, mine)
            used.setdefault(part, [0.0] * (steps + 1))[t] = 1.0
    return tuple(RowGroup(name, *found[name], tuple(used[name])) for name in found)
