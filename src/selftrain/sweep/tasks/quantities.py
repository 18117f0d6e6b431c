"""Quantities of a run by name, for the tasks that end in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...observables import SYMBOLS
from ..computation import Output

if TYPE_CHECKING:
    from ...theory.trajectory import Trajectory

PATH = "_path"
LIMITS = {
    "bayes": "semi_supervised",
    "bayes_labeled_only": "labeled_only",
    "bayes_all_labeled": "all_labeled",
}


def of_run(run: Trajectory, keep: Sequence[str]) -> dict[str, Any]:
    """Values of a run at its last step, or over all steps."""
    from ...theory.bayes import bayes_error

    limits = bayes_error(run.problem) if any(name in LIMITS for name in keep) else None
    found: dict[str, Any] = {}
    for name in keep:
        if name == "t":
            found[name] = run.t
        elif name == "collapsed_at":
            found[name] = as_number(run.collapsed_at)
        elif name in LIMITS:
            found[name] = float(getattr(limits, LIMITS[name]))
        elif name.endswith(PATH):
            found[name] = np.asarray(getattr(run, name.removesuffix(PATH)))
        else:
            found[name] = float(getattr(run, name)[-1])
    return found


def as_number(value: Any) -> float:
    """A number; NaN for None, the last entry of a schedule."""
    if value is None:
        return math.nan
    return float(value[-1] if isinstance(value, tuple) else value)


RUN = {
    **{name: Output(symbol) for name, symbol in SYMBOLS.items()},
    "collapsed_at": Output(r"t_{collapse}"),
    "bayes": Output(r"\epsilon_{Bayes}"),
    "bayes_labeled_only": Output(r"\epsilon_{Bayes}^{(L)}"),
    "bayes_all_labeled": Output(r"\epsilon_{Bayes}^{(SL)}"),
    "t": Output("t", ("t",)),
    **{name + PATH: Output(symbol, ("t",)) for name, symbol in SYMBOLS.items()},
}
