"""Words for the pictures of a sweep: quantities, and what all points share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..parameters import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr

WORDS = {
    "error": "error",
    "cosine": "cosine with the cluster direction",
    "q": "squared norm",
    "m": "overlap",
    "chi": "susceptibility",
    "bias": "bias",
    "collapsed_at": "step of collapse",
    "collapsed": "fraction of systems that collapse",
    "gain": "gain over the supervised baseline",
    "excess": "error above the Bayes error",
    "labeled_only": "supervised baseline",
    "supervised": "fully supervised",
    "bayes": "Bayes error",
    "test_error": "error on test samples",
    "fraction_selected": "fraction of selected samples",
    "pseudo_label_accuracy": "accuracy of the pseudo-labels",
}
LONGEST = 78
"""Characters of a line."""


def words(name: str) -> str:
    """Return what a quantity is called.

    >>> words("collapsed_at"), words("lambda_u"), words("my_own")
    ('step of collapse', 'ridge of the later steps', 'my own')
    """
    if name in WORDS:
        return WORDS[name]
    return PARAMETERS[name].label.lower() if name in PARAMETERS else name.replace("_", " ")


def shared(data: xr.Dataset, shown: Sequence[str]) -> str:
    """Return the title of a sweep: the quantity, and in a second line what all points share."""
    values: dict[str, Any] = {
        **json.loads(data.attrs.get("problem", "{}")),
        **json.loads(data.attrs.get("recipe", "{}")),
        **{str(name): one.item() for name, one in data.coords.items() if one.ndim == 0},
    }
    drawn = {*data.dims, *data.data_vars}
    values = {name: value for name, value in values.items() if name not in drawn}
    title = words(shown[0]) if len(shown) == 1 else ""
    steps = values.pop("steps", None)
    if steps is not None:
        reach = "within" if list(shown) == ["collapsed_at"] else "after"
        title = f"{title} {reach} {steps} step{'' if steps == 1 else 's'}".lstrip()
    usual = _defaults()
    pieces = [
        _piece(name, value)
        for name, value in values.items()
        if isinstance(value, (int, float, str)) and value != usual.get(name)
    ]
    lines, line = [title[:1].upper() + title[1:]] if title else [], ""
    for piece in pieces:
        if len(line) + len(piece) > LONGEST:
            lines.append(line)
            line = ""
        line = f"{line}, {piece}" if line else piece
    return "\n".join([*lines, line] if line else lines)


def _piece(name: str, value: Any) -> str:
    """Return a parameter and its value, in words or with its symbol."""
    if name == "sharpness" and value == "inf":
        return "hard labels"
    if name == "fix_bias":
        return "bias fixed" if value else "bias trained"
    if name == "loss":
        return f"{value} loss"
    symbol = PARAMETERS[name].symbol if name in PARAMETERS else ""
    number = f"{value:g}" if isinstance(value, float) else str(value)
    return f"${symbol}={number}$" if symbol else f"{name.replace('_', ' ')} {number}"


def _defaults() -> dict[str, Any]:
    """Return the default recipe, and the loss."""
    from ..recipe import Recipe

    return Recipe().to_dict() | {"loss": "logistic"}
