"""What a figure is: a declared grid, a drawing, sentences of the paper that it must bear out,
findings.

The module can be called, `selftrain.paper.figure("cosine", rho=0.3)`: a figure by its name
(`registry.figure`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import SelfTrainError
from ..runtime.progress import ProgressOption
from ..sweeps import Store, Task, complete
from ..sweeps.store import Memory
from .ruling import Ruling, verdict_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

Data = Mapping[str, "xr.Dataset"]
"""The datasets of a figure by name, one for each of its tasks."""

Tasks = Callable[[bool], Mapping[str, Task]]
"""What a figure computes, by name; True asks for its quick version."""

NEEDS_THE_FULL_RUN = "needs the full run"


@dataclass(frozen=True)
class Judged:
    """Something that the data decide.

    Attributes:
        ruling: the numbers that decide, with their bars.
        found: what was found, in words and numbers.
        numbers: the numbers themselves, by name.
    """

    ruling: Ruling
    found: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """Whether it came out; None if these data cannot tell."""
        return self.ruling.holds

    @property
    def verdict(self) -> str:
        return verdict_of(self.holds)

    def _judged(self) -> dict[str, Any]:
        """What a record has of claims and findings alike."""
        return {
            "verdict": self.verdict,
            "found": self.found,
            "numbers": dict(self.numbers),
            **self.ruling.to_dict(),
        }


@dataclass(frozen=True)
class Claim(Judged):
    """A sentence of the paper, how it is tested, and what was found.

    Attributes:
        quote: the sentence, or the part of it that is tested, in the words of the paper.
        test: what is tested.
        case: the case, where one sentence is tested in several.
    """

    quote: str = ""
    test: str = ""
    case: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "quote": self.quote,
            "case": self.case,
            "test": self.test,
            **self._judged(),
        }


@dataclass(frozen=True)
class Finding(Judged):
    """A statement of our own, not of the paper.

    Attributes:
        says: the statement, with the criterion by which it is judged.
    """

    says: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"says": self.says, **self._judged()}


@dataclass(frozen=True)
class Place:
    """Where a figure is in the paper.

    Attributes:
        section: the section that describes it.
        number: its number; None for a figure of our own.
        label: its LaTeX label.
    """

    section: str
    number: int | None = None
    label: str = ""

    def __str__(self) -> str:
        """
        >>> str(Place("Section 4.1", 4, "fig: cosine similarity"))
        'Figure 4, `fig: cosine similarity`, Section 4.1'
        >>> str(Place("beyond the paper: `docs/gradients.md`"))
        'beyond the paper: `docs/gradients.md`'
        """
        if self.number is None:
            return self.section
        return f"Figure {self.number}, `{self.label}`, {self.section}"


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, or one of ours next to it.

    Attributes:
        id: its name on the command line.
        title: what it shows.
        place: where it is in the paper.
        tasks: what to compute, by name; True asks for the quick version.
        draw: the drawing, from the data.
        claims: what the paper says of it, judged by the data; the flag says whether they are of
            the full version.
        findings: what we say of it, likewise.
        caption: what stands under it: symbols and marks.
        from_paper: parameters that the paper fixes.
        chosen: parameters that it leaves open, and their values here.
        changes: parameters that are neither, because they were asked for.
    """

    id: str
    title: str
    place: Place
    tasks: Tasks
    draw: Callable[[Data], Drawing]
    claims: Callable[[Data, bool], Sequence[Claim]]
    findings: Callable[[Data, bool], Sequence[Finding]]
    caption: Callable[[Data], str]
    from_paper: str
    chosen: str
    changes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def compute(
        self,
        quick: bool = False,
        store: Store | None = None,
        *,
        workers: int = -1,
        progress: ProgressOption = None,
    ) -> Data:
        """The data of the figure; points that the store has are not computed again.

        Arguments:
            quick: coarser grids and fewer seeds.
            store: where points are kept; default: in memory, for this call.
            workers: processes at once; -1: as many as there are cores; 0: all work is done here.
            progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        """
        tasks, keeper = self.tasks(quick), store if store is not None else Memory()
        failures = complete(list(tasks.values()), keeper, workers=workers, progress=progress)
        if failures:
            raise SelfTrainError(f"{self.id}: {failures[0]}")
        return {part: task.load(keeper) for part, task in tasks.items()}

    def plot(self, quick: bool = False, store: Store | None = None, **options: Any) -> Drawing:
        """Compute the figure, as `compute` does, and draw it."""
        return self.draw(self.compute(quick, store, **options))


def fixed(data: xr.Dataset, name: str) -> Any:
    """The value of a parameter that is the same at all points of a dataset."""
    return json.loads(data.attrs["fixed"])[name]


class _CalledPaper(ModuleType):
    """A module that can be called like the function it stands for."""

    def __call__(self, name: str, **changes: Any) -> Figure:
        from .registry import figure

        return figure(name, **changes)


sys.modules[__name__].__class__ = _CalledPaper
