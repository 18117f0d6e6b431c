"""A plain HTML input, which Dash lacks: the browser stores its value, so that moving a slider
renders nothing again. assets/inputs.js is its part in the browser.
"""

from __future__ import annotations

from typing import Any

from dash.development.base_component import Component

__all__ = ["PlainInput"]


PROPERTIES = ["id", "type", "name", "value", "checked", "min", "max", "step"]
WILDCARDS = ["aria-"]
NO_CHILDREN: list[str] = []


class PlainInput(Component):
    """An HTML input of any type; `value` and `checked` are its initial state."""

    _namespace, _type = "explorer_inputs", "PlainInput"
    _children_props = NO_CHILDREN
    _prop_names = available_properties = PROPERTIES
    _valid_wildcard_attributes = available_wildcard_properties = WILDCARDS

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)  # type: ignore[no-untyped-call]
