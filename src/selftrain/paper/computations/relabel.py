"""A second fit to a fresh batch with pseudo-labels, and what becomes of the labelled samples in
it: left out, kept with their given labels, or relabelled like the batch. All ridges are tuned.
"""

from __future__ import annotations

from typing import Any

from ...problem import Problem
from ...sweeps import Computation, Output
from ...theory.bayes import bayes_error
from .distillation import tuned

WAYS: dict[str, dict[str, Any]] = {
    "left out": {"batches": "fresh"},
    "kept": {"batches": "fresh", "keep_labeled": 1.0},
    "relabelled": {"batches": "labeled+fresh"},
}


def relabel(way: str, **setting: Any) -> dict[str, Any]:
    """The smallest error of two fits, and the Bayes error of their samples."""
    found = tuned(Problem(steps=1, **WAYS[way], **setting), "linear")
    return {
        "error": found.error,
        "spread": found.spread,
        "first": float(found.run.error[0]),
        "bayes": bayes_error(Problem(steps=1, **setting)).semi_supervised,
    }


RELABEL = Computation(
    relabel,
    {
        "error": Output(r"\epsilon_g^{(1)}"),
        "spread": Output("difference of two replicates"),
        "first": Output(r"\epsilon_g^{(0)}"),
        "bayes": Output(r"\epsilon_{Bayes}"),
    },
    seconds=lambda **_: 4.0,
)
