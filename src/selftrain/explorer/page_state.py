"""The whole state of a page, as plain values: what its address holds and every answer is made from.

A state has the texts of all controls, the view, the step that is shown, and the address of a pinned
run. Nothing of it is trusted: values are read by `controls`, and what is not known is left out and
named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ..errors import InvalidInput, nearest
from ..problem import Problem
from ..recipe import Recipe
from .controls import CHOICES, CONTROLS, ENTRIES, LONGEST_TEXT, SWITCHES, read_number
from .directions import read_shape

__all__ = ["VIEWS", "PageState"]

VIEWS = {
    "error": "Error and clusters",
    "direction": "Direction and bias",
    "laws": "Weights and logits",
    "plane": "Clusters",
    "susceptibility": "Susceptibility",
    "continuum": "Continuous time",
}

NUMBERS = {control.name: control for control in CONTROLS}
FLAGS = {switch.name: switch for switch in SWITCHES}
NAMES = {choice.name: choice for choice in CHOICES}


def default_texts() -> dict[str, str]:
    """The text of every control on a first visit."""
    texts = {name: "" if c.default is None else f"{c.default:g}" for name, c in NUMBERS.items()}
    texts |= {name: "yes" if switch.default else "" for name, switch in FLAGS.items()}
    return texts | {member.name: member.default for member in (*CHOICES, *ENTRIES)}


@dataclass(frozen=True)
class PageState:
    """The state of one page.

    Attributes:
        texts: what stands in each control, by name.
        view: one of `VIEWS`.
        t: the step that is shown; -1 is the last.
        pin: the address of the pinned run, or "".
        remarks: what was wrong with the address this state was read from.
    """

    texts: dict[str, str] = field(default_factory=default_texts)
    view: str = "error"
    t: int = -1
    pin: str = ""
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: str) -> PageState:
        """Read the part of an address behind "?"; what is wrong is left at its default and named.

        >>> state = PageState.from_query("?rho=0.3&colour=red")
        >>> state.texts["rho"], state.remarks
        ('0.3', ("'colour' in the address is not known and was left out",))
        """
        if len(query) > 2 * LONGEST_TEXT:
            return cls(remarks=("the address is too long and was not read",))
        texts, known, remarks = default_texts(), dict[str, Any](), list[str]()
        pairs = parse_qsl(query.lstrip("?"), keep_blank_values=True, max_num_fields=None)
        for name, value in pairs[: len(texts) + 10]:
            if name in texts:
                problem = _fault(name, value)
                if problem is None:
                    texts[name] = value
                else:
                    remarks.append(f"in the address: {problem}")
            elif name == "view" and value in VIEWS:
                known["view"] = value
            elif name == "t" and value.lstrip("-").isdigit() and len(value) < 8:
                known["t"] = int(value)
            elif name == "pin" and len(value) <= LONGEST_TEXT:
                known["pin"] = value
            else:
                remarks.append(f"{name[:40]!r} in the address is not known and was left out")
        return cls(texts=texts, remarks=tuple(remarks), **known)

    @classmethod
    def from_store(cls, data: Any) -> PageState:
        """The state that the page sent; anything that is not a state is refused."""
        if not isinstance(data, Mapping) or not isinstance(data.get("texts"), Mapping):
            raise InvalidInput("state", data, "the state of a page is accepted")
        sent = data["texts"]
        texts = {name: _text(sent.get(name, text)) for name, text in default_texts().items()}
        view, t, pin = data.get("view"), data.get("t"), data.get("pin")
        return cls(
            texts=texts,
            view=view if isinstance(view, str) and view in VIEWS else "error",
            t=int(t) if isinstance(t, (int, float)) and abs(t) <= NUMBERS["steps"].high else -1,
            pin=pin if isinstance(pin, str) and len(pin) <= LONGEST_TEXT else "",
        )

    def stored(self) -> dict[str, Any]:
        """This state as the page keeps it."""
        return {"texts": self.texts, "view": self.view, "t": self.t, "pin": self.pin}

    def query(self, pinned: bool = True) -> str:
        """The address of this state, with the defaults left out."""
        default = default_texts()
        pairs = {name: text for name, text in self.texts.items() if text != default[name]}
        if pinned:
            pairs |= {"view": self.view} if self.view != "error" else {}
            pairs |= {"t": str(self.t)} if self.t != -1 else {}
            pairs |= {"pin": self.pin} if self.pin else {}
        return urlencode(pairs)

    def values(self) -> dict[str, Any]:
        """What the controls hold, checked; empty ones are left out."""
        read: dict[str, Any] = {
            name: read_number(control, self.texts[name]) for name, control in NUMBERS.items()
        }
        read |= {name: self.texts[name] == "yes" for name in FLAGS}
        for name, choice in NAMES.items():
            read[name] = self.texts[name]
            if self.texts[name] not in choice.options:
                raise InvalidInput(
                    name, self.texts[name], nearest(self.texts[name], choice.options)
                )
        read["shape"] = read_shape(self.texts["shape"])
        return {name: value for name, value in read.items() if value is not None}

    @property
    def problem(self) -> Problem:
        """The problem that is set; a shape takes the place of the noise."""
        fields = self._of("problem", "shift")
        clusters = fields.pop("shape", None)
        if clusters is None:
            return Problem(**fields)
        if "delta_u" in fields:
            accepted = "with a shape all points have its noise: leave this empty"
            raise InvalidInput("delta_u", fields["delta_u"], accepted)
        del fields["delta"]
        return Problem(**fields, clusters=clusters)

    @property
    def recipe(self) -> Recipe:
        """The recipe that is set."""
        return Recipe(**self._of("recipe"))

    def with_values(self, values: Mapping[str, Any]) -> PageState:
        """The same page with other values of some controls."""
        texts = self.texts | {name: _shown(value) for name, value in values.items()}
        return PageState(texts, self.view, self.t, self.pin)

    def _of(self, *groups: str) -> dict[str, Any]:
        members = {c.name for c in (*CONTROLS, *SWITCHES, *CHOICES, *ENTRIES) if c.group in groups}
        return {name: value for name, value in self.values().items() if name in members}


def _fault(name: str, value: str) -> str | None:
    """What is wrong with the text of a control, in words."""
    try:
        PageState(default_texts() | {name: value}).values()
    except InvalidInput as error:
        return str(error)
    return None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return str("" if value is None else value)[: LONGEST_TEXT + 1]


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, (list, tuple)) or hasattr(value, "__len__"):
        return ",".join(f"{float(entry):.6g}" for entry in value)
    return f"{float(value):.10g}"
