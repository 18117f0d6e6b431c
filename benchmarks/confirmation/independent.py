r"""A second engine for the equations of one step, written from the formulas, without code of the
package.

It serves to check the package and need not be fast. Averages use adaptive Gauss-Legendre panels in
both noises: the old noise g (of the previous model's logit) and the new one. Panels end at
thresholds, at jumps of the label and, at growing distances, around every point at which label or
proximal point bend; a panel is accepted if its integrals agree with those of its halves. Jacobians
are finite differences. A `correction` is the Newton step at a given solution, which is, to first
order, the distance to the root.

Losses: logistic in any units, squared, and Huber's, whose kinks move with the target.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .independent_noise import (
    COARSE,
    DEEPEST,
    GRADES,
    NODES,
    ROOT_TAU,
    WEIGHTS,
    Label,
    inner_huber,
    inner_logistic,
)

LOGISTIC, SQUARED, HUBER = 0, 1, 2

MOST = 300
"""Largest number of panels that are halved in one average."""

UNSETTLED = 1e-10
"""Averages with a larger relative error estimate are not settled."""


class Loss(NamedTuple):
    """The kind of a loss, its units k (logistic: l(k x)/k) and its width (Huber)."""

    kind: int
    units: float = 1.0
    width: float = 1.0


class Step(NamedTuple):
    r"""The inputs of a step.

    The unknowns are $(a - A\omega, \eta, B - C B', \ln r, \ln\chi)$; the anchors A and C, 0 or the
    sharpness, avoid cancellation.

    Attributes:
        first: whether it is step 0, without previous weights.
        hard: whether labels are hard; the sharpness is then not used.
        anchor, bias_anchor: A and C.
    """

    loss: Loss
    first: bool
    omega: float
    mu: float
    nu2: float
    old_bias: float
    alpha: float
    rho: float
    delta: float
    ridge: float
    threshold: float
    sharpness: float
    hard: bool
    fixed_bias: bool
    bias: float
    anchor: float
    bias_anchor: float


@njit(cache=True, error_model="numpy")
def fields(step: Any, z: Any, s: float, g: float) -> tuple[float, float, float]:
    """Return the previous logit, the field, and the field relative to the label's logit."""
    root = math.sqrt(step.delta)
    noise = root * g
    change = s * (step.mu * z[0] + step.nu2 * z[1]) + z[2] + noise * z[0]
    if step.first:
        return 0.0, s * z[1] + z[2], 0.0
    mean = step.omega * (s * step.mu + noise)
    before = mean + step.old_bias
    field = step.anchor * mean + step.bias_anchor * step.old_bias + change
    if step.hard:
        return before, field, 0.0
    off = (step.anchor - step.sharpness) * mean
    off += (step.bias_anchor - step.sharpness) * step.old_bias
    return before, field, off + change


@njit(cache=True, error_model="numpy")
def inner(step: Any, z: Any, s: float, g: float, tol: float, out: Any) -> None:
    """Write the averages of f, f^2, k over the new noise, at class s and old noise g, to `out`."""
    loss = step.loss
    c = math.exp(z[4]) * step.delta
    b = math.sqrt(step.delta) * math.hypot(math.sqrt(step.nu2) * z[1], math.exp(z[3]))
    before, field, off = fields(step, z, s, g)
    if loss.kind == LOGISTIC:
        k = loss.units
        if step.first or step.hard:
            up = s > 0 if step.first else before > 0
            label = Label(False, 1.0 if up else 0.0, k * field, k * b, k * c)
        else:
            label = Label(True, k * step.sharpness * before, k * off, k * b, k * c)
        inner_logistic(label, tol, out)
        out[2] *= k
        return
    if step.first or step.hard:
        up = s > 0 if step.first else before > 0
        off = field - (1.0 if up else -1.0)
    if loss.kind == SQUARED:
        k = 1.0 / (1.0 + c)
        out[0], out[1], out[2] = k * off, k * k * (off * off + b * b), k
    else:
        inner_huber(off, b, c, loss.width, out)


@njit(cache=True, error_model="numpy")
def panel(step: Any, z: Any, s: float, lo: float, hi: float, tol: float, out: Any) -> None:
    """Write the integrals of 1, f, g f, f^2, k, |f|, |g f| over the selected part of a panel of the
    old noise to `out`.
    """
    row = np.empty(4)
    half = 0.5 * (hi - lo)
    out[:] = 0.0
    middle = fields(step, z, s, 0.5 * (lo + hi))[0]
    if not step.first and not abs(middle) > step.threshold * step.omega:
        return
    for j in range(16):
        g = lo + half * (1.0 + NODES[j])
        w = half * WEIGHTS[j] * math.exp(-0.5 * g * g) / ROOT_TAU
        if w > 0.0:
            inner(step, z, s, g, tol, row)
            out[0] += w
            out[1] += w * row[0]
            out[2] += w * g * row[0]
            out[3] += w * row[1]
            out[4] += w * row[2]
            out[5] += w * abs(row[0])
            out[6] += w * abs(g * row[0])


@njit(cache=True, error_model="numpy")
def outer_ends(step: Any, z: Any, s: float) -> Any:
    """Return the ends of the initial panels of the old noise: the range, thresholds, the jump of
    the label, and growing distances from bends of the integrand.
    """
    spread = math.sqrt(step.delta) * step.omega
    centre = s * step.mu * step.omega + step.old_bias
    jump = -centre / spread
    low_edge = (-step.threshold * step.omega - centre) / spread
    high_edge = (step.threshold * step.omega - centre) / spread
    deep = 0.0
    if low_edge < 0.0 < high_edge:
        deep = min(-low_edge, high_edge)
    tilt = 0.0
    k = step.loss.units
    if not step.hard:
        tilt = min(k * step.sharpness * spread, abs(jump))
    reach = math.sqrt(deep * deep + 2 * 40.0) + min(tilt, 30.0)
    found = np.empty(120)
    n = 0
    for j in range(8):
        found[n] = -reach + 2 * reach * j / 7
        n += 1
    for x in (low_edge, high_edge, jump):
        found[n] = x
        n += 1
    if not step.hard and step.loss.kind == LOGISTIC:
        for side in (-1.0, 1.0):
            for grade in GRADES[1:]:
                found[n] = jump + side * grade / (k * step.sharpness * spread)
                n += 1
    _, here, off = fields(step, z, s, 0.0)
    _, there, off_there = fields(step, z, s, 1.0)
    c = math.exp(z[4]) * step.delta
    b = math.sqrt(step.delta) * math.hypot(math.sqrt(step.nu2) * z[1], math.exp(z[3]))
    rate = there - here
    if step.loss.kind == LOGISTIC and rate != 0.0:
        for place in (-c, 0.0, c):
            at = (place - here) / rate
            for side in (-1.0, 1.0):
                for grade in GRADES[:4:2]:
                    found[n] = at + side * grade * (1.0 / k + b) / abs(rate)
                    n += 1
    if step.loss.kind == HUBER:
        edge = step.loss.width * (1.0 + c)
        for target in (-1.0, 1.0):
            value, slope = (here - target, rate) if step.hard else (off, off_there - off)
            for place in (-edge, edge):
                if slope != 0.0:
                    for side in (-1.0, 1.0):
                        for grade in GRADES[:4:2]:
                            found[n] = (place - value + side * grade * b) / slope
                            n += 1
    ends = found[:n]
    for i in range(n):
        ends[i] = min(max(ends[i], -reach), reach) if ends[i] == ends[i] else 0.0
    return np.sort(ends)


@njit(cache=True, error_model="numpy")
def class_integrals(step: Any, z: Any, s: float, tol: float, total: Any) -> bool:
    """Write the integrals over the selected part of a class to `total`; return whether they
    converged.
    """
    total[:] = 0.0
    if step.first:
        row = np.empty(4)
        inner(step, z, s, 0.0, tol, row)
        total[0], total[1], total[3], total[4], total[5] = 1.0, row[0], row[1], row[2], abs(row[0])
        return True
    ends = outer_ends(step, z, s)
    stack = np.empty((400, 3))
    saved = np.empty((400, 7))
    left, right, size = np.empty(7), np.empty(7), np.zeros(7)
    count = 0
    for j in range(ends.size - 1):
        if ends[j + 1] > ends[j]:
            stack[count, 0], stack[count, 1], stack[count, 2] = ends[j], ends[j + 1], 0
            panel(step, z, s, ends[j], ends[j + 1], tol, saved[count])
            size += np.abs(saved[count])
            count += 1
    size[1], size[2] = size[5], size[6]
    if tol >= COARSE:
        for j in range(count):
            total += saved[j]
        return True
    doubt, used = 0.0, 0
    while count > 0:
        count -= 1
        lo, hi, depth = stack[count]
        whole = saved[count].copy()
        if whole[0] == 0.0:
            continue
        mid = lo + 0.47 * (hi - lo)
        panel(step, z, s, lo, mid, tol, left)
        panel(step, z, s, mid, hi, tol, right)
        used += 1
        good = True
        for i in range(5):
            good &= abs(left[i] + right[i] - whole[i]) <= tol * size[i]
        if not good and (depth >= DEEPEST or used > MOST):
            good = True
            for i in range(5):
                if size[i] > 0:
                    doubt = max(doubt, abs(left[i] + right[i] - whole[i]) / size[i])
        if good:
            total += left + right
        else:
            stack[count, 0], stack[count, 1], stack[count, 2] = lo, mid, depth + 1
            saved[count] = left
            stack[count + 1, 0], stack[count + 1, 1], stack[count + 1, 2] = mid, hi, depth + 1
            saved[count + 1] = right
            count += 2
    return doubt < UNSETTLED


@njit(cache=True, error_model="numpy")
def residual(step: Any, z: Any, tol: float, out: Any) -> bool:
    """Write the residuals of the five equations of a step to `out`; return whether the averages
    converged.
    """
    total, sums = np.empty(7), np.zeros(5)  # share, f, s f, g f, f^2 and k apart
    square, stiff = 0.0, 0.0
    settled = True
    for s, share in ((1.0, step.rho), (-1.0, 1.0 - step.rho)):
        settled &= class_integrals(step, z, s, tol, total)
        sums[0] += share * total[0]
        sums[1] += share * total[1]
        sums[2] += share * s * total[1]
        sums[3] += share * total[2]
        square += share * total[3]
        stiff += share * total[4]
    a = step.anchor * step.omega + z[0]
    pull = -step.alpha * sums[2]
    hat = step.alpha * step.delta * stiff + step.ridge
    out[0] = step.ridge * a - step.mu * pull + step.alpha * math.sqrt(step.delta) * sums[3]
    if step.first:
        out[0] = z[0]
    out[1] = hat * z[1] - pull
    out[2] = sums[1] / sums[0]
    if step.fixed_bias:
        out[2] = z[2] - step.bias
    out[3] = math.log(step.alpha * step.delta * square) + 2.0 * z[4] - 2.0 * z[3]
    out[4] = z[4] + math.log(hat)
    return settled


class Verdict(NamedTuple):
    """Relative distance of a solution from the root z, and whether the averages converged."""

    distance: float
    settled: bool
    z: Any


def scales(step: Step, z: Any) -> Any:
    """Return the scale of each unknown: norm of the weights, bias, 1 for the logarithms."""
    size = math.hypot(z[0], math.sqrt(step.nu2) * z[1], math.exp(z[3]))
    return np.array(
        [size, max(abs(z[1]), size), max(abs(z[2]), math.sqrt(step.delta) * size), 1, 1]
    )


def jacobian(step: Step, z: Any) -> Any:
    """Return the Jacobian by finite differences, with averages of lower accuracy."""
    moves = 1e-3 * scales(step, z)
    here, there, columns = np.empty(5), np.empty(5), np.empty((5, 5))
    residual(step, z, COARSE, here)
    for i in range(5):
        moved = z.copy()
        moved[i] += moves[i]
        residual(step, moved, COARSE, there)
        columns[:, i] = (there - here) / (moved[i] - z[i])
    return columns


def relative(step: Step, z: Any, dz: Any) -> float:
    """Return the relative size of a change of the unknowns: weights relative to their norm, the
    bias relative to itself and the spread of the logits.
    """
    nu = math.sqrt(step.nu2)
    a = step.anchor * step.omega + z[0]
    bias = step.bias_anchor * step.old_bias + z[2]
    norm = math.hypot(a, nu * z[1], math.exp(z[3]))
    parts = [
        abs(dz[0]) / norm,
        nu * abs(dz[1]) / norm,
        abs(dz[2]) / (abs(bias) + math.sqrt(step.delta) * norm),
        abs(dz[3]),
        abs(dz[4]),
    ]
    return float(max(parts))


def correction(step: Step, z: Any, tol: float = 1e-11) -> Verdict:
    """Return the distance of z from the root, by Newton steps until it no longer changes."""
    start, value = z.copy(), np.empty(5)
    distance, settled = math.nan, True
    for _ in range(4):
        settled &= residual(step, z, tol, value)
        slopes = jacobian(step, z)
        unit = scales(step, z)
        rows = np.abs(slopes * unit).max(axis=1)
        if not (np.isfinite(slopes).all() and np.isfinite(value).all() and (rows > 0).all()):
            return Verdict(math.nan, False, z)
        try:
            dz = -unit * np.linalg.solve(slopes * unit / rows[:, None], value / rows)
        except np.linalg.LinAlgError:
            return Verdict(math.nan, False, z)
        if step.first:
            dz[0] = 0.0
        z = z + np.clip(dz, -unit, unit)
        last, distance = distance, relative(step, start, z - start)
        if distance < 1e-9 or abs(distance - last) < 0.1 * distance:
            break
    return Verdict(distance, settled, z)
