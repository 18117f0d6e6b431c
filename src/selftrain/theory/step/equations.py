r"""The equations of one step (Definition `def: self-consistent equations`): residuals and Jacobian
in the conjugates.

With the fields of `geometry.modes` (or `geometry.matrices`) and the averages of every group of
samples,

    a_k = \alpha p_k P_k(\text{selected})
    \hat m = -\sum_k a_k E_k[s f]
    T_k = a_k \{ E_k[g_1 f]/\sqrt{q'_k} - (\psi_k - \gamma_0) E_k[\partial f/\partial h] \}
    0 = \sum_k a_k E_k[f]
    \hat Q_k = a_k E_k[\partial f/\partial h]
    \hat\chi_k = a_k E_k[f^2]

A group is a class with its own covariance, or both classes where they share one. The T are the
conjugates $\hat R$, integrated by parts and measured from $\gamma_0\hat Q$, so that a step that
hardly moves is a small one. The step is a convex problem (docs/theory-derivations.md), so its
solution is unique and a confirmed residual is proof.

Where each equation of the paper's definition is (step t, step 0):

    \hat Q     `eq:rs-saddle-hatq`, `eq:rs-saddle-qhat0`        here
    \hat\chi   `eq:rs-saddle-hatchi`, `eq:rs-saddle-chihat0`    here
    \hat m     `eq:rs-saddle-hatm`, `eq:rs-saddle-mhat0`        here
    \hat R     `eq:rs-saddle-hatr`                              by parts, in T
    B          `eq:rs-saddle-b`, `eq:rs-saddle-b0`              here
    q, m, R    `eq:rs-saddle-q`, `eq:rs-saddle-m`, `eq:rs-saddle-r`,
               `eq:rs-saddle-q0`, `eq:rs-saddle-m0`             `geometry.modes.advance`
    \chi       `eq:rs-saddle-chi`, `eq:rs-saddle-chi0`          `geometry.modes.advance`: tr G/N
    \hat u     `eq:rs-saddle-uhat`, `eq:rs-saddle-uhat0`        `averages.prox_panels.prox`
    h          `eq:rs-saddle-local-field1`, `eq:rs-saddle-local-field2`,
               `eq:rs-saddle-local-field0`
               (`eq: intuitive hu1`, `eq: intuitive hu2`)       `averages.batch`
"""

from __future__ import annotations

import math
from typing import Any

from ...runtime.kernels import kernel
from ..averages.batch import Labelling
from ..geometry.modes import BIAS, FIRST, HAT_M
from ..tolerances import LONGEST_LOG_STEP, LONGEST_STEP, NO_STIFFNESS


@kernel(allocates=False)
def assemble(
    x: Any, fields: Any, moments: Any, labels: Labelling, fixed: tuple[float, float, float],
    system: Any,
) -> None:  # fmt: skip
    """Residuals (column 0 of `system`) and Jacobian (the others).

    `fixed` is (anchor of the fields, the value of a fixed bias or NaN, 1 in step 0 else 0).
    """
    anchor, fixed_bias, first = fixed
    groups = moments.shape[0]
    size = x.shape[0]
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    for i in range(size):
        for j in range(size + 1):
            system[i, j] = 0.0
    system[HAT_M, 0] = x[HAT_M]
    system[HAT_M, 1 + HAT_M] = 1.0
    for k in range(groups):
        e = moments[k]
        a = e.share
        root = labels.roots[k]
        psi = fields[1 + k, 0] + (anchor - labels.gamma)
        system[HAT_M, 0] += a * e.sf
        system[BIAS, 0] += a * e.f
        system[t0 + k, 0] = x[t0 + k]
        system[q0 + k, 0] = x[q0 + k] - math.log(a * e.k)
        system[x0 + k, 0] = x[x0 + k] - math.log(a * e.ff)
        if first == 0.0:
            system[t0 + k, 0] -= a * (e.gf / root - psi * e.k)
        for j in range(size):
            shift = fields[0, 1 + j]
            turn = fields[1 + k, 1 + j]
            tilt = turn * root
            wide = fields[1 + groups + k, 1 + j]
            c = fields[1 + 2 * groups + k, 1 + j]
            lift = 1.0 if j == BIAS else 0.0
            d_f = e.sk * shift + e.gk * tilt + e.nk * wide - e.fk * c + e.k * lift
            d_sf = e.k * shift + e.sgk * tilt + e.snk * wide - e.sfk * c + e.sk * lift
            d_gf = e.sgk * shift + e.ggk * tilt + e.gnk * wide - e.gfk * c + e.gk * lift
            d_ff = e.sfk * shift + e.gfk * tilt + e.nfk * wide - e.ffk * c + e.fk * lift
            d_k = e.sk3 * shift + e.gk3 * tilt + e.nk3 * wide - (e.fk3 + e.kk) * c + e.k3 * lift
            system[HAT_M, 1 + j] += a * d_sf
            system[BIAS, 1 + j] += a * d_f
            system[q0 + k, 1 + j] -= d_k / e.k
            system[x0 + k, 1 + j] -= 2.0 * d_ff / e.ff
            if first == 0.0:
                system[t0 + k, 1 + j] -= a * (d_gf / root - turn * e.k - psi * d_k)
        system[t0 + k, 1 + t0 + k] += 1.0
        system[q0 + k, 1 + q0 + k] += 1.0
        system[x0 + k, 1 + x0 + k] += 1.0
    if not math.isnan(fixed_bias):
        system[BIAS, 0] = x[BIAS] - fixed_bias
        for j in range(size):
            system[BIAS, 1 + j] = 1.0 if j == BIAS else 0.0


@kernel(allocates=False)
def solve_in_place(system: Any) -> bool:
    """Gaussian elimination with row scaling and partial pivoting of the equations `system` (the
    right side in column 0, where the solution is left); False if they are singular or not finite.
    """
    n = system.shape[0]
    for i in range(n):
        top = 0.0
        for j in range(1, n + 1):
            top = max(top, abs(system[i, j]))
        if not (0.0 < top < math.inf):
            return False
        scale = 1.0 / top
        for j in range(n + 1):
            system[i, j] *= scale
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(system[i, k + 1]) > abs(system[best, k + 1]):
                best = i
        if not abs(system[best, k + 1]) > 0.0:
            return False
        if best != k:
            for j in range(n + 1):
                system[k, j], system[best, j] = system[best, j], system[k, j]
        for i in range(k + 1, n):
            factor = system[i, k + 1] / system[k, k + 1]
            if factor != 0.0:
                for j in range(k + 2, n + 1):
                    system[i, j] -= factor * system[k, j]
                system[i, 0] -= factor * system[k, 0]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            system[k, 0] -= system[k, j + 1] * system[j, 0]
        system[k, 0] /= system[k, k + 1]
        if not abs(system[k, 0]) < math.inf:
            return False
    return True


@kernel(allocates=False)
def unknown_scales(x: Any, labels: Labelling, out: Any) -> None:
    """What changes of the unknowns at x are compared with: conjugates with the stiffness of their
    group, the bias with the logits, logarithms with 1.
    """
    groups = labels.roots.shape[0]
    stiffness = root = 0.0
    for k in range(groups):
        stiff = math.exp(x[FIRST + groups + k])
        stiffness = max(stiffness, stiff)
        root = max(root, labels.roots[k])
        out[FIRST + k] = stiff
        out[FIRST + groups + k] = 1.0
        out[FIRST + 2 * groups + k] = 1.0
    out[HAT_M] = abs(x[HAT_M]) + stiffness * root
    out[BIAS] = abs(labels.bias) + root


@kernel(allocates=False)
def newton_step(
    x: Any, fields: Any, labels: Labelling, anchor: float, ridge: float, softness: Any, system: Any
) -> tuple[float, float]:
    r"""The size of the Newton step relative to the state (infinite if there is none), and the
    factor that bounds it; the step is left in column 0 of `system`.

    The size is measured where it matters: in m, $\psi_k$, noise_k and $c_k$, in the bias and in the
    logarithms of $\hat Q$ and $\sqrt{\hat\chi}$.
    """
    size, groups = x.shape[0], labels.roots.shape[0]
    if not solve_in_place(system):
        return math.inf, 0.0
    for j in range(size):
        system[j, 0] = -system[j, 0]
    factor, old_scale = 1.0, 0.0
    scale = abs(fields[0, 0] + anchor * labels.m)
    for k in range(groups):
        root = labels.roots[k]
        along = (fields[1 + k, 0] + anchor) * root
        scale = max(scale, math.hypot(along, fields[1 + groups + k, 0]))
        old_scale = max(old_scale, root)
    bias = x[BIAS] + labels.gamma * labels.bias
    worst, largest = abs(system[BIAS, 0]) / (abs(bias) + scale), 0.0
    for row in range(1 + 3 * groups):
        moved = 0.0
        for j in range(size):
            moved += fields[row, 1 + j] * system[j, 0]
        if row > groups:
            worst = max(worst, abs(moved) / fields[row, 0])
        else:
            largest = max(largest, abs(moved) * (labels.roots[row - 1] if row > 0 else 1.0))
    worst = max(worst, largest / scale)
    for k in range(groups):
        stiff, noisy = FIRST + groups + k, FIRST + 2 * groups + k
        worst = max(worst, abs(system[stiff, 0]))
        worst = max(worst, 0.5 * abs(system[noisy, 0]))  # of the root of hat chi, as of weights
        factor = min(factor, LONGEST_LOG_STEP / abs(system[noisy, 0]))
        counts = math.exp(x[stiff]) * softness[k] >= NO_STIFFNESS * ridge
        if counts or system[stiff, 0] > 0.0:
            factor = min(factor, LONGEST_LOG_STEP / abs(system[stiff, 0]))
    longest = LONGEST_STEP * (scale + old_scale)
    if largest > longest:
        factor = min(factor, longest / largest)
    if not worst < math.inf:
        return math.inf, 0.0
    return worst, factor
