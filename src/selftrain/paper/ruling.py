"""How a verdict comes about: measured numbers, each on the right side of its bar or not, and what
the verdict would be at other bars.

A `Criterion` is a number with the range it is known to lie in, and the `Bar` it must be below or
above; an order or a sign has no bar. A `Ruling` is a set of criteria that must all be met, and who
may decide: a quick version has only some of the cases. Bars are deviations (0.01 for "a ratio below
1.01"), so that twice and half of one make sense; `Ruling.sensitivity` judges again at both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot tell"
VERDICTS = (HOLDS, FAILS, OPEN)
"""What a verdict can be. A quick version says `OPEN` where the full run could say something
else.
"""

NO_BAR = "no bar"


def verdict_of(holds: bool | None) -> str:
    """The verdict in words."""
    return {True: HOLDS, False: FAILS, None: OPEN}[holds]


@dataclass(frozen=True)
class Bar:
    """A number that decides.

    Attributes:
        size: how large; a deviation, a rate or a share, positive.
        why: the reason for this size.
    """

    size: float
    why: str


@dataclass(frozen=True)
class Criterion:
    """A measured number and where it must lie.

    Attributes:
        what: what was measured.
        value: the number.
        low, high: the range it is known to lie in; both are `value` where it is exact.
        bar: what it is compared with; None for zero, a sign or an order.
        is_above: it must lie above the bar; False: below.
    """

    what: str
    value: float
    low: float
    high: float
    bar: Bar | None
    is_above: bool

    def met(self, factor: float = 1.0) -> bool | None:
        """Whether it lies where it must if the bar were so many times as high; None if its range
        has the bar inside, or it is missing.
        """
        level = 0.0 if self.bar is None else factor * self.bar.size
        if math.isnan(self.low) or math.isnan(self.high):
            return None
        if self.is_above:
            return True if self.low > level else None if self.high > level else False
        return True if self.high < level else None if self.low < level else False

    def to_dict(self) -> dict[str, Any]:
        """For a record; what is not finite is None, because JSON does not know it."""
        return {
            "what": self.what,
            "value": _finite(self.value),
            "range": [_finite(self.low), _finite(self.high)],
            "side": "above" if self.is_above else "below",
            "bar": None if self.bar is None else self.bar.size,
            "why": "a sign or an order" if self.bar is None else self.bar.why,
        }


def below(what: str, value: Any, bar: Bar, low: Any = None, high: Any = None) -> Criterion:
    """A number that must be below a bar.

    >>> below("excess", 0.02, Bar(0.05, "5 % are visible")).met()
    True
    >>> below("excess", 0.02, Bar(0.05, "5 % are visible"), 0.0, 0.07).met() is None
    True
    """
    return _criterion(what, value, bar, False, low, high)


def above(what: str, value: Any, bar: Bar, low: Any = None, high: Any = None) -> Criterion:
    """A number that must be above a bar.

    >>> above("gain", 0.02, Bar(0.05, "5 % are visible")).met()
    False
    """
    return _criterion(what, value, bar, True, low, high)


def positive(what: str, value: Any) -> Criterion:
    """A number that must be above zero: a sign or an order, without a bar.

    >>> positive("smallest increase", 0.5).met(2.0)
    True
    """
    return _criterion(what, value, None, True, None, None)


def _criterion(
    what: str, value: Any, bar: Bar | None, is_above: bool, low: Any, high: Any
) -> Criterion:
    number = float(value)
    return Criterion(
        what,
        number,
        number if low is None else float(low),
        number if high is None else float(high),
        bar,
        is_above,
    )


class Sensitivity(NamedTuple):
    """What a verdict would be at twice and at half of one of its bars."""

    bar: Bar
    twice: bool | None
    half: bool | None


Rule = Callable[[bool | None, bool], bool | None]
"""What may be said, from whether the criteria are met and whether the version is the full one."""


@dataclass(frozen=True)
class Ruling:
    """Criteria that must all be met, and what the version may say of them."""

    criteria: tuple[Criterion, ...]
    rule: Rule
    full: bool

    @property
    def holds(self) -> bool | None:
        """The verdict; None if these data cannot tell."""
        return self._judged(None, 1.0)

    @property
    def sensitivity(self) -> tuple[Sensitivity, ...]:
        """The verdict at twice and at half of each bar, the others as they are."""
        bars = dict.fromkeys(one.bar for one in self.criteria if one.bar is not None)
        return tuple(
            Sensitivity(bar, self._judged(bar, 2.0), self._judged(bar, 0.5)) for bar in bars
        )

    @property
    def flips(self) -> str:
        """In words: which verdict another bar would lead to; "no" if none, "no bar" without one.

        >>> few = Bar(0.05, "5 % are visible")
        >>> decided(below("excess", 0.02, few)).flips
        'no'
        >>> decided(below("excess", 0.03, few)).flips
        'half of 0.05: does not hold'
        >>> decided(positive("growth", 0.03)).flips
        'no bar'
        """
        if not self.sensitivity:
            return NO_BAR
        other = [
            f"{words} of {one.bar.size:g}: {verdict_of(holds)}"
            for one in self.sensitivity
            for words, holds in (("twice", one.twice), ("half", one.half))
            if holds is not self.holds
        ]
        return "; ".join(other) or "no"

    def to_dict(self) -> dict[str, Any]:
        return {
            "criteria": [one.to_dict() for one in self.criteria],
            "sensitivity": [
                {
                    "bar": one.bar.size,
                    "twice": verdict_of(one.twice),
                    "half": verdict_of(one.half),
                }
                for one in self.sensitivity
            ],
            "flips": self.flips,
        }

    def _judged(self, changed: Bar | None, factor: float) -> bool | None:
        met = [one.met(factor if one.bar == changed else 1.0) for one in self.criteria]
        together = False if False in met else None if None in met else True
        return self.rule(together, self.full)


def everywhere(full: bool, *criteria: Criterion) -> Ruling:
    """On a statement about every case: some of the cases can refute it, not prove it.

    >>> good, bad = positive("x", 1.0), positive("x", -1.0)
    >>> everywhere(False, good).holds, everywhere(False, bad).holds, everywhere(True, good).holds
    (None, False, True)
    """
    return Ruling(criteria, _refuted_by_some, full)


def somewhere(full: bool, *criteria: Criterion) -> Ruling:
    """On a statement about some case: some of the cases can prove it, not refute it.

    >>> good, bad = positive("x", 1.0), positive("x", -1.0)
    >>> somewhere(False, good).holds, somewhere(False, bad).holds, somewhere(True, bad).holds
    (True, None, False)
    """
    return Ruling(criteria, _proved_by_some, full)


def at_full_size(full: bool, *criteria: Criterion) -> Ruling:
    """On a statement that only the long runs, or the many seeds, of the full version decide."""
    return Ruling(criteria, _full_only, full)


def decided(*criteria: Criterion) -> Ruling:
    """On a statement of which both versions have all cases."""
    return Ruling(criteria, _as_it_is, True)


def _refuted_by_some(holds: bool | None, full: bool) -> bool | None:
    return holds if full or holds is False else None


def _proved_by_some(holds: bool | None, full: bool) -> bool | None:
    return holds if full or holds is True else None


def _full_only(holds: bool | None, full: bool) -> bool | None:
    return holds if full else None


def _as_it_is(holds: bool | None, full: bool) -> bool | None:
    return holds


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
