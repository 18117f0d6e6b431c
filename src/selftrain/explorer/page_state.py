"""The state of a page as plain values: its address contains it, and every answer follows from it.

A state has the texts of all controls, the view, the step that is shown, and the address of a pinned
run. It comes from the browser and is not trusted: `controls` validates the values, and unknown
names are ignored and reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ..errors import InvalidInput
from ..mixture.clusters import Clusters
from ..problem import Problem
from ..recipe import Recipe
from .cluster_texts import DISTANCE
from .controls import CONTROLS, LONGEST_TEXT, MOST_STEPS

VIEWS = {
    "error": "Error and clusters",
    "direction": "Direction and bias",
    "laws": "Weights and logits",
    "plane": "Clusters",
    "susceptibility": "Susceptibility",
    "continuum": "Continuous time",
}

CLASS_STEPS = 16
"""Largest number of steps with three classes: the time grows faster than the number of steps."""


def default_texts() -> dict[str, str]:
    """Return the text of every control on a first visit."""
    return {name: control.start for name, control in CONTROLS.items()}


@dataclass(frozen=True)
class PageState:
    """The state of one page.

    Attributes:
        texts: the text of each control, by name.
        view: one of `VIEWS`.
        t: the step that is shown; -1 is the last.
        pin: the address of the pinned run, or "".
        remarks: errors in the address that this state was read from.
    """

    texts: dict[str, str] = field(default_factory=default_texts)
    view: str = "error"
    t: int = -1
    pin: str = ""
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: str) -> PageState:
        """Read the part of an address behind "?"; wrong values are reported in `remarks`, and the
        defaults are used instead.

        >>> state = PageState.from_query("?rho=0.3&colour=red")
        >>> state.texts["rho"], state.remarks
        ('0.3', ("'colour' in the address is not known and was ignored",))
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
                remarks.append(f"{name[:40]!r} in the address is not known and was ignored")
        return cls(texts=texts, remarks=tuple(remarks), **known)

    @classmethod
    def from_store(cls, data: Any) -> PageState:
        """Read the state that the page sent; raise if it is not a state."""
        if not isinstance(data, Mapping) or not isinstance(data.get("texts"), Mapping):
            raise InvalidInput("state", data, "must be the state of a page")
        sent = {name: data["texts"].get(name, text) for name, text in default_texts().items()}
        texts = {name: ("" if text is None else str(text)) for name, text in sent.items()}
        view, t, pin = data.get("view"), data.get("t"), data.get("pin")
        return cls(
            texts=texts,
            view=view if isinstance(view, str) and view in VIEWS else "error",
            t=int(t) if isinstance(t, (int, float)) and abs(t) <= MOST_STEPS else -1,
            pin=pin if isinstance(pin, str) and len(pin) <= LONGEST_TEXT else "",
        )

    def stored(self) -> dict[str, Any]:
        """Return this state as the page stores it; `from_store` reads it."""
        return {"texts": self.texts, "view": self.view, "t": self.t, "pin": self.pin}

    def query(self, pinned: bool = True) -> str:
        """Return the address of this state, without values that are defaults.

        `pinned`: include the view, the step and the pinned run.
        """
        default = default_texts()
        pairs = {name: text for name, text in self.texts.items() if text != default[name]}
        if pinned:
            pairs |= {"view": self.view} if self.view != "error" else {}
            pairs |= {"t": str(self.t)} if self.t != -1 else {}
            pairs |= {"pin": self.pin} if self.pin else {}
        return urlencode(pairs)

    def values(self) -> dict[str, Any]:
        """Return the validated values of all controls that are not empty."""
        read = {name: control.read(self.texts[name]) for name, control in CONTROLS.items()}
        return {name: value for name, value in read.items() if value is not None}

    @property
    def problem(self) -> Problem:
        """The problem; a covariance of the clusters replaces `delta`, and the proportions of three
        classes replace `rho`.
        """
        fields = self.of_groups("problem", "shift")
        clusters, classes = fields.pop("shape", None), fields.pop("classes", None)
        if classes is not None:
            self._reject(fields, "rho_u", "delta_u", why="with three classes")
            if clusters is not None:
                raise InvalidInput("shape", self.texts["shape"], "must be empty with three classes")
            if fields["steps"] > CLASS_STEPS:
                accepted = f"must be at most {CLASS_STEPS} with three classes"
                raise InvalidInput("steps", fields["steps"], accepted)
            clusters = Clusters.simplex(len(classes), DISTANCE, fields["delta"])
            fields["rho"] = classes
        if clusters is None:
            return Problem(**fields)
        self._reject(fields, "delta_u", why="with a covariance, which all samples share")
        del fields["delta"]
        return Problem(**fields, clusters=clusters)

    @staticmethod
    def _reject(fields: dict[str, Any], *names: str, why: str) -> None:
        for name in names:
            if name in fields:
                raise InvalidInput(name, fields[name], f"must be empty {why}")

    @property
    def recipe(self) -> Recipe:
        """The recipe."""
        return Recipe(**self.of_groups("recipe"))

    def with_values(self, values: Mapping[str, Any]) -> PageState:
        """Return the same page with other values of some controls."""
        texts = self.texts | {name: _text(value) for name, value in values.items()}
        return PageState(texts, self.view, self.t, self.pin)

    def of_groups(self, *groups: str) -> dict[str, Any]:
        """Return the values of the controls in some groups."""
        return {name: v for name, v in self.values().items() if CONTROLS[name].group in groups}


def _fault(name: str, value: str) -> str | None:
    """Return what is wrong with the text of a control; None if it is valid."""
    try:
        PageState(default_texts() | {name: value}).values()
    except InvalidInput as error:
        return str(error)
    return None


def _text(value: Any) -> str:
    """Return the text of a value in its control."""
    if value is None or isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        return ",".join(f"{float(entry):.6g}" for entry in value)
    return f"{value:.10g}" if isinstance(value, (int, float)) else str(value)
