"""An HTML input as the browser has it, which Dash has not: it keeps its own value, so that moving a
slider renders nothing again. assets/inputs.js is its other half.
"""

from __future__ import annotations

from dash.development.base_component import Component

__all__ = ["PlainInput"]


class PlainInput(Component):
    """An input of any type; `value` and `checked` are what it begins with."""

    _children_props: list[str] = []
    _namespace = "explorer_inputs"
    _type = "PlainInput"
    _prop_names = ["id", "type", "name", "value", "checked", "min", "max", "step"]
    _valid_wildcard_attributes = ["aria-"]
    available_properties = _prop_names
    available_wildcard_properties = _valid_wildcard_attributes
