"""An estimate of the memory of a simulation, checked before it starts."""

from __future__ import annotations

import os

from ..errors import InvalidInput
from .run_plan import RunPlan

FRAME_DIRECTIONS = 20
REVEALED_DIRECTIONS = 60


def available_memory() -> int:
    """Return the number of bytes that can be allocated without swapping."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def needed_memory(plan: RunPlan, method: str, workers: int) -> int:
    """Return the number of bytes that all workers together need at the peak."""
    rows = max(plan.rows(t) for t in range(len(plan.protocol.fits)))
    pairs = zip(plan.sizes, plan.protocol.uses, strict=True)
    stored = sum(size for size, uses in pairs if len(uses) > 1)
    total = rows + stored
    if method == "matrix-free":
        each = rows * (8 * FRAME_DIRECTIONS + 8 * 6)
    elif method == "revealed":
        asked = REVEALED_DIRECTIONS * (len(plan.protocol.fits) if stored else 1)
        each = 8 * 2 * (total + plan.features) * min(asked, plan.features)
    else:
        each = 8 * plan.features * total + 8 * 10 * total
    return workers * each


def check_memory(
    plan: RunPlan, method: str, workers: int, seeds: int, kept: int, limit: int | None
) -> None:
    """Raise if a run does not fit into memory; the message has what it needs and what would fit.

    Arguments:
        seeds: number of seeds.
        kept: count of numbers stored for every seed: measured quantities, and vectors if requested.
        limit: bytes that may be used; None for the available memory.
    """
    room = available_memory() if limit is None else limit
    working, stored = needed_memory(plan, method, workers), 8 * kept * seeds
    needed = working + stored
    if needed <= room:
        return
    there = f"{room / 1e9:.3g} GB {'are free' if limit is None else 'are allowed'}"
    seeds_that_fit = int((room - working) / (8 * kept))
    if working <= stored and seeds_that_fit > 0:
        raise InvalidInput(
            "seeds",
            seeds,
            f"their results would take {stored / 1e9:.3g} GB of memory, {there}; about"
            f" {seeds_that_fit:,} seeds would fit",
        )
    features = plan.features
    share = needed / room
    fitting = int(
        features / share**0.5 if method not in ("matrix-free", "revealed") else features / share
    )
    advice = f"about {fitting:,} features would fit"
    if method == "dense":
        advice += ", and method='matrix-free' needs no matrix"
    elif workers > 1:
        advice += f", or fewer workers than {workers}"
    raise InvalidInput(
        "features",
        features,
        f"method {method!r} would take {needed / 1e9:.3g} GB of memory, {there}; {advice}",
    )
