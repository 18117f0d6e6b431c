"""Verdicts on claims, from measured numbers and thresholds ("bars").

A `Criterion` is a number with the range in which it is known to lie, and the `Bar` that it must be
below or above; a sign or an order has no bar. `Judged` is a claim with the criteria that must all
be met. Bars are deviations (0.01 for "a ratio below 1.01"), so that they can be doubled and halved:
`Judged.sensitivity` is the verdict at both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot tell"
"""The verdicts. A quick version gives `OPEN` wherever the full version could differ."""

NO_BAR = "no bar"


def verdict_of(holds: bool | None) -> str:
    """Return the verdict in words."""
    return {True: HOLDS, False: FAILS, None: OPEN}[holds]


class Bar(NamedTuple):
    """A threshold (a positive deviation, rate or proportion), and the reason for its value."""

    size: float
    why: str


@dataclass(frozen=True)
class Criterion:
    """A measured number that must be above or below a threshold.

    Attributes:
        what: description of the number.
        value: the number.
        low, high: the range in which it is known to lie; both are `value` if it is exact.
        bar: the threshold; None: zero (for a sign or an order).
        is_above: whether it must be above the threshold, or below.
    """

    what: str
    value: float
    low: float
    high: float
    bar: Bar | None
    is_above: bool

    def met(self, factor: float = 1.0) -> bool | None:
        """Return whether the criterion is met with the bar multiplied by `factor`; None if the
        range of the number contains the bar, or the number is missing.
        """
        level = 0.0 if self.bar is None else factor * self.bar.size
        if math.isnan(self.low) or math.isnan(self.high):
            return None
        if self.is_above:
            return True if self.low > level else None if self.high > level else False
        return True if self.high < level else None if self.low < level else False

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON; numbers that are not finite are None."""
        value, low, high = (
            number if math.isfinite(number) else None
            for number in (self.value, self.low, self.high)
        )
        return {
            "what": self.what,
            "value": value,
            "range": [low, high],
            "side": "above" if self.is_above else "below",
            "bar": None if self.bar is None else self.bar.size,
            "why": "a sign or an order" if self.bar is None else self.bar.why,
        }


def below(what: str, value: Any, bar: Bar, low: Any = None, high: Any = None) -> Criterion:
    """Require a number below a bar.

    >>> below("excess", 0.02, Bar(0.05, "5 % are visible")).met()
    True
    >>> below("excess", 0.02, Bar(0.05, "5 % are visible"), 0.0, 0.07).met() is None
    True
    """
    return _criterion(what, value, bar, False, low, high)


def above(what: str, value: Any, bar: Bar, low: Any = None, high: Any = None) -> Criterion:
    """Require a number above a bar.

    >>> above("gain", 0.02, Bar(0.05, "5 % are visible")).met()
    False
    """
    return _criterion(what, value, bar, True, low, high)


def positive(what: str, value: Any) -> Criterion:
    """Require a number above zero (a sign or an order, without a bar).

    >>> positive("smallest increase", 0.5).met(2.0)
    True
    """
    return _criterion(what, value, None, True)


def _criterion(
    what: str, value: Any, bar: Bar | None, is_above: bool, low: Any = None, high: Any = None
) -> Criterion:
    least, most = (float(value if end is None else end) for end in (low, high))
    return Criterion(what, float(value), least, most, bar, is_above)


class Sensitivity(NamedTuple):
    """The verdict at twice and at half of one bar."""

    bar: Bar
    twice: bool | None
    half: bool | None


Rule = Callable[[bool | None], bool | None]
"""A function from whether the criteria are met to the verdict of a quick version."""


@dataclass(frozen=True)
class Judged:
    """A claim of the paper, or a finding of ours: criteria that must all be met, and the verdict.

    Attributes:
        key: its key in the file of the paper.
        found: the result, in words and numbers.
        quick_rule: what a quick version may conclude from the criteria.
        full: whether the data are those of the full version.
        case: the case, if one claim is judged in several cases.
        values: values for placeholders of its texts that are not constants of the figure's module.
        texts: `quote` and `test` of a claim of the paper, `says` of a finding of ours.
    """

    key: str
    found: str
    criteria: tuple[Criterion, ...]
    quick_rule: Rule
    case: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    full: bool = True
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds; None if these data cannot decide."""
        return self._with(None, 1.0)

    @property
    def sensitivity(self) -> tuple[Sensitivity, ...]:
        """The verdict at twice and at half of each bar, the others unchanged."""
        bars = dict.fromkeys(one.bar for one in self.criteria if one.bar is not None)
        return tuple(Sensitivity(bar, self._with(bar, 2.0), self._with(bar, 0.5)) for bar in bars)

    @property
    def flips(self) -> str:
        """Verdicts that change if a bar is doubled or halved, as text; "no" if none changes, "no
        bar" if there is no bar.

        >>> few = Bar(0.05, "5 % are visible")
        >>> decided("key", "", below("excess", 0.02, few)).flips
        'no'
        >>> decided("key", "", below("excess", 0.03, few)).flips
        'half of 0.05: does not hold'
        >>> decided("key", "", positive("growth", 0.03)).flips
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
        """Return a dictionary for JSON."""
        return {
            **self.texts,
            **({"case": self.case} if "quote" in self.texts else {}),
            "verdict": verdict_of(self.holds),
            "found": self.found,
            "criteria": [one.to_dict() for one in self.criteria],
            "sensitivity": [
                {"bar": bar.size, "twice": verdict_of(twice), "half": verdict_of(half)}
                for bar, twice, half in self.sensitivity
            ],
            "flips": self.flips,
        }

    def _with(self, changed: Bar | None, factor: float) -> bool | None:
        """Return the verdict with one bar multiplied by a factor."""
        met = [one.met(factor if one.bar == changed else 1.0) for one in self.criteria]
        together = False if False in met else None if None in met else True
        return together if self.full else self.quick_rule(together)


def everywhere(key: str, found: str, *criteria: Criterion, **about: Any) -> Judged:
    """Judge a claim about all cases: a quick version (some cases) can refute but not prove it.

    Arguments:
        key, found, criteria, about: fields of `Judged`.

    >>> from dataclasses import replace
    >>> good, bad = (everywhere("key", "", positive("x", value)) for value in (1.0, -1.0))
    >>> replace(good, full=False).holds, replace(bad, full=False).holds, good.holds
    (None, False, True)
    """
    return Judged(key, found, criteria, lambda holds: False if holds is False else None, **about)


def somewhere(key: str, found: str, *criteria: Criterion, **about: Any) -> Judged:
    """Judge a claim about at least one case: a quick version can prove but not refute it.

    >>> from dataclasses import replace
    >>> good, bad = (somewhere("key", "", positive("x", value)) for value in (1.0, -1.0))
    >>> replace(good, full=False).holds, replace(bad, full=False).holds, bad.holds
    (True, None, False)
    """
    return Judged(key, found, criteria, lambda holds: True if holds else None, **about)


def at_full_size(key: str, found: str, *criteria: Criterion, **about: Any) -> Judged:
    """Judge a claim that only the long runs or many seeds of the full version can decide."""
    return Judged(key, found, criteria, lambda holds: None, **about)


def decided(key: str, found: str, *criteria: Criterion, **about: Any) -> Judged:
    """Judge a claim that the quick version decides too, because it has all cases."""
    return Judged(key, found, criteria, lambda holds: holds, **about)
