r"""The adjoint recursion: from the derivatives of a number in the rows of a run to those in what
each step is given.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..step.equations import BIAS, ETA, LOG_CHI, LOG_R, A, scales
from .step_derivatives import FIELDS, MU, NU2, OLD_BIAS, OMEGA, RIDGE

REFINEMENTS = 3
"""Solutions of a system: the first, and two for what it left over."""


class Solution(NamedTuple):
    """The solved steps of a run: the states that steps start from (`state.solution`), unknowns,
    derivatives of the equations in them, and by what a state is multiplied to be in the units of
    the step that starts from it (`theory.fading`).
    """

    states: Any
    unknowns: Any
    jacobians: Any
    units: Any


@kernel(error_model="numpy")
def pull_back(solution: Solution, moves: Any, bars: Any, out: Any, conditions: Any) -> None:
    r"""The adjoint recursion: from $\partial L/\partial$row of each step to $dL/d\theta$ of each
    step.

    `bars` are the derivatives of L in the rows of `trajectory.STATE`; those in m, v and B are
    completed on the way down by what later steps make of them. `conditions` is by how much errors
    of the averages are magnified: the Skeel condition number of each stage in the scales of its
    state.
    """
    states, unknowns, jacobians = solution.states, solution.unknowns, solution.jacobians
    pull = np.empty(5)
    adjoint = np.empty(5)
    unit = np.empty(5)
    for t in range(unknowns.shape[0] - 1, -1, -1):
        z = unknowns[t]
        bar = bars[t]
        omega, mu, nu2 = (0.0, 0.0, 1.0)
        if t > 0:
            omega, mu, nu2 = states[t - 1, 0], states[t - 1, 1], states[t - 1, 2]
        a, eta = z[A], z[ETA]
        r, norm = scales(z, nu2)
        chi = math.exp(z[LOG_CHI])
        off = a - mu * eta
        noise = (r / chi) ** 2
        pull[A] = bar[0] * mu + 2.0 * bar[1] * nu2 * off + bar[4] * omega
        pull[ETA] = bar[0] * nu2 - 2.0 * bar[1] * nu2 * off * mu + bar[7] / chi
        pull[BIAS] = bar[2]
        pull[LOG_R] = 2.0 * bar[1] * r * r + 2.0 * bar[6] * noise
        pull[LOG_CHI] = bar[3] * chi - bar[5] / chi - 2.0 * bar[6] * noise - bar[7] * eta / chi
        direct = out[t]
        direct[:] = 0.0
        direct[RIDGE] = -bar[5]
        if t > 0:
            spread = off / (chi * omega)
            pull[A] += bar[8] / (chi * omega)
            pull[ETA] -= bar[8] * mu / (chi * omega)
            pull[LOG_CHI] -= bar[8] * spread
            direct[OMEGA] = bar[4] * a - bar[8] * spread / omega
            direct[MU] = bar[0] * a - 2.0 * bar[1] * nu2 * off * eta - bar[8] * eta / (chi * omega)
            direct[NU2] = bar[0] * eta + bar[1] * off * off
        size = math.hypot(a, norm)
        unit[A], unit[ETA], unit[BIAS] = size, size, abs(z[BIAS]) + size
        unit[LOG_R], unit[LOG_CHI] = 1.0, 1.0
        conditions[t] = _solve_transposed(jacobians[t], unit, pull, adjoint)
        for j in range(FIELDS):
            for i in range(5):
                direct[j] -= adjoint[i] * moves[t, i, j]
        if t > 0:
            below, change = bars[t - 1], solution.units[t]
            turned = direct[OMEGA] * mu + (direct[MU] - 2.0 * direct[NU2] * mu) * nu2 / omega
            wider = 0.5 * direct[OMEGA] / omega
            wider += (direct[NU2] * mu * mu - 0.5 * direct[MU] * mu) / (omega * omega)
            below[0] += change * turned
            below[1] += change * change * wider
            below[2] += change * direct[OLD_BIAS]


@kernel(error_model="numpy")
def _solve_transposed(jacobian: Any, unit: Any, right: Any, out: Any) -> float:
    r"""Solve $F_z^T x = $ `right`; returns the condition: the largest relative change of an unknown
    when every entry of the Jacobian changes by one part.

    Near a collapse rows and columns differ by many orders. They are brought to one size first, the
    columns by the scales of the unknowns (`unit`), and what the solution leaves over is solved for
    again: without that, rounding took three digits of derivatives there.
    """
    matrix = np.empty((5, 5))
    rows = np.empty(5)
    for i in range(5):
        rows[i] = 0.0
        for j in range(5):
            rows[i] = max(rows[i], abs(jacobian[i, j]) * unit[j])
        for j in range(5):
            matrix[i, j] = jacobian[i, j] * unit[j] / rows[i]
    inverse = np.linalg.inv(matrix)
    left = np.empty(5)
    for j in range(5):
        left[j] = right[j] * unit[j]
        out[j] = 0.0
    for _ in range(REFINEMENTS):
        for i in range(5):
            for j in range(5):
                out[i] += inverse[j, i] * left[j]
        for j in range(5):
            left[j] = right[j] * unit[j]
            for i in range(5):
                left[j] -= matrix[i, j] * out[i]
    for i in range(5):
        out[i] /= rows[i]
    worst = 0.0
    for i in range(5):
        total = 0.0
        for k in range(5):
            row = 0.0
            for j in range(5):
                row += abs(matrix[k, j])
            total += abs(inverse[i, k]) * row
        worst = max(worst, total)
    return worst
