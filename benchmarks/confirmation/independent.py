r"""A second engine for the equations of one step, written from the formulas and sharing no code
with the package.

It is made to check, not to be fast. Averages are adaptive Gauss-Legendre panels in both noises.
Panels begin at thresholds, at jumps of the label and, in growing distances, around every place
where label or proximal point bend; a panel is accepted when its integrals agree with those of its
halves. Jacobians are differences. A `correction` is the Newton step at a given solution: the
distance to the root, to first order.

Losses: logistic in any units, squared, and Huber's, whose kinks move with the target.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

LOGISTIC, SQUARED, HUBER = 0, 1, 2
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
FEW_X, FEW_W = np.polynomial.hermite_e.hermegauss(8)
MORE_X, MORE_W = np.polynomial.hermite_e.hermegauss(24)
FEW_W, MORE_W = FEW_W / FEW_W.sum(), MORE_W / MORE_W.sum()
GRADES = np.array([0.0, 1.0, 3.5, 10.0, 38.0])
DEEPEST = 12
"""Most halvings of a panel."""

MOST = 300
"""Most panels that are halved in one average."""

COARSE = 1e-6
"""With this tolerance panels are not halved: good enough for differences."""

UNSETTLED = 1e-10
"""Averages with a larger estimate of their error, relative to their size, do not count."""

ROOT_TAU = math.sqrt(2.0 * math.pi)


class Loss(NamedTuple):
    """Which loss, its units (logistic: l(k x)/k) and its width (Huber)."""

    kind: int
    units: float = 1.0
    width: float = 1.0


class Step(NamedTuple):
    r"""What a step is given; `first` without old weights. `hard` labels have no sharpness.

    The unknowns are $(a - A\omega, \eta, B - C B', \ln r, \ln\chi)$ with anchors A and C: 0, or the
    sharpness.
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
def sigmoid(x: float) -> float:
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@njit(cache=True, error_model="numpy")
def bent(x: float) -> float:
    """The derivative of the sigmoid."""
    e = math.exp(-abs(x))
    return e / (1.0 + e) ** 2


@njit(cache=True, error_model="numpy")
def slope_soft(y: float, u: float) -> float:
    """sigma(y + u) - sigma(y) to full relative accuracy."""
    if abs(u) < 1.0:
        return -sigmoid(y + u) * sigmoid(-y) * math.expm1(-u)
    if y > 0 and y + u > 0:
        return sigmoid(-y) - sigmoid(-y - u)
    return sigmoid(y + u) - sigmoid(y)


@njit(cache=True, error_model="numpy")
def prox_soft(y: float, d: float, c: float) -> float:
    """u with u + c (sigma(y + u) - sigma(y)) = d: between 0 and d; Newton inside a bracket."""
    low, high = min(0.0, d), max(0.0, d)
    u = d / (1.0 + c * bent(y))
    for _ in range(200):
        if not low <= u <= high:
            u = 0.5 * (low + high)
        x = y + u
        value = u + c * slope_soft(y, u) - d
        if value > 0:
            high = u
        else:
            low = u
        move = -value / (1.0 + c * bent(x))
        if abs(move) <= 2e-16 * abs(u) or high - low <= 1e-16 * (abs(low) + abs(high)):
            return u + move
        u += move
    return u


@njit(cache=True, error_model="numpy")
def prox_hard(p: float, h: float, c: float) -> float:
    """x with x + c (sigma(x) - p) = h."""
    low, high = h - c * (1.0 - p), h + c * p
    x = min(max(0.0, low), high)
    for _ in range(200):
        f = sigmoid(x) if p == 0.0 else -sigmoid(-x)
        value = x + c * f - h
        if value > 0:
            high = x
        else:
            low = x
        move = -value / (1.0 + c * bent(x))
        new = x + move
        if abs(move) <= 2e-16 * abs(x) or high - low <= 1e-16 * (abs(low) + abs(high)):
            return new
        x = new if low <= new <= high else 0.5 * (low + high)
    return x


@njit(cache=True, error_model="numpy")
def trained(soft: bool, y: float, d: float, c: float, out: Any) -> float:
    """f, f^2 and k = df/dh at one field; y is the label's logit and d the field off it, or y is p
    and d the field.
    """
    if soft:
        u = prox_soft(y, d, c)
        f, x = slope_soft(y, u), y + u
    else:
        x = prox_hard(y, d, c)
        f, u = (sigmoid(x) if y == 0.0 else -sigmoid(-x)), x
    bend = bent(x)
    out[0], out[1], out[2] = f, f * f, bend / (1.0 + c * bend)
    return u


@njit(cache=True, error_model="numpy")
def at_u(soft: bool, y: float, u: float, c: float, out: Any) -> tuple[float, float]:
    """The same at a proximal point; the field, and its derivative in u."""
    x = y + u if soft else u
    f = slope_soft(y, u) if soft else (sigmoid(x) if y == 0.0 else -sigmoid(-x))
    bend = bent(x)
    out[0], out[1], out[2] = f, f * f, bend / (1.0 + c * bend)
    return u + c * f, 1.0 + c * bend


@njit(cache=True, error_model="numpy")
def panel_u(
    soft: bool, y: float, d0: float, b: float, c: float, lo: float, hi: float, out: Any
) -> None:
    """Integrals of f, f^2, k and 1 over a panel of the proximal point."""
    row = np.empty(3)
    half = 0.5 * (hi - lo)
    out[:] = 0.0
    for j in range(16):
        field, stretch = at_u(soft, y, lo + half * (1.0 + NODES[j]), c, row)
        g = (field - d0) / b
        w = half * WEIGHTS[j] * math.exp(-0.5 * g * g) / ROOT_TAU * stretch / b
        for i in range(3):
            out[i] += w * row[i]
        out[3] += w


@njit(cache=True, error_model="numpy")
def inner_logistic(
    soft: bool, y: float, d0: float, b: float, c: float, tol: float, out: Any
) -> None:
    """Averages over the new noise, field d0 + b g."""
    row = np.empty(3)
    out[:3] = 0.0
    if b < 0.3:
        nodes, weights = (FEW_X, FEW_W) if b < 0.03 else (MORE_X, MORE_W)
        for j in range(nodes.size):
            if weights[j] > 1e-20:
                trained(soft, y, d0 + b * nodes[j], c, row)
                for i in range(3):
                    out[i] += weights[j] * row[i]
        return
    if b < 1.2:
        for j in range(96):
            g = -9.6 + 3.2 * (j // 16) + 1.6 * (1.0 + NODES[j % 16])
            w = 1.6 * WEIGHTS[j % 16] * math.exp(-0.5 * g * g) / ROOT_TAU
            trained(soft, y, d0 + b * g, c, row)
            for i in range(3):
                out[i] += w * row[i]
        return
    edges = np.empty(27)
    n = 0
    for g in (-9.0, -5.0, -2.2, 0.0, 2.2, 5.0, 9.0):
        edges[n] = trained(soft, y, d0 + b * g, c, row)
        n += 1
    low, high = edges[0], edges[n - 1]
    bend = -y if soft else 0.0  # where x = 0
    for side in (-1.0, 1.0):
        for grade in GRADES[1:]:
            edges[n] = min(max(bend + side * grade, low), high)
            n += 1
    edges[n] = min(max(0.0, low), high)
    n += 1
    ends = np.sort(edges[:n])
    stack = np.empty((200, 3))
    whole, left, right = np.empty(4), np.empty(4), np.empty(4)
    size = np.zeros(4)
    count = 0
    for j in range(n - 1):
        if ends[j + 1] > ends[j]:
            stack[count, 0], stack[count, 1], stack[count, 2] = ends[j], ends[j + 1], 0
            count += 1
            panel_u(soft, y, d0, b, c, ends[j], ends[j + 1], whole)
            size += np.abs(whole)
            if tol >= COARSE:
                out[:3] += whole[:3]
    if tol >= COARSE:
        return
    while count > 0:
        count -= 1
        lo, hi, depth = stack[count]
        mid = lo + 0.47 * (hi - lo)
        panel_u(soft, y, d0, b, c, lo, hi, whole)
        panel_u(soft, y, d0, b, c, lo, mid, left)
        panel_u(soft, y, d0, b, c, mid, hi, right)
        good = depth >= DEEPEST or count > 190
        if not good:
            good = True
            for i in range(4):
                good &= abs(left[i] + right[i] - whole[i]) <= 0.1 * tol * size[i]
        if good:
            for i in range(3):
                out[i] += left[i] + right[i]
        else:
            stack[count, 0], stack[count, 1], stack[count, 2] = lo, mid, depth + 1
            stack[count + 1, 0], stack[count + 1, 1], stack[count + 1, 2] = mid, hi, depth + 1
            count += 2


@njit(cache=True, error_model="numpy")
def inner_huber(d0: float, b: float, c: float, width: float, out: Any) -> None:
    """The same for Huber's loss of the distance to the target: truncated moments, f =
    clip(d/(1+c)).
    """
    k = 1.0 / (1.0 + c)
    edge = width * (1.0 + c)
    lo, hi = (-edge - d0) / b, (edge - d0) / b
    below, above = 0.5 * math.erfc(-lo / math.sqrt(2.0)), 0.5 * math.erfc(hi / math.sqrt(2.0))
    if lo > 0:  # the middle, without cancellation
        inside = 0.5 * (math.erfc(lo / math.sqrt(2.0)) - math.erfc(hi / math.sqrt(2.0)))
    elif hi < 0:
        inside = 0.5 * (math.erfc(-hi / math.sqrt(2.0)) - math.erfc(-lo / math.sqrt(2.0)))
    else:
        inside = 0.5 * (math.erf(hi / math.sqrt(2.0)) - math.erf(lo / math.sqrt(2.0)))
    at_lo, at_hi = math.exp(-0.5 * lo * lo) / ROOT_TAU, math.exp(-0.5 * hi * hi) / ROOT_TAU
    first = at_lo - at_hi
    second = inside + (lo * at_lo if at_lo > 0 else 0.0) - (hi * at_hi if at_hi > 0 else 0.0)
    out[0] = k * (d0 * inside + b * first) + width * (above - below)
    out[1] = k * k * (d0 * d0 * inside + 2 * d0 * b * first + b * b * second) + width**2 * (
        above + below
    )
    out[2] = k * inside


@njit(cache=True, error_model="numpy")
def fields(step: Any, z: Any, s: float, g: float) -> tuple[float, float, float]:
    """Previous logit, field, and the field off the label's logit."""
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
    """Averages of f, f^2, k over the new noise at one point (s, g1)."""
    loss = step.loss
    c = math.exp(z[4]) * step.delta
    b = math.sqrt(step.delta) * math.hypot(math.sqrt(step.nu2) * z[1], math.exp(z[3]))
    before, field, off = fields(step, z, s, g)
    if loss.kind == LOGISTIC:
        k = loss.units
        if step.first or step.hard:
            up = s > 0 if step.first else before > 0
            inner_logistic(False, 1.0 if up else 0.0, k * field, k * b, k * c, tol, out)
        else:
            inner_logistic(True, k * step.sharpness * before, k * off, k * b, k * c, tol, out)
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
    """Integrals of 1, f, g f, f^2, k, |f|, |g f| over selected points of a panel in g1."""
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
    """Ends of panels in g1: the range, thresholds, the jump of the label, and distances from where
    things bend.
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
    """The integrals over the selected points of a class; whether the panels settled."""
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
    """The five equations of the step."""
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
    """Relative distance of a solution from the root, and whether the averages settled."""

    distance: float
    settled: bool
    z: Any


def scales(step: Step, z: Any) -> Any:
    """Sizes of changes in the unknowns: of the weights, the bias, the logarithms."""
    size = math.hypot(z[0], math.sqrt(step.nu2) * z[1], math.exp(z[3]))
    return np.array(
        [size, max(abs(z[1]), size), max(abs(z[2]), math.sqrt(step.delta) * size), 1, 1]
    )


def jacobian(step: Step, z: Any) -> Any:
    """Differences on a coarser rule."""
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
    """A change of the unknowns against the state: weights by their norm, the bias by itself and the
    logits.
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
    """How far z is from the root: Newton steps until they no longer change the distance."""
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
