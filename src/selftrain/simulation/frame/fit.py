r"""The fit of one step in the revealed frame: no vector of N entries is ever formed.

With $e_1 = v/\sqrt N$ and $e_2$ along the rest of the previous weights, the ridge loss of a
Gaussian mixture is invariant under rotations of everything else. A gradient $X^\top r$ leaves the
frame only along $\sqrt\Delta\,(I - E E^\top) Z^\top r$; given what is known, that is a fresh
direction of length $\sqrt\Delta\,\rho\,\beta$ with $\rho$ the part of r outside the revealed
residuals U and $\beta \sim \chi_{N-k}$. Calling it $e_{k+1}$, its column is $Z e_{k+1} = \beta u +
(I - U U^\top - u u^\top) g$ with u the new unit residual and g fresh. So the N side of the problem
is k numbers, and the whole law is exact.

The minimiser moves by Newton steps over the frame and the bias. The Hessian gets its new row with
every direction, at the present point, and a BFGS correction from every move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from .newton import dot, newton_step, secant
from .passes import (
    LOGISTIC,
    Filled,
    FreshColumn,
    NewDirection,
    PassSums,
    advance,
    curvatures,
    project,
    residuals,
    reveal,
    split_again,
    total,
    total_loss,
)

SETTLED, FULL, LOST = 0, 1, 2
"""Ways a fit ends: converged, more columns are needed, no convergence."""

HALVINGS, INSIDE_MOVES = 3, 12
"""So many halvings of one move, or moves in a row inside the span: the Hessian is computed anew."""

ROUNDING = 2.0**-50
"""Of a residual, relative to targets and residuals."""

EXPLORED = 12
"""With fewer directions the Hessian is not known well enough to say what others would do: then only
the bound of strong convexity counts, the slope over the ridge.
"""

EASY, DOUBT = 32, 4.0
"""A logistic fit with more directions is ill-conditioned: its error is estimated on a Hessian
computed anew, and taken to be so many times larger.
"""

INSIDE_FIRST = 10.0
"""Stay in the known span while its Newton step exceeds the reach of a new direction by this
factor.
"""


PASSES = 3000
"""Passes over the rows that a fit may take."""


class FitStart(NamedTuple):
    """Where a fit starts: the coordinates in the frame (overwritten by the minimiser) and the bias,
    trained or not.
    """

    point: Any
    bias: float
    train_bias: bool


class Law(NamedTuple):
    r"""The law of what is not revealed yet.

    Attributes:
        ridge: $\lambda N$.
        scale: $\sqrt\Delta$.
        lengths: draws of $\chi_{N-k}$ by the size k of the frame; 0 where it is complete.
        key: of the random columns.
    """

    ridge: float
    scale: float
    lengths: Any
    key: Any


class FrameFit(NamedTuple):
    """How a fit ended, the size of the frame and of the revealed span, the bias, the error estimate
    that was reached, and the norm below which weights are lost in rounding.
    """

    ended: int
    frame: int
    revealed: int
    bias: float
    error: float
    faint: float


class FitPoint(NamedTuple):
    """A point of the fit: coordinates, q, m and the bias."""

    coordinates: Any
    q: float
    m: float
    bias: float


class Outside(NamedTuple):
    r"""What is known of the directions off the frame: the slope along the next one, $\sqrt N$, and
    the norm below which weights are lost in rounding.
    """

    slope: float
    root: float
    faint: float


@kernel(nogil=True, error_model="numpy")
def fit_frame(
    loss: Any, columns: Any, frame: Any, rows: Any, start: Any, law: Any, tolerance: float
) -> FrameFit:
    """Minimise over the bias and the frame, which grows as it must.

    Arguments:
        columns: with room for as many as may be needed; the first `frame` of x are given.
        tolerance: relative accuracy of q, m and the bias.
    """
    x, u = columns
    point, bias, train_bias = start
    ridge, scale, lengths, key = law
    logits, targets, base, change = rows
    room = x.shape[0]
    logits[:] = 0.0
    base[:] = 0.0
    hessian = np.zeros((room + 1, room + 1))
    gradient, before, move = np.zeros(room + 1), np.zeros(room + 1), np.zeros(room + 1)
    sums = PassSums(np.zeros(room), np.zeros(room), np.zeros(room))
    slopes, along, fresh = sums
    step, shift = point.copy(), bias
    descent, stiffness, grain, error, faint = 0.0, 0.0, 0.0, np.inf, 0.0
    coarse = np.sqrt(dot(targets, targets, targets.size))
    # Typed constants: a literal would make the compiler specialise every pass for it.
    revealed: Any = np.int64(0)
    draw: Any = np.bool_(True)
    halvings, moves_inside = 0, 0
    last = FitPoint(point, np.inf, np.inf, np.inf)
    for passes in range(PASSES):
        if frame == room:
            return FrameFit(FULL, frame, revealed, bias, error, faint)
        slopes[:] = 0.0
        along[:] = 0.0
        filled = Filled(frame, revealed)
        pull, square, cross = advance(
            loss, columns, filled, rows, (step, shift), FreshColumn(key, draw), sums
        )
        draw = np.bool_(False)
        if not (np.isfinite(pull) and np.isfinite(square)) or separates(loss, ridge, rows):
            return FrameFit(LOST, frame, revealed, bias, error, faint)
        gradient[0] = pull if train_bias else 0.0
        for j in range(frame):
            gradient[j + 1] = slopes[j] + ridge * point[j]
        if passes == 0:
            full_hessian(loss, x, frame, rows, ridge, train_bias, hessian)
            stiffness = hessian[frame, frame]
        else:
            ahead = dot(gradient, move, frame + 1)
            if ahead > 0.9 * abs(descent) and halvings < 40:
                kept = max(0.1, min(0.7, abs(descent) / (abs(descent) + ahead)))
                halvings += 1
                for j in range(frame):
                    step[j] = (kept - 1.0) * move[j + 1]
                    point[j] += step[j]
                shift = (kept - 1.0) * move[0]
                bias += shift
                for j in range(frame + 1):
                    move[j] *= kept
                continue
            if halvings >= HALVINGS or moves_inside >= INSIDE_MOVES:
                full_hessian(loss, x, frame, rows, ridge, train_bias, hessian)
                moves_inside = 0
            else:
                secant(hessian, move, gradient, before, frame + 1)
        halvings = 0
        inside, outside = split(u, revealed, change, along, square)
        grain = max(grain, ROUNDING * (coarse + np.sqrt(square)))
        extend = (
            lengths[frame] > 0.0
            and revealed < logits.size
            and outside > max(grain, 1e-11 * np.sqrt(square))
        )
        slope = scale * outside * lengths[frame] if extend else 0.0
        reach = slope / stiffness
        newton, column, sound = newton_step(hessian, gradient, frame + 1, 0.5 * ridge)
        if not sound:
            full_hessian(loss, x, frame, rows, ridge, train_bias, hessian)
            newton, column, sound = newton_step(hessian, gradient, frame + 1, 0.5 * ridge)
        q = dot(point, point, frame)
        inner = np.sqrt(dot(newton[1:], newton[1:], frame))
        now = FitPoint(point, q, point[0], bias)
        faint = scale * grain * lengths[0] / (stiffness * tolerance)
        off = Outside(slope, lengths[0], faint)
        error = accuracy(now, last, newton, column, frame, off)
        if revealed < EXPLORED and slope > 0.0:
            error = max(error, 2.0 * slope / (ridge * max(np.sqrt(q), faint)))
        if error < tolerance and frame > EASY and loss == LOGISTIC:
            full_hessian(loss, x, frame, rows, ridge, train_bias, hessian)
            newton, column, sound = newton_step(hessian, gradient, frame + 1, 0.5 * ridge)
            error = DOUBT * accuracy(now, last, newton, column, frame, off)
        if error < tolerance:
            return FrameFit(SETTLED, frame, revealed, bias, error, faint)
        last = now
        if extend and inner < INSIDE_FIRST * reach:
            weight = lengths[frame] - (cross - dot(inside, fresh, revealed)) / outside
            row = np.zeros(frame + 1)
            new = NewDirection(inside, fresh[:revealed], outside, weight, scale)
            with_bias, gradient[frame + 1] = reveal(loss, columns, filled, rows, new, row)
            frame += 1
            revealed += 1
            for j in range(frame):
                hessian[j + 1, frame] = hessian[frame, j + 1] = row[j]
            hessian[0, frame] = hessian[frame, 0] = with_bias if train_bias else 0.0
            hessian[frame, frame] += ridge
            stiffness = hessian[frame, frame]
            newton, column, sound = newton_step(hessian, gradient, frame + 1, 0.5 * ridge)
            if not sound:
                full_hessian(loss, x, frame, rows, ridge, train_bias, hessian)
                newton, column, sound = newton_step(hessian, gradient, frame + 1, 0.5 * ridge)
            moves_inside = 0
            draw = np.bool_(True)
            fresh[:] = 0.0
        else:
            moves_inside += 1
        if loss == LOGISTIC:
            shorten(newton, frame + 1, scale, np.sqrt(q), bias)
        descent = dot(gradient, newton, frame + 1)
        for j in range(frame + 1):
            move[j], before[j] = newton[j], gradient[j]
        for j in range(frame):
            step[j] = newton[j + 1]
            point[j] += step[j]
        shift = newton[0]
        bias += shift
    return FrameFit(LOST, frame, revealed, bias, error, faint)


@kernel(nogil=True, error_model="numpy")
def separates(loss: Any, ridge: float, rows: Any) -> bool:
    """Whether a fit without ridge has no minimum: a logistic loss below ln 2 has every margin
    positive.
    """
    return ridge == 0.0 and loss == LOGISTIC and total_loss(loss, rows[0], rows[1]) < np.log(2.0)


@kernel(nogil=True, error_model="numpy")
def shorten(newton: Any, size: Any, scale: float, norm: float, bias: float) -> None:
    """At most about double the spread of the logits in one move: beyond, the logistic loss is no
    parabola.
    """
    spread = scale * np.sqrt(dot(newton[1:], newton[1:], size - 1)) + abs(newton[0])
    most = 2.0 + scale * norm + abs(bias)
    if spread > most:
        for j in range(size):
            newton[j] *= most / spread


@kernel(nogil=True, error_model="numpy")
def accuracy(now: Any, last: Any, newton: Any, column: Any, frame: Any, off: Any) -> float:
    r"""Estimated relative error of q, m and B: what the Newton step and the slope `off` the frame
    still promise.

    Directions couple to their neighbours, as in Lanczos' method: along the frame the last column of
    the inverse Hessian falls as $R^j$, with $1 - R^2$ its last entry squared over its square. In a
    frame that goes on the same way, the column of the next direction is the last one times
    $R/(1-R^2)$, and its norm $\sqrt{1+R^2}/(1-R^2)$ times as large. Besides, the given directions
    and the bias overlap with it at random, by order $N^{-1/2}$ from each of the $1/(1-R^2)$ nearest
    ones. The last changes, which fall as $R^2$, are the second witness. Weights smaller than
    `off.faint` are measured by it: to know them better is beyond rounding.
    """
    point, q, m, bias = now
    slope, root, faint = off
    size = max(np.sqrt(q), faint)
    square = dot(column, column, frame + 1)
    ending = min(0.91, column[frame] * column[frame] / square)
    along = slope * np.sqrt(1.0 - ending) / ending
    away = slope * np.sqrt(square * (2.0 - ending)) / ending
    random = away / (root * np.sqrt(ending))
    shared, inside = 0.0, 0.0
    for j in range(frame):
        shared += abs(point[j] * column[j + 1])
        inside += point[j] * newton[j + 1]
    second = dot(newton[1:], newton[1:], frame) + away**2
    error = 2.0 * (abs(inside) + along * shared + random * np.sqrt(q)) + second
    error /= size**2
    error = max(error, (abs(newton[1]) + along * abs(column[1]) + random) / size)
    error = max(error, (abs(newton[0]) + along * abs(column[0]) + random) / (size + abs(bias)))
    moved = max(abs(q - last.q) / size**2, abs(m - last.m) / size)
    moved = max(moved, abs(bias - last.bias) / (size + abs(bias)))
    return float(max(error, moved * (1.0 - ending) / ending))


@kernel(nogil=True, error_model="numpy")
def split(u: Any, revealed: Any, change: Any, along: Any, square: float) -> tuple[Any, float]:
    """Coordinates of the change of residuals in the revealed span, and the length of the rest."""
    inside = along[:revealed].copy()
    rest = square - dot(inside, inside, revealed)
    if rest < 0.5 * square:
        correction = np.zeros(revealed)
        rest = split_again(u, revealed, change, inside, correction)
        rest -= dot(correction, correction, revealed)
        for j in range(revealed):
            inside[j] += correction[j]
    return inside, np.sqrt(max(rest, 0.0))


@kernel(nogil=True, error_model="numpy")
def full_hessian(
    loss: Any, x: Any, frame: Any, rows: Any, ridge: float, train_bias: bool, hessian: Any
) -> None:
    """Hessian over the bias (index 0; the identity if it is fixed) and the frame, at the present
    logits.
    """
    logits, targets, _, _ = rows
    curvature, weighted = np.empty(logits.size), np.empty(logits.size)
    residuals(loss, logits, targets, weighted)
    curvatures(loss, weighted, targets, curvature)
    hessian[0, 0] = total(curvature) if train_bias else 1.0
    for j in range(frame):
        for i in range(logits.size):
            weighted[i] = curvature[i] * x[j, i]
        row = np.zeros(j + 1)
        project(x, j + 1, np.int64(0), weighted, row)
        hessian[0, j + 1] = hessian[j + 1, 0] = total(weighted) if train_bias else 0.0
        for i in range(j + 1):
            hessian[i + 1, j + 1] = hessian[j + 1, i + 1] = row[i]
        hessian[j + 1, j + 1] += ridge
