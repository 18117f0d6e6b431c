"""The names of what is solved for, and how each step was obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array

__all__ = ["START_NAMES", "STATE", "SolverStats"]

START_NAMES = ("predicted", "explicit", "no update", "continuation")
"""Where Newton's method can begin; `step.march` knows the first three by their places."""

STATE = ("m", "v", "bias", "chi", "overlap", "q_hat", "chi_hat", "m_hat", "r_hat")
"""The order parameters that are solved for; the names of the stored arrays."""


@dataclass(frozen=True, eq=False)
class SolverStats:
    """How each step was obtained; arrays over t = 0..T.

    Attributes:
        tolerance: relative accuracy that was asked for.
        evaluations: evaluations of the equations (with Jacobian), confirmations included.
        nodes: quadrature nodes of the last evaluation (pieces of the closed form: squared loss).
        accuracy: to how much of its state each step, by itself, was confirmed: the relative size of
            the last Newton step. What later steps make of these errors is in `Trajectory.accuracy`.
        start: where the accepted iteration began ("predicted", "no update", ...).
    """

    tolerance: float
    evaluations: Array
    nodes: Array
    accuracy: Array
    start: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Totals, as plain values."""
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
