r"""The fields `batches` and `keep_labeled` of a problem: which samples each step uses.

The labelled samples are one group, with weight 1 in fit 0 and `keep_labeled` later. `batches` names
the samples that each step pseudo-labels: "fresh" (new ones), "reused" (the same in every step),
"labeled" (the labelled samples: self-distillation), "labeled+fresh", "labeled+reused", or one name
per step. Steps with the same name use the same samples. A step with names joined by "+" uses all
groups of these names; its `alpha_u` is divided equally among the unlabelled ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import Array
from .errors import InvalidInput

if TYPE_CHECKING:
    from .problem import Problem

BatchNames = str | tuple[str, ...]

LABELED = "labeled"
"""The name of the labelled samples."""

EVERY_STEP = ("fresh", "reused", LABELED, f"{LABELED}+fresh", f"{LABELED}+reused")
"""Values of `batches` that apply to every step."""

ACCEPTED = (
    f"must be {', '.join(repr(name) for name in EVERY_STEP)}, or one name per step (names joined by"
    ' "+" for several)'
)


def batch_names(value: Any) -> BatchNames:
    """Return a validated value of `batches`; `parts_of` checks its length."""
    if isinstance(value, str):
        if value.replace(" ", "") in EVERY_STEP:
            return value.replace(" ", "")
        if "," not in value:
            raise InvalidInput("batches", value, ACCEPTED)
        value = value.removesuffix(",").split(",")
    if not isinstance(value, Sequence):
        raise InvalidInput("batches", value, ACCEPTED)
    for index, name in enumerate(value):
        field = f"batches[{index}]"
        if not isinstance(name, str) or not all(part.strip() for part in name.split("+")):
            raise InvalidInput(field, name, 'must be a name, or names joined by "+"')
        parts = [part.strip() for part in name.split("+")]
        if len(set(parts)) < len(parts):
            raise InvalidInput(field, name, "must have every part once: a step uses it once")
    return tuple("+".join(part.strip() for part in name.split("+")) for name in value)


def parts_of(batches: BatchNames, steps: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of the groups that each of the steps 1..`steps` pseudo-labels.

    >>> parts_of(("a", "b", "a+b"), 3)
    (('a',), ('b',), ('a', 'b'))
    >>> parts_of("labeled+fresh", 2)
    (('labeled', 'batch 1'), ('labeled', 'batch 2'))
    """
    if isinstance(batches, str):
        own = {"fresh": "batch {t}", "reused": "batch"}
        names = [own.get(part, part) for part in batches.split("+")]
        return tuple(tuple(name.format(t=t) for name in names) for t in range(1, steps + 1))
    if len(batches) != steps:
        accepted = f"a sequence must have one name per step: {steps}, not {len(batches)}"
        raise InvalidInput("batches", batches, accepted)
    return tuple(tuple(name.split("+")) for name in batches)


def draws_unlabeled(batches: BatchNames, steps: int) -> bool:
    """Return whether some step uses samples without given labels."""
    # A single name applies to every step, so that one step tells.
    steps = steps if isinstance(batches, tuple) else 1
    return any(part != LABELED for parts in parts_of(batches, steps) for part in parts)


def pseudo_labeled(problem: Problem) -> Array:
    """Return how many samples per feature each of the steps 1..T pseudo-labels."""
    alpha = problem.unlabeled.alpha
    if problem.batches in ("fresh", "reused"):
        return alpha
    parts = parts_of(problem.batches, problem.steps)
    unlabeled = np.array([any(part != LABELED for part in names) for names in parts], dtype=bool)
    labeled = np.array([LABELED in names for names in parts], dtype=bool)
    return np.asarray(alpha * unlabeled + problem.alpha_l * labeled)


def new_samples(problem: Problem) -> Array:
    """Return how many unlabelled samples per feature each of the steps 1..T uses that no earlier
    step has used.
    """
    alpha = problem.unlabeled.alpha
    if problem.batches == "fresh":
        return alpha
    seen = {LABELED}
    new = np.zeros(problem.steps)
    for t, parts in enumerate(parts_of(problem.batches, problem.steps)):
        unlabeled = max(1, sum(part != LABELED for part in parts))
        new[t] = alpha[t] * sum(part not in seen for part in parts) / unlabeled
        seen.update(parts)
    return new
