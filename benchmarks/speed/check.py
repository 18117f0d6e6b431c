"""Comparison of a new record of the benchmarks with an older one: what became slower by more than
its noise.

Times are divided by the yardstick of their record (see `record`), so that the speed of the machine
does not matter. Figures that are neither better nor worse if they change (an exponent, an accuracy
without a target) are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .record import Record, drift, yardsticks

TIMES = ("s", "ms")
SIZES = ("GB", "MB")


@dataclass(frozen=True)
class Change:
    """The change of a figure.

    Attributes:
        part: the part of the benchmarks.
        what: name of the figure.
        old, new: its values, in `unit`.
        factor: the factor by which it became worse, corrected for the speed of the machines.
        noise: largest relative change that the noise of both records explains.
    """

    part: str
    what: str
    old: float
    new: float
    unit: str
    factor: float
    noise: float

    @property
    def slower(self) -> bool:
        return self.factor > 1 + self.noise

    def __str__(self) -> str:
        """
        >>> print(Change("theory", "1024 steps", 7.5, 9.0, "ms", 1.2, 0.15))
        theory, 1024 steps: 7.5 ms before, 9 ms now, 1.20 times worse (noise 15 %)
        """
        return (
            f"{self.part}, {self.what}: {self.old:.4g} {self.unit} before, {self.new:.4g}"
            f" {self.unit} now, {self.factor:.2f} times worse (noise {100 * self.noise:.0f} %)"
        )


def changes(old: Record, new: Record) -> list[Change]:
    """Return the change of every figure that both records have and that can be better or worse."""
    speed = min(yardsticks(new)) / min(yardsticks(old))
    least = drift(old) + drift(new)
    found = []
    for part, before, after in _pairs(old, new):
        factor = _worse(before, after, speed)
        if factor is not None:
            own = (before["noise"] or 0.0) + (after["noise"] or 0.0)
            found.append(
                Change(
                    part,
                    before["what"],
                    before["figure"],
                    after["figure"],
                    before["unit"],
                    factor,
                    max(own, least),
                )
            )
    return found


def missing(old: Record, new: Record) -> list[str]:
    """Return the figures of newly measured parts that only the old record has."""
    return [
        f"{part}, {line['what']}"
        for part, found in new["parts"].items()
        for line in old["parts"].get(part, {"lines": []})["lines"]
        if line["what"] not in {other["what"] for other in found["lines"]}
    ]


def _pairs(old: Record, new: Record) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for part, found in new["parts"].items():
        before = {line["what"]: line for line in old["parts"].get(part, {"lines": []})["lines"]}
        for line in found["lines"]:
            if line["what"] in before:
                yield part, before[line["what"]], line


def _worse(old: Mapping[str, Any], new: Mapping[str, Any], speed: float) -> float | None:
    """Return the factor by which the new figure is worse; None if they cannot be compared."""
    values = old["figure"], new["figure"]
    if not all(isinstance(value, (int, float)) and value > 0 for value in values):
        return None
    ratio = new["figure"] / old["figure"]
    if old["unit"] in TIMES:
        return float(ratio / speed)
    if old["unit"] in SIZES:
        return float(ratio)
    if old["unit"] == "x" and old["target"] is not None:
        return float(1 / ratio if old["at_least"] else ratio)
    return None
