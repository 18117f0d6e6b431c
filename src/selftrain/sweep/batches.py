"""How points are put together: until a batch is worth its trip, and no longer than the others wait
for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import Array
from .computation import Computation, a_moment
from .grid import Point
from .store import Keeper
from .work import LinkedPoint, Result

BATCH_SECONDS = 0.5
"""Points are put together until they are expected to take this long: a trip and a part cost
milliseconds.
"""

SHARES = 3
"""At the end a batch is at most this part of what a worker still has to expect, so that all end
together.
"""

AHEAD = 2
"""Batches sent per worker: one is computed, one waits next to it."""


@dataclass(frozen=True)
class Job:
    """A point to compute.

    Attributes:
        key: what it is known by.
        seconds: how long it may take.
        after: keys of points that it starts from, the nearest first, if they have values.
    """

    key: str
    computation: Computation
    point: Point
    seconds: float
    after: tuple[str, ...] = ()

    def follows(self, other: Job) -> bool:
        """Whether the other one must be computed right before it."""
        return self.after[:1] == (other.key,)


@dataclass
class Batch:
    """Points of one computation that travel together, and how often they lost their process."""

    jobs: Sequence[Job]
    lost: int = field(default=0)

    @property
    def computation(self) -> Computation:
        """What is computed at each point."""
        return self.jobs[0].computation

    def points(self, keeper: Keeper) -> list[LinkedPoint]:
        """The points, and where each finds what it starts from: in this batch, or kept."""
        places = {job.key: place for place, job in enumerate(self.jobs)}
        linked = []
        for job in self.jobs:
            before: list[int | Array] = []
            for key in job.after:
                found = keeper.get(key)
                if key in places:
                    before.append(places[key])
                elif found is not None and job.computation.link in found.values:
                    before.append(np.asarray(found.values[job.computation.link]))
                else:
                    break
            linked.append(LinkedPoint(job.point, before))
        return linked

    def split(self, size: int) -> list[Batch]:
        """The same points in batches of at most `size`; what was lost with others counts once."""
        starts = range(0, len(self.jobs), size)
        return [Batch(self.jobs[at : at + size], min(self.lost, 1)) for at in starts]


class Queue:
    """Jobs that wait, given out in batches whose size follows from the time that others took."""

    def __init__(self, jobs: Iterable[Job], slots: int = 1) -> None:
        self.slots = slots
        self._waiting: dict[int, deque[Job]] = {}
        self._back: deque[Batch] = deque()
        self._pace: dict[int, float] = {}
        for job in jobs:
            self._waiting.setdefault(id(job.computation), deque()).append(job)
            if job.computation.seconds is not a_moment:
                self._pace[id(job.computation)] = 1.0

    def __bool__(self) -> bool:
        return bool(self._back) or any(self._waiting.values())

    @property
    def window(self) -> int:
        """Batches that may be under way."""
        return AHEAD * self.slots

    @property
    def seconds(self) -> float:
        """What is still expected, one point after the other."""
        return sum(self._expected(job) for jobs in self._waiting.values() for job in jobs)

    def take(self) -> Batch:
        """The next batch: of the computation whose next point takes longest."""
        if self._back:
            return self._back.popleft()
        open_jobs = [jobs for jobs in self._waiting.values() if jobs]
        jobs = max(open_jobs, key=lambda jobs: self._expected(jobs[0]))
        taken = [jobs.popleft()]
        which = id(taken[0].computation)
        room = 0.0
        if which in self._pace:
            left = len(jobs) * self._expected(taken[0])
            room = min(BATCH_SECONDS, left / (SHARES * self.slots)) - self._expected(taken[0])
        while jobs and (room >= self._expected(jobs[0]) or jobs[0].follows(taken[-1])):
            room -= self._expected(jobs[0])
            taken.append(jobs.popleft())
        return Batch(taken)

    def give_back(self, batch: Batch) -> None:
        """A batch to be taken next."""
        self._back.append(batch)

    def learn(self, batch: Batch, results: Sequence[Result]) -> None:
        """How long points took, against what was expected; the first, which may compile, counts
        less and less.
        """
        which = id(batch.jobs[0].computation)
        expected = sum(job.seconds for job in batch.jobs)
        pace = max(sum(result.seconds for result in results), 1e-6) / max(expected, 1e-6)
        self._pace[which] = 0.5 * (self._pace.get(which, pace) + pace)

    def _expected(self, job: Job) -> float:
        return job.seconds * self._pace.get(id(job.computation), 1.0)
