r"""What a visitor can set: the controls of the page, made from the table of parameters.

A control has limits of its own, narrower than those of `Problem` and `Recipe`: within them every
answer comes fast enough to follow a slider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput
from ..parameters import PARAMETERS, Parameter

__all__ = [
    "CHOICES",
    "CONTROLS",
    "ENTRIES",
    "START",
    "SWITCHES",
    "Choice",
    "Control",
    "Entry",
    "Switch",
    "read_number",
]

START: dict[str, Any] = {
    "rho": 0.2, "alpha_l": 0.5, "alpha_u": 2.0, "delta": 0.5625, "steps": 16, "lambda_l": 0.1,
    "lambda_u": 0.00372, "annealing": 0.0223, "fix_bias": True,
}  # fmt: skip
"""Where a first visit begins, as far as it differs from the defaults: the headline."""

SHIFT = ("rho_u", "delta_u")
"""Parameters of batches that differ from the labelled samples."""


@dataclass(frozen=True)
class Member:
    """Something that can be set; `group` is "problem", "shift" or "recipe"."""

    name: str
    group: str
    label: str


@dataclass(frozen=True)
class Control(Member):
    """A number with a slider and a field to type in.

    Attributes:
        symbol, help: what a visitor reads.
        low, high: limits, both allowed.
        scale: "linear", "log", or "whole" for whole numbers.
        zero: whether 0 is allowed on a logarithmic scale, at the left end of the slider.
        infinite: whether `inf` is allowed, at the right end of the slider.
        schedule: whether a list of numbers, one per step, may be typed.
    """

    symbol: str
    help: str
    low: float
    high: float
    default: float | None
    scale: str
    zero: bool
    infinite: bool
    schedule: bool

    @property
    def accepted(self) -> str:
        """What may be typed, in words."""
        kind = "a whole number" if self.scale == "whole" else "a number"
        words = f"must be {kind} from {self.low:g} to {self.high:g}"
        words += ", or 0" if self.zero else ""
        words += ", or inf" if self.infinite else ""
        words += ", or empty" if self.default is None else ""
        return words + ("; several with commas, one per step" if self.schedule else "")

    def check(self, value: float) -> float:
        """Return the value, if it is within the limits."""
        inside = self.low <= value <= self.high
        inside = inside or (self.zero and value == 0) or (self.infinite and value == math.inf)
        if not inside or (self.scale == "whole" and value % 1):
            raise InvalidInput(self.name, value, self.accepted)
        return value


@dataclass(frozen=True)
class Switch(Member):
    """A yes or no."""

    help: str
    default: bool = False


@dataclass(frozen=True)
class Choice(Member):
    """One of several names."""

    options: tuple[str, ...]
    default: str


@dataclass(frozen=True)
class Entry(Member):
    """A text without a slider."""

    help: str
    default: str = ""


def _control(one: Parameter) -> Control:
    assert one.page is not None
    default = START.get(one.name, one.default)
    return Control(
        one.name,
        "shift" if one.name in SHIFT else one.home,
        one.label,
        one.plain_symbol,
        _sentence(one),
        *one.page,
        default,
        one.scale,
        zero=one.scale == "log" and one.default == 0,
        infinite=one.range is not None and one.range.accepts(math.inf),
        schedule=one.per_step,
    )


def _sentence(one: Parameter) -> str:
    """Return the sentence of a parameter without the words of its label, which stands above it."""
    words = one.sentence
    if words.lower().startswith(one.label.lower()):
        words = words[len(one.label) :].lstrip(";, ")
    return f"{words[0].upper()}{words[1:]}." if words else ""


_FIX_BIAS, _LOSS = PARAMETERS["fix_bias"], PARAMETERS["loss"]
CONTROLS = tuple(_control(one) for one in PARAMETERS.values() if one.page is not None)
SWITCHES = (Switch("fix_bias", "recipe", _FIX_BIAS.label, _sentence(_FIX_BIAS), START["fix_bias"]),)
CHOICES = (Choice("loss", "problem", _LOSS.label, _LOSS.choices, _LOSS.default),)
ENTRIES = (
    Entry(
        "shape",
        "problem",
        "Covariance of the clusters",
        "Empty: spherical, with noise Δ. Otherwise mean:variance of each direction, as in"
        " 1:0.5, 0.3:2 (“Your data” fills it in); Δ is not used then.",
    ),
)
MOST_STEPS = int(PARAMETERS["steps"].page[1])  # type: ignore[index]
"""Longest run of the page: a slider must answer within a quarter of a second."""

LONGEST_TEXT = 8000
"""Characters of a typed schedule or of an address that are read at all."""


def read_number(control: Control, text: Any) -> float | list[float] | None:
    """Read what was typed into a control: a number, a schedule, or None if it is empty.

    >>> rho = next(control for control in CONTROLS if control.name == "rho")
    >>> read_number(rho, " 0.25 ")
    0.25
    """
    words = str("" if text is None else text).strip()
    if not words:
        if control.default is None:
            return None
        raise InvalidInput(control.name, "", control.accepted)
    if len(words) > LONGEST_TEXT:
        raise InvalidInput(control.name, words, f"must have at most {LONGEST_TEXT} characters")
    parts = [part.strip() for part in words.split(",")]
    if len(parts) > 1 and not control.schedule:
        raise InvalidInput(control.name, words, control.accepted)
    values = [control.check(_float(control, part)) for part in parts]
    return values[0] if len(values) == 1 else values


def _float(control: Control, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InvalidInput(control.name, text, control.accepted)
    return value
