r"""The adjoint of the equations of a step: from derivatives of a result L in the unknowns to those
in fields, labels and batch.

At a solved step the equations $F(x; \theta) = 0$ of `step.equations` define the unknowns. With
$\bar x$ the derivatives of L in them, $\lambda = -F_x^{-T}\bar x$ and $dL/d\theta = \lambda\cdot
F_\theta$. F depends on $\theta$ through averages of X = f, s f, $g_1$ f, $f^2$, k over the samples
of a group, and each of them changes in four ways:

- the new logit h changes with the fields: averages with k, as in the Jacobian;
- a pseudo-label changes with $\tilde h$ and the sharpness, a given label with the proportion of
  wrong labels: the averages `y`, `fy`, `ky`;
- the weights of the classes change with the proportion $\rho$: $\partial E[X]/\partial\rho =
  E[X|s{=}1] - E[X|s{=}{-}1]$, from E[X] and E[s X];
- where the integrand jumps, at a threshold or at the sign of a hard label, the jump is displaced:
  with $g_e$ its position, $\varphi(g_e)\,(\bar X_- - \bar X_+)\,\partial g_e/\partial\theta$
  (`edges`).

Under the mirror of a balanced problem (`geometry.mirror`) B, B' and $\rho - 1/2$ change sign and
the groups are exchanged. Derivatives of even quantities in odd ones are zero. Averages give these
zeros only up to rounding errors, which steps that shrink the weights magnify; so even and odd parts
are propagated separately.
"""

from __future__ import annotations

import math
from typing import Any

from ...runtime.kernels import kernel
from ..geometry.modes import BIAS, FIRST, HAT_M
from .moved_averages import E_CLASS, E_F, E_FF, E_K, E_LIMIT, E_PLACE, E_SHARPNESS, E_WEIGHT
from .pulls import (
    BY_GROUP,
    CONDITION,
    FIELD_M,
    LIMIT,
    OLD_BIAS,
    OLD_M,
    POSITIVE,
    SHARPNESS,
    Reversed,
    SolvedStep,
    StepNumbers,
)  # fmt: skip

ODD_ROUNDING = 1e-12
"""An odd part smaller than this, relative to the even one, is rounding error and set to zero: the
mirror exchanges groups, which changes the order of sums.
"""

REFINEMENTS = 3
"""Number of solutions of a linear system: the first, and two iterative refinements."""


@kernel(allocates=False)
def pull_equations(step: SolvedStep, at: StepNumbers, pulls: Any, out: Reversed) -> None:
    """Convert the derivatives in the unknowns, `out.x`, to derivatives in the inputs of the step;
    add these to `pulls`, and set the condition number of the step.
    """
    groups, bars, part, rows = step.roots.shape[0], out.x, out.part, out.rows
    size, unit, right, adjoint, work = bars.shape[0], rows[0], rows[1], rows[2], rows[3:]
    unit_of_unknowns(step, at, unit)
    pulls[CONDITION] = 0.0
    for k in range(2 if at.mirrored else 1):
        sign = 1.0 - 2.0 * k
        for j in range(size):
            right[j] = bars[j]
        for j in range(part.shape[0]):
            part[j] = 0.0
        if at.mirrored:
            _one_parity(right, sign, HAT_M, BIAS, FIRST, groups)
            if k == 1 and _is_rounding(right, bars, unit, groups):
                break
        condition = solve_transposed(step.system, unit, right, adjoint, work)
        if not condition <= pulls[CONDITION]:  # also if it is NaN
            pulls[CONDITION] = condition
        if at.mirrored:
            _one_parity(adjoint, sign, HAT_M, BIAS, FIRST, groups)
        pull_averages(step, at, adjoint, part)
        if at.mirrored:
            _one_parity_of_pulls(part, sign, groups)
        for j in range(part.shape[0]):
            pulls[j] += part[j]


@kernel(allocates=False)
def _one_parity(values: Any, sign: float, even: int, odd: int, first: int, groups: int) -> None:
    """Project `values` on the part that the mirror multiplies by `sign`, in place. The mirror keeps
    the entry `even`, negates the entry `odd`, and from `first` on exchanges the entries of groups.
    """
    values[odd if sign > 0.0 else even] = 0.0
    for i in range(first, values.shape[0], groups):
        other = values[i + groups - 1]
        mean = 0.5 * (values[i] + sign * other)
        values[i] = mean
        values[i + groups - 1] = sign * mean


@kernel(allocates=False)
def _is_rounding(odd: Any, bars: Any, unit: Any, groups: int) -> bool:
    """Return whether the odd part of `bars` is zero up to rounding."""
    largest = whole = 0.0
    for j in range(bars.shape[0]):
        largest = max(largest, abs(odd[j]) * unit[j])
        whole = max(whole, abs(bars[j]) * unit[j])
    return largest <= (ODD_ROUNDING * whole if groups > 1 else 0.0)


@kernel(allocates=False)
def _one_parity_of_pulls(pulls: Any, sign: float, groups: int) -> None:
    """Project the derivatives `pulls` of a step as `_one_parity` does."""
    _one_parity(pulls, sign, FIELD_M, OLD_BIAS, BY_GROUP, groups)
    if sign > 0.0:
        pulls[POSITIVE] = 0.0
    else:
        pulls[OLD_M] = pulls[LIMIT] = pulls[SHARPNESS] = 0.0


@kernel(allocates=False)
def unit_of_unknowns(step: SolvedStep, at: StepNumbers, out: Any) -> None:
    """Fill `out` with the scale of each unknown: for the bias that of the logits, for conjugates
    the values that would generate the whole weights, for logarithms 1.
    """
    x, fields, roots = step.x, step.fields, step.roots
    groups = roots.shape[0]
    scale, stiffness = abs(fields[0, 0] + at.anchor * at.m), 0.0
    for k in range(groups):
        along = (fields[1 + k, 0] + at.anchor) * roots[k]
        scale = max(scale, math.hypot(along, fields[1 + groups + k, 0]))
        stiffness = max(stiffness, math.exp(x[FIRST + groups + k]))
    for j in range(out.shape[0]):
        out[j] = 1.0
    out[HAT_M] = abs(x[HAT_M]) + (at.ridge + stiffness) * scale
    out[BIAS] = abs(x[BIAS] + at.gamma * at.bias) + scale
    for k in range(groups):
        out[FIRST + k] = math.exp(x[FIRST + groups + k])
        if not at.given:
            out[FIRST + k] *= scale / roots[k]


@kernel(allocates=False)
def pull_averages(step: SolvedStep, at: StepNumbers, adjoint: Any, pulls: Any) -> None:
    r"""Add $\lambda\cdot F_\theta$ to `pulls`, for every $\theta$; `adjoint` is $\lambda$."""
    fields, roots, moments = step.fields, step.roots, step.moments
    edges, sharp, rho = step.edges, step.sharp, at.positive
    groups = roots.shape[0]
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    for k in range(groups):
        e, root = moments[k], roots[k]
        a, psi = e.share, fields[1 + k, 0] + at.anchor
        change = fields[1 + k, 0] + (at.anchor - at.gamma)  # psi - gamma_0
        by_t = 0.0 if at.given else a * adjoint[t0 + k]
        w_f = 0.0 if at.fixed_bias else a * adjoint[BIAS]
        w_s = a * adjoint[HAT_M]
        w_g = -by_t / root
        w_ff = -adjoint[x0 + k] / e.ff
        w_k = by_t * change - adjoint[q0 + k] / e.k
        two = 2.0 * w_ff
        by_m = w_f * e.sk + w_s * e.k + w_g * e.sgk + two * e.sfk + w_k * e.sk3
        by_lift = w_f * e.k + w_s * e.sk + w_g * e.gk + two * e.fk + w_k * e.k3
        by_tilt = w_f * e.gk + w_s * e.sgk + w_g * e.ggk + two * e.gfk + w_k * e.gk3
        by_noise = w_f * e.nk + w_s * e.snk + w_g * e.gnk + two * e.nfk + w_k * e.nk3
        by_c = w_f * e.fk + w_s * e.sfk + w_g * e.gfk + two * e.ffk + w_k * (e.fk3 + e.kk)
        by_label = w_f * e.y + w_s * e.sy + w_g * e.gy + two * e.fy + w_k * e.ky
        by_label_m = w_f * e.sy + w_s * e.y + w_g * e.sgy + two * e.sfy + w_k * e.sky
        by_label_g = w_f * e.gy + w_s * e.sgy + w_g * e.ggy + two * e.gfy + w_k * e.gky
        pulls[FIELD_M] += by_m
        pulls[BY_GROUP + k] += by_tilt * root + by_t * e.k
        pulls[BY_GROUP + groups + k] += by_noise
        pulls[BY_GROUP + 2 * groups + k] -= by_c
        if at.given:
            pulls[SHARPNESS] += by_label
        else:
            pulls[OLD_M] += at.gain * by_label_m
            pulls[OLD_BIAS] += at.gamma * by_lift + at.gain * by_label
            pulls[BY_GROUP + 3 * groups + k] += by_tilt * psi + at.gain * by_label_g
            pulls[BY_GROUP + 3 * groups + k] += by_t * e.gf / (root * root)
            if at.soft:  # the logit of the label is gamma h~
                by_gamma = at.m * by_label_m + at.bias * by_label + root * by_label_g
            else:
                by_gamma = w_f * sharp[k, 0] + w_s * sharp[k, 1] + w_g * sharp[k, 2]
                by_gamma += w_ff * sharp[k, 3] + w_k * sharp[k, 4]
            pulls[SHARPNESS] += by_gamma
            for j in range(edges.shape[1]):  # by entries: numba is slow to make views of rows
                s, g = edges[k, j, E_CLASS], edges[k, j, E_PLACE]
                moved = (w_f + w_s * s + w_g * g) * edges[k, j, E_F]
                moved += w_ff * edges[k, j, E_FF] + w_k * edges[k, j, E_K]
                moved *= edges[k, j, E_WEIGHT] / root
                pulls[OLD_M] -= moved * s
                pulls[OLD_BIAS] -= moved
                pulls[BY_GROUP + 3 * groups + k] -= moved * g
                pulls[LIMIT] += moved * edges[k, j, E_LIMIT]
                pulls[SHARPNESS] += moved * edges[k, j, E_SHARPNESS]
        whole = w_f * e.f + w_s * e.sf + w_g * e.gf + w_ff * e.ff + w_k * e.k
        pulls[BY_GROUP + 4 * groups + k] += whole
        if groups == 1:
            signed = w_f * e.sf + w_s * e.f + w_g * e.sgf + w_ff * e.sff + w_k * e.sk
            pulls[POSITIVE] += 0.5 * ((whole + signed) / rho - (whole - signed) / (1.0 - rho))
    if at.fixed_bias and not at.given:
        pulls[OLD_BIAS] -= (1.0 - at.gamma) * adjoint[BIAS]


@kernel(allocates=False)
def solve_transposed(system: Any, unit: Any, right: Any, out: Any, room: Any) -> float:
    r"""Solve $F_x^T\lambda = -$`right`, write $\lambda$ to `out` and return the condition number,
    NaN if there is no solution.

    The condition number is the largest relative change of an unknown per relative change of the
    entries of the Jacobian (`system` without its first column). Near a collapse rows and columns
    differ by many orders of magnitude. They are scaled first, the columns by the scales of the
    unknowns (`unit`), and the solution is refined by solving for its residual; otherwise three
    digits would be lost to rounding. `room` is a buffer of 2n + 3 rows.
    """
    size = right.shape[0]
    matrix, inverse, rows, left = room[:size], room[size : 2 * size], room[-3], room[-2]
    for i in range(size):
        top = 0.0
        for j in range(size):
            top = max(top, abs(system[i, 1 + j]) * unit[j])
        for j in range(size):
            matrix[i, j] = system[i, 1 + j] * unit[j] / top
            inverse[i, j] = matrix[i, j]
        rows[i] = top
    if not _invert(inverse, room[-1]):
        out[:] = math.nan
        return math.nan
    out[:] = 0.0
    for _ in range(REFINEMENTS):
        for j in range(size):
            left[j] = -right[j] * unit[j]
            for i in range(size):
                left[j] -= matrix[i, j] * out[i]
        for i in range(size):
            for j in range(size):
                out[i] += inverse[j, i] * left[j]
    for i in range(size):
        out[i] /= rows[i]
        left[i] = 0.0
        for j in range(size):
            left[i] += abs(matrix[i, j])
    worst = 0.0
    for i in range(size):
        total = 0.0
        for k in range(size):
            total += abs(inverse[i, k]) * left[k]
        worst = max(worst, total)
    return worst


@kernel(allocates=False)
def _invert(matrix: Any, order: Any) -> bool:
    """Invert a small matrix in place by Gauss-Jordan elimination with partial pivoting; return
    whether it is not singular. `order` is a buffer for the permutation of the rows.
    """
    size = matrix.shape[0]
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        pivot = matrix[best, k]
        if not 0.0 < abs(pivot) < math.inf:
            return False
        order[k] = best
        matrix[best, k] = 1.0
        for j in range(size):
            matrix[best, j], matrix[k, j] = matrix[k, j], matrix[best, j] / pivot
        for i in range(size):
            if i != k:
                factor = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(size):
                    matrix[i, j] -= factor * matrix[k, j]
    for k in range(size - 1, -1, -1):
        other = int(order[k])
        if other != k:
            for i in range(size):
                matrix[i, k], matrix[i, other] = matrix[i, other], matrix[i, k]
    return True
