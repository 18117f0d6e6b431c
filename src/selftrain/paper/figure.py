"""What a figure is: a declared grid, a drawing, claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..sweep import Task

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

Data = Mapping[str, "xr.Dataset"]
"""The datasets of a figure by name, one for each of its tasks."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and what was found.

    Attributes:
        says: the statement, with the criterion by which it is judged.
        holds: whether it came out; None if these data cannot tell.
        found: what was found, in words and numbers.
        numbers: the numbers themselves, by name.
    """

    says: str
    holds: bool | None
    found: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "does not hold", None: "cannot tell"}[self.holds]

    def to_dict(self) -> dict[str, Any]:
        return {
            "says": self.says,
            "verdict": self.verdict,
            "found": self.found,
            "numbers": dict(self.numbers),
        }


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes:
        id: its name on the command line.
        title: what it shows.
        place: where it is in the paper.
        tasks: what to compute, by name; True asks for the quick version.
        draw: the drawing, from the data.
        claims: what it claims, judged by the data.
        caption: what stands under it: symbols, and what was chosen where the paper is open.
    """

    id: str
    title: str
    place: str
    tasks: Callable[[bool], Mapping[str, Task]]
    draw: Callable[[Data], Drawing]
    claims: Callable[[Data], Sequence[Claim]]
    caption: Callable[[Data], str]
