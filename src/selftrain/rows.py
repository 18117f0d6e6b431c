r"""Which rows a step fits: groups of rows that are used together, and their weights $k_g(t)$.

The labelled rows are one group, with weight 1 in step 0 and `keep_labeled` later. `batches` names
the unlabelled rows of each step: "fresh" (rows of their own in every step), "reused" (the same rows
in every step), or a sequence of names, one per step. A name that returns means the same rows; names
joined by "+" mean several sets of rows, which share the `alpha_u` of the step equally: the parts of
a pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .arrays import Array
from .errors import InvalidInput

__all__ = ["LABELED", "BatchNames", "RowGroup", "batch_names", "parts_of", "unlabeled_groups"]

BatchNames = str | tuple[str, ...]

ACCEPTED = '"fresh", "reused", or one name per step (names joined by "+" for several) is accepted'


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


LABELED = "labeled"


def batch_names(value: Any) -> BatchNames:
    """The field `batches`, checked on its own."""
    if isinstance(value, str):
        if value in ("fresh", "reused"):
            return value
        if "," not in value:
            raise InvalidInput("batches", value, ACCEPTED)
        value = value.removesuffix(",").split(",")
    if not isinstance(value, Sequence):
        raise InvalidInput("batches", value, ACCEPTED)
    for index, name in enumerate(value):
        field = f"batches[{index}]"
        if not isinstance(name, str) or not all(part.strip() for part in name.split("+")):
            raise InvalidInput(field, name, 'a name, or names joined by "+", is accepted')
        parts = [part.strip() for part in name.split("+")]
        if LABELED in parts:
            raise InvalidInput(field, name, f'"{LABELED}" is taken: it means the labelled rows')
        if len(set(parts)) < len(parts):
            raise InvalidInput(field, name, "every part can be used once per step")
    return tuple("+".join(part.strip() for part in name.split("+")) for name in value)


def parts_of(batches: BatchNames, steps: int) -> tuple[tuple[str, ...], ...]:
    """The names of the parts that each of the steps 1..`steps` uses.

    >>> parts_of(("a", "b", "a+b"), 3)
    (('a',), ('b',), ('a', 'b'))
    >>> parts_of("fresh", 2)
    (('batch 1',), ('batch 2',))
    """
    if batches == "fresh":
        return tuple((f"batch {t}",) for t in range(1, steps + 1))
    if isinstance(batches, str):
        return (("batch",),) * steps
    if len(batches) != steps:
        accepted = f"a sequence needs one name per step: {steps}, not {len(batches)}"
        raise InvalidInput("batches", batches, accepted)
    return tuple(tuple(name.split("+")) for name in batches)


def unlabeled_groups(
    batches: BatchNames, alpha: Array, rho: Array, delta: Array
) -> tuple[RowGroup, ...]:
    """The parts in the order of their first use; a part that changes between steps is an error."""
    steps = alpha.size
    found: dict[str, tuple[float, float, float]] = {}
    used: dict[str, list[float]] = {}
    for t, parts in enumerate(parts_of(batches, steps), start=1):
        mine = (float(alpha[t - 1]) / len(parts), float(rho[t - 1]), float(delta[t - 1]))
        for part in parts:
            known = found.setdefault(part, mine)
            names = ("alpha_u", "rho_u", "delta_u")
            for name, before, now in zip(names, known, mine, strict=True):
                if before != now and before == before and abs(before - now) > 1e-12 * abs(before):
                    accepted = (
                        f"rows that are used again must not change: {part!r} has {before:g} before "
                        f"and {now:g} in step {t} (parts of a step share its alpha_u equally)"
                    )
                    raise InvalidInput(name, now, accepted)
            used.setdefault(part, [0.0] * (steps + 1))[t] = 1.0
    return tuple(RowGroup(name, *found[name], tuple(used[name])) for name in found)
