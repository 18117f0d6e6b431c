"""The controls of the page, made from the table of parameters.

Their limits are narrower than those of `Problem` and `Recipe`, so that every answer is fast enough
to follow a slider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput, nearest
from ..parameters import PARAMETERS, Parameter
from .cluster_texts import read_classes, read_shape

START: dict[str, Any] = {
    "rho": 0.2, "alpha_l": 0.5, "alpha_u": 2.0, "delta": 0.5625, "steps": 16, "lambda_l": 0.1,
    "lambda_u": 0.00372, "annealing": 0.0223, "fix_bias": True,
}  # fmt: skip
"""Values on a first visit that differ from the defaults: those of the preset "headline"."""

MOST_STEPS = int(PARAMETERS["steps"].page[1])  # type: ignore[index]
"""Longest run of the page: a slider must answer within a quarter of a second."""

LONGEST_TEXT = 8000
"""Largest number of characters of a text that is read; an address may have twice as many."""

SHIFT = ("rho_u", "delta_u")
"""Parameters of unlabelled samples whose distribution differs from that of the labelled ones."""


@dataclass(frozen=True)
class Control:
    """An input of the page: a number with a slider, a switch, a choice of names, or a text.

    Attributes:
        name: name of the parameter.
        group: "problem", "shift" or "recipe".
        kind: "number", "switch", "choice" or "text".
        label, symbol, help: texts of the page.
        start: its value on a first visit, as text; "yes" or "" for a switch.
        options: names to choose from.
        low, high: limits of a number, both allowed.
        scale: of a slider: "linear", "log", or "whole" for whole numbers.
        zero: whether 0 is allowed on a logarithmic scale, at the left end of the slider.
        infinite: whether `inf` is allowed, at the right end of the slider.
        schedule: whether a list of numbers, one per step, may be typed.
        optional: whether a number may be left empty.
    """

    name: str
    group: str
    kind: str
    label: str
    symbol: str = ""
    help: str = ""
    start: str = ""
    options: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    scale: str = "linear"
    zero: bool = False
    infinite: bool = False
    schedule: bool = False
    optional: bool = False

    @property
    def accepted(self) -> str:
        """Description of the accepted values, for error messages."""
        kind = "a whole number" if self.scale == "whole" else "a number"
        words = f"must be {kind} from {self.low:g} to {self.high:g}"
        words += ", or 0" if self.zero else ""
        words += ", or inf" if self.infinite else ""
        words += ", or empty" if self.optional else ""
        return words + ("; several with commas, one per step" if self.schedule else "")

    def read(self, text: str) -> Any:
        """Return the value of a text, validated; None if it is empty.

        >>> CONTROLS["rho"].read(" 0.25 "), CONTROLS["rho_u"].read("")
        (0.25, None)
        """
        if len(text) > LONGEST_TEXT:
            raise InvalidInput(self.name, text, f"must have at most {LONGEST_TEXT} characters")
        if self.kind == "switch":
            return text == "yes"
        if self.kind == "choice":
            if text not in self.options:
                raise InvalidInput(self.name, text, nearest(text, self.options))
            return text
        if self.kind == "text":
            return TEXTS[self.name](text)
        return self._read_numbers(text.strip())

    def _read_numbers(self, text: str) -> float | list[float] | None:
        if not text and self.optional:
            return None
        parts = text.split(",")
        if len(parts) > 1 and not self.schedule:
            raise InvalidInput(self.name, text, self.accepted)
        values = [self._read_number(part.strip()) for part in parts]
        return values[0] if len(values) == 1 else values

    def _read_number(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise InvalidInput(self.name, text, self.accepted) from None
        return self.check(value)

    def check(self, value: float) -> float:
        """Return the value; raise if it is outside of the limits."""
        inside = self.low <= value <= self.high
        inside = inside or (self.zero and value == 0) or (self.infinite and value == math.inf)
        if not inside or (self.scale == "whole" and value % 1):
            raise InvalidInput(self.name, value, self.accepted)
        return value


TEXTS = {"shape": read_shape, "classes": read_classes}
"""Functions that read the controls of kind "text"."""


def _number(one: Parameter) -> Control:
    assert one.page is not None
    start = START.get(one.name, one.default)
    return Control(
        one.name,
        "shift" if one.name in SHIFT else one.home,
        "number",
        one.label,
        one.plain_symbol,
        _sentence(one),
        "" if start is None else f"{start:g}",
        low=one.page[0],
        high=one.page[1],
        scale=one.scale,
        zero=one.scale == "log" and one.default == 0,
        infinite=one.range is not None and one.range.accepts(math.inf),
        schedule=one.per_step,
        optional=start is None,
    )


def _sentence(one: Parameter) -> str:
    """Return the description of a parameter without the words of its label, shown above it."""
    words = one.sentence
    if words.lower().startswith(one.label.lower()):
        words = words[len(one.label) :].lstrip(";, ")
    return f"{words[0].upper()}{words[1:]}." if words else ""


_FIX_BIAS, _LOSS = PARAMETERS["fix_bias"], PARAMETERS["loss"]

NUMBERS = {one.name: _number(one) for one in PARAMETERS.values() if one.page is not None}
CONTROLS = NUMBERS | {
    one.name: one
    for one in (
        Control(
            "fix_bias", "recipe", "switch", _FIX_BIAS.label, help=_sentence(_FIX_BIAS), start="yes"
        ),
        Control(
            "classes",
            "problem",
            "text",
            "Three classes",
            help="Empty: two classes, with ρ. Otherwise the proportions of three, as in"
            " 0.5, 0.3, 0.2: spheres of noise Δ, their centres a distance of 2 apart.",
        ),
        Control(
            "shape",
            "problem",
            "text",
            "Covariance of the clusters",
            help="Empty: spherical, with noise Δ. Otherwise mean:variance of each direction, as in"
            " 1:0.5, 0.3:2 (“Your data” fills it in); Δ is not used then.",
        ),
        Control(
            "loss", "problem", "choice", _LOSS.label, start=_LOSS.default, options=_LOSS.choices
        ),
    )
}
"""All controls by name, in the order of the page."""
