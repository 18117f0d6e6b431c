"""Texts on figures: names of quantities, and the settings of a problem and a recipe in symbols."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..parameters import PARAMETERS
from ..sweeps.named_tasks import optimized

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
"""Largest number of characters of a line."""

RIDGES = ("lambda_l", "lambda_u")
"""Shown even if they have their defaults, because they matter in every run."""


def words(name: str) -> str:
    """Return the name of a quantity or a parameter in words.

    >>> words("collapsed_at"), words("lambda_u"), words("my_own")
    ('step of collapse', 'ridge of the later steps', 'my own')
    """
    if name in WORDS:
        return WORDS[name]
    return PARAMETERS[name].label.lower() if name in PARAMETERS else name.replace("_", " ")


def settings(values: Mapping[str, Any]) -> str:
    """Return the ridges, and fields of problem and recipe that differ from their defaults.

    >>> settings({"rho": 0.4, "sharpness": float("inf"), "threshold": 0.0, "loss": "squared"})
    '$\\\\rho=0.4$, hard labels, squared loss'
    """
    lines = [""]
    for name, value in values.items():
        usual = name in PARAMETERS and name not in RIDGES and value == PARAMETERS[name].default
        if usual or not isinstance(value, (int, float, str, list, tuple)):
            continue
        piece = _piece(name, value)
        if len(lines[-1]) + len(piece) > LONGEST:
            lines.append("")
        lines[-1] += f", {piece}" if lines[-1] else piece
    return "\n".join(lines)


def shared(data: xr.Dataset, shown: Sequence[str]) -> str:
    """Return the title of a sweep: the quantities, and below them the fixed parameters and those
    that were optimised.
    """
    values: dict[str, Any] = {
        **json.loads(data.attrs.get("problem", "{}")),
        **json.loads(data.attrs.get("recipe", "{}")),
        **{str(name): one.item() for name, one in data.coords.items() if one.ndim == 0},
    }
    options = json.loads(data.attrs.get("options", "{}"))
    free = optimized(options) if data.attrs.get("task") == "optimize" else set()
    gone = {*data.dims, *data.data_vars, *free}
    values = {name: value for name, value in values.items() if name not in gone}
    title = words(shown[0]) if len(shown) == 1 else ""
    steps = values.pop("steps", None)
    if steps is not None:
        reach = "within" if list(shown) == ["collapsed_at"] else "after"
        title = f"{title} {reach} {steps} step{'' if steps == 1 else 's'}".lstrip()
    best = ", ".join(f"${PARAMETERS[name].symbol}$" for name in PARAMETERS if name in free)
    tuned = f"optimised at every point: {best}" if free else ""
    return "\n".join(filter(None, (title[:1].upper() + title[1:], settings(values), tuned)))


def _piece(name: str, value: Any) -> str:
    """Return a parameter with its value as text, in words or with its symbol."""
    if name == "sharpness" and value in ("inf", float("inf")):
        return "hard labels"
    if name == "fix_bias":
        return "bias fixed" if value else "bias trained"
    if name == "loss":
        return f"{value} loss"
    symbol = PARAMETERS[name].symbol if name in PARAMETERS else ""
    return f"${symbol}={_number(value)}$" if symbol else f"{words(name)} {_number(value)}"


def _number(value: Any) -> str:
    """Return a number, or the ends of a schedule."""
    if isinstance(value, (list, tuple)):
        return rf"{_number(value[0])}\ldots {_number(value[-1])}" if value else r"\emptyset"
    return f"{value:g}" if isinstance(value, float) else str(value)
