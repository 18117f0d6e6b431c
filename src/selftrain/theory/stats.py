"""The names of the order parameters, and statistics of the solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array

__all__ = ["START_NAMES", "STATE", "SolverStats"]

START_NAMES = ("predicted", "explicit", "no update", "continuation")
"""Starting points of Newton's method; `step.march` refers to them by their index."""

STATE = ("m", "v", "bias", "chi", "overlap", "q_hat", "chi_hat", "m_hat", "r_hat")
"""The order parameters and conjugates of a step: names of the arrays of a `Trajectory`."""


@dataclass(frozen=True, eq=False)
class SolverStats:
    """Statistics of the solver; arrays over t = 0..T.

    Attributes:
        tolerance: relative accuracy that was asked for.
        evaluations: evaluations of the equations (with Jacobian), confirmations included.
        nodes: quadrature nodes of the last evaluation (squared loss: pieces of its closed form).
        accuracy: relative accuracy of each step by itself: the relative size of the last Newton
            step, on a refined rule. `Trajectory.accuracy` has these errors propagated.
        start: starting point of the accepted iteration ("predicted", "no update", ...).
    """

    tolerance: float
    evaluations: Array
    nodes: Array
    accuracy: Array
    start: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return totals over the steps, as plain values."""
        solved = self.evaluations > 0
        confirmed = self.accuracy[np.isfinite(self.accuracy)]
        starts = [name for name, used in zip(self.start, solved, strict=True) if used]
        return {
            "tolerance": self.tolerance,
            "evaluations": int(self.evaluations.sum()),
            "evaluations_per_step": float(self.evaluations[solved].mean()) if solved.any() else 0.0,
            "nodes_max": int(self.nodes.max(initial=0)),
            "step_accuracy": float(confirmed.max()) if confirmed.size else None,
            "confirmed_steps": int(confirmed.size),
            "starts": {name: starts.count(name) for name in sorted(set(starts))},
        }
