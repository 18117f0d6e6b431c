r"""What a visitor can set: one table for the page, the address, the checks and the snippets.

A control has limits of its own, narrower than those of `Problem` and `Recipe`: within them every
answer comes fast enough to follow a slider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput

__all__ = [
    "CHOICES",
    "CONTROLS",
    "ENTRIES",
    "SWITCHES",
    "Choice",
    "Control",
    "Entry",
    "Switch",
    "read_number",
]

MOST_STEPS = 256
"""Longest run of the page: a slider must answer within a quarter of a second."""


@dataclass(frozen=True)
class Control:
    """A number with a slider and a field to type in.

    Attributes:
        name: the field of `Problem` or `Recipe`.
        group: "problem", "shift" or "recipe".
        label, symbol, help: what a visitor reads.
        low, high: limits, both allowed.
        scale: "linear", "log", or "whole" for whole numbers.
        zero: whether 0 is allowed although the scale is logarithmic; it is the left end of the
            slider.
        infinite: whether `inf` is allowed; it is the right end of the slider.
        schedule: whether a list of numbers, one per step, may be typed.
    """

    name: str
    group: str
    label: str
    symbol: str
    help: str
    low: float
    high: float
    default: float | None
    scale: str = "linear"
    zero: bool = False
    infinite: bool = False
    schedule: bool = False

    @property
    def accepted(self) -> str:
        """What may be typed, in words."""
        kind = "a whole number" if self.scale == "whole" else "a number"
        words = f"{kind} from {self.low:g} to {self.high:g}"
        if self.zero:
            words += ", or 0"
        if self.infinite:
            words += ", or inf"
        if self.default is None:
            words += ", or nothing"
        if self.schedule:
            words += "; several with commas, one per step"
        return words + " is accepted"

    def check(self, value: float) -> float:
        """The value, if it is within the limits."""
        inside = self.low <= value <= self.high
        inside = inside or (self.zero and value == 0) or (self.infinite and value == math.inf)
        if not inside or (self.scale == "whole" and value % 1):
            raise InvalidInput(self.name, value, self.accepted)
        return value


@dataclass(frozen=True)
class Switch:
    """A yes or no."""

    name: str
    group: str
    label: str
    help: str
    default: bool = False


@dataclass(frozen=True)
class Choice:
    """One of several names."""

    name: str
    group: str
    label: str
    options: tuple[str, ...]
    default: str


@dataclass(frozen=True)
class Entry:
    """A text without a slider."""

    name: str
    group: str
    label: str
    help: str
    default: str = ""


CONTROLS = (
    Control(
        "alpha_l",
        "problem",
        "Labelled points per feature",
        "α_L",
        "0.5 is one labelled point for two features.",
        0.02,
        20.0,
        0.5,
        "log",
    ),
    Control(
        "alpha_u",
        "problem",
        "Unlabelled points per feature",
        "α_U",
        "Every step gets so many new ones.",
        0.1,
        50.0,
        2.0,
        "log",
        schedule=True,
    ),
    Control(
        "rho",
        "problem",
        "Share of the positive class",
        "ρ",
        "0.5 means balanced classes.",
        0.01,
        0.99,
        0.2,
    ),
    Control(
        "delta",
        "problem",
        "Variance of the noise",
        "Δ",
        "Larger: the two clusters overlap more.",
        0.05,
        5.0,
        0.5625,
        "log",
    ),
    Control(
        "steps",
        "problem",
        "Self-training steps",
        "T",
        "Each labels a batch and fits again.",
        0,
        MOST_STEPS,
        16,
        "whole",
    ),
    Control(
        "rho_u",
        "shift",
        "Share of the positive class",
        "ρ_U",
        "Empty: that of the labelled points.",
        0.01,
        0.99,
        None,
        schedule=True,
    ),
    Control(
        "delta_u",
        "shift",
        "Variance of the noise",
        "Δ_U",
        "Empty: that of the labelled points.",
        0.05,
        5.0,
        None,
        "log",
        schedule=True,
    ),
    Control(
        "lambda_l",
        "recipe",
        "Ridge of the labelled fit",
        "λ_L",
        "Penalty on the weights in step 0.",
        1e-6,
        10.0,
        0.1,
        "log",
    ),
    Control(
        "lambda_u",
        "recipe",
        "Ridge of the later steps",
        "λ_U",
        "Small: every step moves the model little.",
        1e-6,
        10.0,
        0.00372,
        "log",
        schedule=True,
    ),
    Control(
        "threshold",
        "recipe",
        "Selection threshold",
        "Γ",
        "Leaves out points with |logit| below Γ√q.",
        0.0,
        3.0,
        0.0,
        schedule=True,
    ),
    Control(
        "sharpness",
        "recipe",
        "Sharpness of pseudo-labels",
        "γ",
        "1: the model's probability; inf: hard labels.",
        0.1,
        100.0,
        1.0,
        "log",
        infinite=True,
        schedule=True,
    ),
    Control(
        "annealing",
        "recipe",
        "Annealing of pseudo-labels",
        "a",
        "Step t has the sharpness γ(1 + a t).",
        1e-3,
        10.0,
        0.0223,
        "log",
        zero=True,
        schedule=True,
    ),
)

SWITCHES = (
    Switch(
        "fix_bias",
        "recipe",
        "Keep the bias of step 0",
        "Helps when labels would run into one class.",
        True,
    ),
)

CHOICES = (Choice("loss", "problem", "Loss", ("logistic", "squared"), "logistic"),)

ENTRIES = (
    Entry(
        "shape",
        "problem",
        "Shape of the clusters",
        "Empty: a sphere with noise Δ. Otherwise mean:variance of each direction, as in"
        " 1:0.5, 0.3:2 (“Your data” fills it in); Δ is not used then.",
    ),
)

LONGEST_TEXT = 8000
"""Characters of a typed schedule or of an address that are read at all."""


def read_number(control: Control, text: Any) -> float | list[float] | None:
    """What was typed into a control: a number, a schedule, or None for nothing.

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
        raise InvalidInput(control.name, words, f"at most {LONGEST_TEXT} characters are read")
    parts = [part.strip() for part in words.split(",")]
    if len(parts) > 1 and not control.schedule:
        raise InvalidInput(control.name, words, control.accepted)
    values = [control.check(_float(control, part)) for part in parts]
    return values[0] if len(values) == 1 else values


def _float(control: Control, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(control.name, text, control.accepted) from None
    if math.isnan(value):
        raise InvalidInput(control.name, text, control.accepted)
    return value
