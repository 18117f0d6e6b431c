"""Estimate of the time of a sweep, from a sample of its points."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.parallel import cores
from ..runtime.progress import clock
from ..sweeps.api import SweepPlan, opened
from ..sweeps.computation import Task
from ..sweeps.grid import Grid
from ..sweeps.scheduling import complete

LONG_SAMPLE = 5.0
"""Seconds; after a point that takes longer, no further point is sampled."""


@dataclass(frozen=True)
class Cost:
    """An estimate of the time that a sweep takes.

    Attributes:
        points: number of points of the grid.
        missing: number of points that are not computed yet.
        sampled: number of points that were computed for this estimate.
        seconds: mean processor time per point, over the sample and the points that were stored
            before; None if no point was missing.
    """

    points: int
    missing: int
    sampled: int
    seconds: float | None

    def sentence(self, workers: int | None) -> str:
        """Return the estimate in words."""
        if self.seconds is None:
            return f"all {self.points} points are there"
        if not self.missing:
            return f"nothing is left to compute after a sample of {self.sampled}"
        count = cores(-1 if workers is None else workers)
        whole = clock(self.missing * self.seconds / count)
        return (
            f"{self.missing} of {self.points} points are missing, {self.seconds:.3g} s each (a "
            f"sample of {self.sampled}): about {whole} with {count} at once"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def sample(plan: SweepPlan, file: str | Path, **how: Any) -> Cost:
    """Compute a few of the missing points, spread over the grid, and estimate the time of the rest.

    `how` takes the options of `complete`.
    """
    task = plan.grid_task
    with opened(plan, file) as store:
        found = task.find(store)
        missing = [at for at, one in enumerate(found) if one is None]
        if not missing:
            return Cost(len(found), 0, 0, None)
        taken: list[float] = []
        for at in dict.fromkeys((missing[0], missing[-1], missing[len(missing) // 2])):
            begin = time.monotonic()
            one = Task(task.computation, Grid({}, task.grid.points[at]), task.names)
            complete([one], store, workers=0, progress=False, **how)
            done = task.find(store)[at]
            taken.append(0.0 if done is None else done.seconds)
            if len(taken) > 1 and time.monotonic() - begin > LONG_SAMPLE:
                break
    later = taken[1:] or taken  # the first point may have compiled kernels
    # for the same reason the slowest of the stored points does not count
    before = sorted(one.seconds for one in found if one is not None)[:-1]
    left = sum(one is None for one in task.find(store))
    return Cost(len(found), left, len(missing) - left, float(np.mean([*before, *later])))
