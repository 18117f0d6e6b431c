"""The class of a figure: what it computes, how it is drawn, how its claims are judged.

A figure belongs to a paper (`papers`), whose file has its texts. Its module in `figures` has three
functions: `tasks(quick)` returns the computations, `draw(data)` draws the figure, and `judge(data)`
judges the claims. Optional: `caption_values(data)`, values for the caption; `JUDGED_ONLY`, names of
tasks that are not drawn; `PANELS`, the panels of tasks that do not have all parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SelfTrainError
from ..parameters import PARAMETERS
from ..runtime.progress import ProgressOption
from ..sweeps import Store, Task, complete
from ..sweeps.store import Memory
from . import setting
from .papers import filled
from .ruling import Judged
from .variation import NOT_JUDGED, changed_tasks, described, not_changed, unchanged

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing
    from matplotlib.lines import Line2D

Data = Mapping[str, "xr.Dataset"]
"""The datasets of a figure by name, one for each of its tasks."""

Tasks = Mapping[str, Task]
"""The computations of a figure with their grids, by name."""

Claims = Iterator[Judged]
"""The judged claims of the paper about a figure, and our findings."""

Drawn = tuple["Drawing", Sequence["Line2D"]]
"""A drawing and the entries of its legend."""


class Place(NamedTuple):
    """The place of a figure in the paper.

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
    """A figure of a paper, or one of ours next to it.

    Attributes:
        id: its name on the command line.
        paper: the id of the paper it belongs to.
        module: the name of its module.
        texts: its table in the file of the paper.
        changes: parameters with other values than in the paper; claims are then not judged.
    """

    id: str
    paper: str
    module: str
    texts: Mapping[str, Any]
    changes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title."""
        return self._text(self.texts["title"])

    @property
    def place(self) -> Place:
        """Its place in the paper."""
        entries = (self.texts.get(name) for name in ("section", "number", "label"))
        section, number, label = entries
        return Place(self._text(section or ""), number, label or "")

    @property
    def from_paper(self) -> str:
        """Parameters that the paper fixes."""
        return self._text(self.texts["from_paper"])

    @property
    def chosen(self) -> str:
        """Parameters that the paper leaves open, and their values here."""
        text = self._text(self.texts["chosen"])
        if not self.changes:
            return text
        said = f"Changed here: {described(self.changes)}. {not_changed(self.unchanged)}"
        return f"{text} {said.rstrip()} {NOT_JUDGED}"

    @property
    def unchanged(self) -> dict[str, tuple[str, ...]]:
        """The panels that the changes leave as they are, by parameter."""
        panels = getattr(self._own, "PANELS", {})
        return unchanged(self.drawn_tasks(False), self.changes, panels)

    def caption(self, data: Data) -> str:
        """Return the caption, which explains symbols and markers."""
        own = getattr(self._own, "caption_values", None)
        return self._text(self.texts["caption"], own(data) if own else {})

    def tasks(self, quick: bool) -> Tasks:
        """Return the tasks to compute, by name; `quick`: coarser grids and fewer seeds."""
        if self.changes:
            return changed_tasks(self.drawn_tasks(quick), self.changes)
        tasks: Tasks = self._own.tasks(quick)
        return tasks

    def drawn_tasks(self, quick: bool) -> Tasks:
        """Return the tasks that are drawn, with the parameters of the paper."""
        judged_only = getattr(self._own, "JUDGED_ONLY", ())
        tasks: Tasks = self._own.tasks(quick)
        return {part: task for part, task in tasks.items() if part not in judged_only}

    def draw(self, data: Data) -> Drawing:
        """Draw the figure from its data."""
        from ..plots.paper_figures import finished

        note = not_changed(self.unchanged)
        for name in self.unchanged:
            symbol = f"${PARAMETERS[name].symbol}$" if name in PARAMETERS else name
            note = note.replace(f"`{name}`", symbol)
        return finished(self._own.draw, data, note)

    def claims(self, data: Data, full: bool) -> list[Judged]:
        """Judge the claims of the paper about the figure.

        `full`: the data are those of the full version, not of the quick one.
        """
        return self._judged("claims", data, full)

    def findings(self, data: Data, full: bool) -> list[Judged]:
        """Judge our own findings about the figure; arguments as for `claims`."""
        return self._judged("findings", data, full)

    def compute(
        self,
        quick: bool = False,
        store: Store | None = None,
        *,
        workers: int = -1,
        progress: ProgressOption = None,
    ) -> Data:
        """Compute the data of the figure; points in the store are not computed again.

        Arguments:
            quick: coarser grids and fewer seeds.
            store: where points are stored; default: in memory, for this call.
            workers: number of processes; -1: one per core; 0: this process.
            progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        """
        tasks, target = self.tasks(quick), store if store is not None else Memory()
        failures = complete(list(tasks.values()), target, workers=workers, progress=progress)
        if failures:
            raise SelfTrainError(f"{self.id}: {failures[0]}")
        return {part: task.load(target) for part, task in tasks.items()}

    def plot(self, quick: bool = False, store: Store | None = None, **options: Any) -> Drawing:
        """Compute the figure, as `compute` does, and draw it."""
        return self.draw(self.compute(quick, store, **options))

    @property
    def _own(self) -> Any:
        """The module of the figure."""
        return import_module(self.module)

    def _text(self, text: str, values: Mapping[str, Any] | None = None) -> str:
        return filled(text, vars(setting) | vars(self._own) | dict(values or {}))

    def _judged(self, kind: str, data: Data, full: bool) -> list[Judged]:
        if self.changes:
            return []
        known: Mapping[str, Mapping[str, str]] = self.texts.get(kind, {})
        judged: Claims = self._own.judge(data)
        return [
            replace(
                one,
                full=full,
                texts={name: self._text(text, one.values) for name, text in known[one.key].items()},
            )
            for one in judged
            if one.key in known
        ]


def fixed(data: xr.Dataset, name: str) -> Any:
    """Return the value of a parameter that is the same at all points of a dataset."""
    return json.loads(data.attrs["fixed"])[name]
