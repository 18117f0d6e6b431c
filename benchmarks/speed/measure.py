"""A measured line of a benchmark, functions that measure time, and the table of lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Line:
    """A measured figure and its target.

    Attributes:
        what: what was measured.
        figure: the number.
        unit: of the number ("x" for a ratio).
        target: the bound, None if the figure is for information.
        at_least: whether the target is a lower bound.
        note: how it was measured.
    """

    what: str
    figure: float
    unit: str
    target: float | None = None
    at_least: bool = True
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the figure meets its target."""
        if self.target is None:
            return None
        return self.figure >= self.target if self.at_least else self.figure <= self.target

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**asdict(self), "met": self.met}


def seconds(action: Callable[[], Any], repeat: int = 1, wall: bool = False) -> float:
    """Return the shortest time of `repeat` calls: processor time of this process, or, with `wall`,
    wall-clock time.
    """
    clock = time.perf_counter if wall else time.process_time
    best = float("inf")
    for _ in range(repeat):
        begin = clock()
        action()
        best = min(best, clock() - begin)
    return best


def timed(
    action: Callable[[], Result], wall: bool = False, repeat: int = 1
) -> tuple[float, Result]:
    """Return the shortest time of `repeat` calls in seconds, and the first result."""
    found: list[Result] = []
    taken = seconds(lambda: found.append(action()), repeat, wall)
    return taken, found[0]


def show(lines: Iterator[Line]) -> list[Line]:
    """Print lines as they come, as a table, and return them."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    collected = []
    for line in lines:
        collected.append(line)
        console.print(f"[dim]{line.what}: {line.figure:.4g} {line.unit}[/dim]")
    table = Table("what", "measured", "asked", "", "how")
    marks = {None: "", True: "[green]met[/green]", False: "[red]missed[/red]"}
    for line in collected:
        bound = ""
        if line.target is not None:
            bound = f"{'>=' if line.at_least else '<='} {line.target:g} {line.unit}"
        table.add_row(
            line.what, f"{line.figure:.4g} {line.unit}", bound, marks[line.met], line.note
        )
    Console().print(table)
    return collected
