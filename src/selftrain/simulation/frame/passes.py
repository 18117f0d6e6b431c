r"""Passes over the samples (rows) of a batch, compiled: the expensive part of the frame engine.

There are M rows; the columns are the few directions of the frame. `x[j]` is $X e_j$ for the frame
vector $e_j$, and `u[j]` an orthonormal basis of the residuals whose product $Z^\top r$ has been
revealed. Both are stored in single precision (the rounded numbers define the matrix, so this is no
error); arithmetic is in double precision except for products of two stored columns. A pass goes
over tiles of rows that fit into the cache, and does all work on a tile at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit

from ...runtime.kernels import kernel
from .normals import TILE, fill_tile

LOGISTIC, SQUARED, WEIGHTED = 0, 1, 2
"""Losses: logistic and squared with targets p; $p x^2/2$ with weights p (for probes of the
Hessian).
"""

FLAT = 1e-11
"""If the part of a change of the residuals outside the revealed span is a smaller fraction than
this of the whole, it is rounding error and set to zero.
"""

_FAST = {"contract", "reassoc", "nsz", "arcp"}


class Columns(NamedTuple):
    """Buffers for the columns `x` of the frame and `u` of the revealed residuals; each column is a
    row of these arrays.
    """

    x: Any
    u: Any


class Filled(NamedTuple):
    """Numbers of columns of `x` and of `u` that are filled."""

    frame: Any
    revealed: Any


class BatchRows(NamedTuple):
    """Values of each row of the batch; a pass overwrites all but the targets.

    `base` is the last residual within the revealed span, `change` the current residual minus
    `base`. For a probe, `targets` are curvatures.
    """

    logits: Any
    targets: Any
    base: Any
    change: Any


class FreshColumn(NamedTuple):
    """The random key of the Gaussian columns, and whether this pass draws the next column."""

    key: Any
    draw: Any


class PassSums(NamedTuple):
    r"""The sums of a pass: $X^\top r$, $U^\top$ change, and $U^\top g$ for a new column g."""

    slopes: Any
    along: Any
    fresh: Any


class NewDirection(NamedTuple):
    r"""A direction to append: the coordinates `inside` of the change and `fresh` of g in the
    revealed span, the `length` $\rho$ of the change outside, the `weight` $w = \beta - u_{new}
    \cdot g$, and the `scale` $\sqrt\Delta$.
    """

    inside: Any
    fresh: Any
    length: float
    weight: float
    scale: float


@njit(inline="always")
def _exp_of_minus(x: Any) -> Any:
    """Return exp(-x) for 0 <= x <= 700: a power of two from its bits, times a Taylor series of
    order 12.
    """
    shifted = np.float64(x * -1.4426950408889634 + 6755399441055744.0)
    n = shifted - 6755399441055744.0
    t = (-x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = t * (1.0 / 479001600.0) + 1.0 / 39916800.0
    p = p * t + 1.0 / 3628800.0
    p = p * t + 1.0 / 362880.0
    p = p * t + 1.0 / 40320.0
    p = p * t + 1.0 / 5040.0
    p = p * t + 1.0 / 720.0
    p = p * t + 1.0 / 120.0
    p = p * t + 1.0 / 24.0
    p = p * t + 1.0 / 6.0
    p = p * t + 0.5
    p = p * t + 1.0
    p = p * t + 1.0
    power = np.int64((shifted.view(np.int64) + int64(1023)) << int64(52)).view(np.float64)
    return p * power


@njit(inline="always")
def _sigmoid(x: Any) -> Any:
    e = _exp_of_minus(min(abs(x), 700.0))
    inverse = 1.0 / (1.0 + e)
    return inverse if x >= 0 else e * inverse


# No reassociation here: `_exp_of_minus` relies on the order of its sums.
@kernel(nogil=True, fastmath={"contract", "nsz"})
def residuals(loss: Any, logits: Any, targets: Any, out: Any) -> None:
    """Write the slopes of the loss to `out`."""
    if loss == LOGISTIC:
        for i in range(logits.size):
            out[i] = _sigmoid(logits[i]) - targets[i]
    elif loss == SQUARED:
        for i in range(logits.size):
            out[i] = logits[i] - targets[i]
    else:
        for i in range(logits.size):
            out[i] = logits[i] * targets[i]


@kernel(nogil=True, fastmath={"contract", "nsz"})
def curvatures(loss: Any, residual: Any, targets: Any, out: Any) -> None:
    """Write the curvatures of the loss to `out`, from residuals and targets."""
    if loss == LOGISTIC:
        for i in range(residual.size):
            sigma = residual[i] + targets[i]
            out[i] = sigma * (1.0 - sigma)
    elif loss == SQUARED:
        for i in range(residual.size):
            out[i] = 1.0
    else:
        for i in range(residual.size):
            out[i] = targets[i]


@kernel(nogil=True, fastmath=_FAST)
def accumulate(columns: Any, count: Any, first: Any, coefficients: Any, out: Any) -> None:
    """Add sum_j coefficients[j] columns[j] to `out`, on one tile of rows."""
    size = out.size
    j = 0
    while j + 4 <= count:
        a, b, c, d = coefficients[j], coefficients[j + 1], coefficients[j + 2], coefficients[j + 3]
        ca, cb = columns[j, first : first + size], columns[j + 1, first : first + size]
        cc, cd = columns[j + 2, first : first + size], columns[j + 3, first : first + size]
        for i in range(size):
            out[i] += (a * ca[i] + b * cb[i]) + (c * cc[i] + d * cd[i])
        j += 4
    while j < count:
        a = coefficients[j]
        ca = columns[j, first : first + size]
        for i in range(size):
            out[i] += a * ca[i]
        j += 1


@kernel(nogil=True, fastmath=_FAST)
def project(columns: Any, count: Any, first: Any, vector: Any, out: Any) -> None:
    """Add columns[j] . vector to out[j], on one tile of rows."""
    size = vector.size
    j = 0
    while j + 4 <= count:
        ca, cb = columns[j, first : first + size], columns[j + 1, first : first + size]
        cc, cd = columns[j + 2, first : first + size], columns[j + 3, first : first + size]
        sa = sb = sc = sd = 0.0
        for i in range(size):
            sa += ca[i] * vector[i]
            sb += cb[i] * vector[i]
            sc += cc[i] * vector[i]
            sd += cd[i] * vector[i]
        out[j] += sa
        out[j + 1] += sb
        out[j + 2] += sc
        out[j + 3] += sd
        j += 4
    while j < count:
        ca = columns[j, first : first + size]
        sa = 0.0
        for i in range(size):
            sa += ca[i] * vector[i]
        out[j] += sa
        j += 1


@kernel(nogil=True)
def dot(a: Any, b: Any, size: Any) -> float:
    """Return the inner product of the first `size` entries, summed in order."""
    total: float = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@kernel(nogil=True, fastmath=_FAST)
def inner(a: Any, b: Any) -> float:
    """Return the inner product a . b, vectorised."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(nogil=True, fastmath=_FAST)
def total(a: Any) -> float:
    """Return the sum of the entries."""
    result = 0.0
    for i in range(a.size):
        result += a[i]
    return result


@kernel(nogil=True)
def advance(
    loss: Any, columns: Any, filled: Any, rows: Any, move: Any, noise: Any, sums: Any
) -> tuple[float, float, float]:
    r"""Make a `move` (a step in the frame and a shift of the bias), and compute the sums that the
    next move needs.

    With `noise.draw`, x[frame] is filled with new normals g. Adds to `sums`; returns $\sum r$,
    |change|^2 and change . g.
    """
    x, u = columns
    frame, revealed = filled
    logits, targets, base, change = rows
    step, shift = move
    key, draw = noise
    slopes, along, fresh = sums
    residual, normals = np.empty(TILE), np.empty(TILE, np.float32)
    pull = square = cross = 0.0
    for tile in range((logits.size + TILE - 1) // TILE):
        first = tile * TILE
        size = min(TILE, logits.size - first)
        here = slice(first, first + size)
        logit, r, moved = logits[here], residual[:size], change[here]
        for i in range(size):
            logit[i] += shift
        accumulate(x, frame, first, step, logit)
        residuals(loss, logit, targets[here], r)
        for i in range(size):
            moved[i] = r[i] - base[first + i]
        if draw:
            fill_tile(key, frame, tile, normals)
            for i in range(size):
                x[frame, first + i] = normals[i]
        g = x[frame, here]
        project(x, frame, first, r, slopes)
        project(u, revealed, first, moved, along)
        if draw:
            project(u, revealed, first, g, fresh)
        pull += total(r)
        square += inner(moved, moved)
        cross += inner(moved, g)
    return pull, square, cross


@kernel(nogil=True)
def split_again(u: Any, revealed: Any, change: Any, inside: Any, correction: Any) -> float:
    """Make a second Gram-Schmidt pass: add U . (change - U inside) to `correction`, and return the
    squared norm of the rest.
    """
    rest = np.empty(TILE)
    minus = -inside
    square = 0.0
    for first in range(0, change.size, TILE):
        size = min(TILE, change.size - first)
        e = rest[:size]
        for i in range(size):
            e[i] = change[first + i]
        accumulate(u, revealed, first, minus, e)
        project(u, revealed, first, e, correction)
        square += inner(e, e)
    return square


@kernel(nogil=True)
def split(u: Any, revealed: Any, change: Any, along: Any, square: float) -> tuple[Any, float]:
    """Return the coordinates of the change of residuals in the revealed span, and the length of the
    rest.
    """
    inside = along[:revealed].copy()
    rest = square - dot(inside, inside, revealed)
    if rest < 0.5 * square:
        correction = np.zeros(revealed)
        rest = split_again(u, revealed, change, inside, correction)
        rest -= dot(correction, correction, revealed)
        for j in range(revealed):
            inside[j] += correction[j]
    return inside, np.sqrt(max(rest, 0.0))


@kernel(nogil=True)
def reveal(
    loss: Any, columns: Any, filled: Any, rows: Any, new: Any, hessian_row: Any
) -> tuple[float, float]:
    r"""Append a direction to u and x: $u_{new} = (dr - U a)/\rho$, $x_{new} = \sqrt\Delta\,(g -
    U h + w\,u_{new})$.

    With `new.length` = 0 only x is extended ($x_{new} = \sqrt\Delta\,(g - U h)$). Adds the new row
    of $X^\top D X$ to `hessian_row` (up to its length); returns the entry of the bias and the slope
    $x_{new} \cdot r$.
    """
    x, u = columns
    frame, revealed = filled
    _, targets, base, change = rows
    inside, fresh, length, weight, scale = new
    rest_buffer, noise_buffer, curved = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    minus_inside, minus_fresh = -inside, -fresh
    with_bias = slope = 0.0
    for first in range(0, targets.size, TILE):
        size = min(TILE, targets.size - first)
        here = slice(first, first + size)
        rest, noise, d = rest_buffer[:size], noise_buffer[:size], curved[:size]
        for i in range(size):
            noise[i] = x[frame, first + i]
        accumulate(u, revealed, first, minus_fresh, noise)
        if length > 0.0:
            for i in range(size):
                rest[i] = change[first + i]
            accumulate(u, revealed, first, minus_inside, rest)
            for i in range(size):
                direction = rest[i] / length
                u[revealed, first + i] = direction
                noise[i] += weight * direction
                base[first + i] += change[first + i]
        for i in range(size):
            x[frame, first + i] = scale * noise[i]
        r = base[here]
        curvatures(loss, r, targets[here], d)
        column = x[frame, here]
        slope += inner(column, r)
        for i in range(size):
            d[i] *= column[i]
        with_bias += total(d)
        project(x, hessian_row.size, first, d, hessian_row)
    return with_bias, slope


@kernel(nogil=True)
def soft_targets(loss: Any, sharpness: float, logits: Any) -> None:
    """Replace logits by the link of the sharpened logits."""
    for i in range(logits.size):
        scaled = sharpness * logits[i]
        logits[i] = _sigmoid(scaled) if loss == LOGISTIC else scaled


@kernel(nogil=True)
def total_loss(loss: Any, logits: Any, targets: Any) -> float:
    """Return the sum of the loss over the rows."""
    result = 0.0
    for i in range(logits.size):
        u = logits[i]
        if loss == LOGISTIC:
            result += np.log1p(np.exp(-abs(u))) + max(u, 0.0) - targets[i] * u
        else:
            result += 0.5 * (u - targets[i]) ** 2
    return result
