r"""The fit of one step in the revealed frame, without any vector of N entries.

With $e_1 = v/\sqrt N$ and $e_2$ along the rest of the previous weights, the ridge loss of a
Gaussian mixture is invariant under rotations of all other directions. The *frame* E is the list of
directions $e_1, \dots, e_k$ in which the data are known so far. A gradient $X^\top r$ leaves the
frame only along $\sqrt\Delta\,(I - E E^\top) Z^\top r$. Conditionally on what is known, this is a
uniformly random new direction of length $\sqrt\Delta\,\rho\,\beta$, with $\rho$ the norm of the
part of r outside the span U of the residuals used so far, and $\beta \sim \chi_{N-k}$. It becomes
$e_{k+1}$, and its column is $Z e_{k+1} = \beta u + (I - U U^\top - u u^\top) g$, with u the new
unit residual and g a new Gaussian vector. So weights are represented by k numbers, and the law is
exact.

The minimum is found by Newton steps over the frame and the bias. With every new direction the
Hessian gets a new row, at the current point, and after every step a BFGS correction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from .frame_newton import (
    MOST_TAKEN_BACK,
    Objective,
    OpenFit,
    append_direction,
    full_hessian,
    kept_share,
    make,
    open_fit,
    secant,
    shorten,
    slopes_at,
    sound_step,
    take_back,
)
from .passes import (
    FLAT,
    LOGISTIC,
    Filled,
    FreshColumn,
    NewDirection,
    PassSums,
    advance,
    dot,
    split,
    total_loss,
)

SETTLED, FULL, LOST = 0, 1, 2
"""How a fit ends: converged; more columns (or double precision) are needed; not converged."""

TAKEN_BACK, INSIDE_MOVES = 3, 12
"""The Hessian is recomputed after a step was shortened this many times, or after this many steps in
a row within the frame.
"""

ROUNDING = 2.0**-50
"""Rounding error of a residual, relative to targets and residuals."""

EXPLORED = 12
"""With fewer directions than this the Hessian does not allow an estimate for further ones: then the
error bound is that of strong convexity, the slope divided by the ridge.
"""

SMALL_RIDGE, SMALL_RESIDUAL = 5e-3, 0.03
"""A logistic fit is saturated if its ridge is below `SMALL_RIDGE` times the number of samples, and
both the root mean square of its residuals and its mean curvature are below `SMALL_RESIDUAL`: then
the curvature of the loss is hardly larger than the ridge.
"""

EASY, DOUBT = 32, 4.0
"""A logistic fit with more than `EASY` directions is ill-conditioned: its error is estimated with a
recomputed Hessian and multiplied by `DOUBT`.
"""

INSIDE_FIRST = 10.0
"""No new direction is added while the Newton step within the frame exceeds the expected step along
a new one by this factor.
"""

STEEPEST = 0.91
"""Upper bound of the squared last entry of a column of the inverse Hessian, relative to the squared
column: a single direction says little about the decay of the column along the frame.
"""

PASSES = 3000
"""Largest number of passes over the samples in a fit."""


class FitStart(NamedTuple):
    """The start of a fit: coordinates in the frame (overwritten by the minimiser), the bias, and
    whether it is trained.
    """

    point: Any
    bias: float
    train_bias: bool


class Law(NamedTuple):
    r"""The ridge, and the law of the part of the data that is not revealed yet.

    Attributes:
        ridge: $\lambda N$.
        scale: $\sqrt\Delta$.
        lengths: draws of $\chi_{N-k}$ by the size k of the frame; 0 if the frame is complete.
        key: key of the random columns.
    """

    ridge: float
    scale: float
    lengths: Any
    key: Any


class FitPoint(NamedTuple):
    """A point of the fit: coordinates, q, m and the bias."""

    coordinates: Any
    q: float
    m: float
    bias: float


class Outside(NamedTuple):
    r"""Quantities that determine the error from directions outside the frame.

    Attributes:
        slope: gradient along the next direction.
        root: $\sqrt N$.
        faint: norm of the weights below which rounding errors exceed the tolerance.
    """

    slope: float
    root: float
    faint: float


class FrameFit(NamedTuple):
    """The result of a fit.

    Attributes:
        ended: SETTLED, FULL or LOST.
        frame, revealed: sizes of the frame and of the span of the residuals.
        bias: the bias.
        error: estimated relative error.
        blur: norm of the weights that rounding errors alone may cause.
    """

    ended: int
    frame: int
    revealed: int
    bias: float
    error: float
    blur: float


@kernel(nogil=True)
def fit_frame(
    loss: Any, columns: Any, frame: Any, rows: Any, start: Any, law: Any, tolerance: float
) -> FrameFit:
    """Minimise over the bias and the frame, which is extended as needed.

    Arguments:
        columns: buffers; the first `frame` columns of x are given.
        frame: initial size of the frame.
        tolerance: relative accuracy of q, m and the bias.
    """
    point, bias, train_bias = start
    ridge, scale, lengths, key = law
    fit = open_fit(Objective(loss, ridge, train_bias), columns, rows, point)
    hessian, gradient, before, move, step = fit.work
    room = columns.x.shape[0]
    sums = PassSums(np.zeros(room), np.zeros(room), np.zeros(room))
    shift, descent, stiffness, grain, error, blur = bias, 0.0, 0.0, 0.0, np.inf, 0.0
    coarse = np.sqrt(dot(rows.targets, rows.targets, rows.targets.size))
    # Typed constants: with literals the compiler would specialise every pass.
    revealed: Any = np.int64(0)
    draw: Any = np.bool_(True)
    taken_back, moves_inside = 0, 0
    last = FitPoint(point, np.inf, np.inf, np.inf)
    for passes in range(PASSES):
        if frame == room:
            return FrameFit(FULL, frame, revealed, bias, error, blur)
        sums.slopes[:] = 0.0
        sums.along[:] = 0.0
        filled, noise = Filled(frame, revealed), FreshColumn(key, draw)
        pull, square, cross = advance(loss, columns, filled, rows, (step, shift), noise, sums)
        draw = np.bool_(False)
        if not (np.isfinite(pull) and np.isfinite(square)) or separates(loss, ridge, rows):
            return FrameFit(LOST, frame, revealed, bias, error, blur)
        slopes_at(fit.objective, pull, sums.slopes, point, frame, gradient)
        if passes > 0 and taken_back < MOST_TAKEN_BACK:
            kept = kept_share(descent, dot(gradient, move, frame + 1))
            if kept < 1.0:
                taken_back += 1
                shift = take_back(fit.work, point, frame, kept)
                bias += shift
                continue
        if passes == 0 or taken_back >= TAKEN_BACK or moves_inside >= INSIDE_MOVES:
            full_hessian(fit, frame)
            stiffness = stiffness if passes else hessian[frame, frame]
            moves_inside = 0
        else:
            secant(hessian, move, gradient, before, frame + 1)
        taken_back = 0
        inside, outside = split(columns.u, revealed, rows.change, sums.along, square)
        grain = max(grain, ROUNDING * (coarse + np.sqrt(square)))
        more = lengths[frame] > 0.0 and revealed < rows.logits.size
        more = more and outside > max(grain, FLAT * np.sqrt(square))
        slope = scale * outside * lengths[frame] if more else 0.0
        q = dot(point, point, frame)
        now = FitPoint(point, q, point[0], bias)
        soft = saturated(fit)
        if soft and columns.x.itemsize < 8:
            return FrameFit(FULL, frame, revealed, bias, error, blur)
        blur = scale * grain * lengths[0] / (ridge if soft else stiffness)
        off = Outside(slope, lengths[0], blur / tolerance)
        newton, error = judge(fit, filled, now, last, off, tolerance, soft)
        if error < tolerance:
            return FrameFit(SETTLED, frame, revealed, bias, error, blur)
        last = now
        moves_inside += 1
        if more and np.sqrt(dot(newton[1:], newton[1:], frame)) < INSIDE_FIRST * slope / stiffness:
            weight = lengths[frame] - (cross - dot(inside, sums.fresh, revealed)) / outside
            new = NewDirection(inside, sums.fresh[:revealed], outside, weight, scale)
            append_direction(fit, filled, new)
            frame, revealed, moves_inside, draw = frame + 1, revealed + 1, 0, np.bool_(True)
            stiffness = hessian[frame, frame]
            newton, _ = sound_step(fit, frame)
            sums.fresh[:] = 0.0
        if loss == LOGISTIC:
            shorten(newton, frame + 1, scale, np.sqrt(q), bias)
        descent = dot(gradient, newton, frame + 1)
        shift = make(fit.work, point, frame, newton)
        bias += shift
    return FrameFit(LOST, frame, revealed, bias, error, blur)


@kernel(nogil=True)
def judge(
    fit: Any, filled: Any, now: Any, last: Any, off: Any, tolerance: float, soft: bool
) -> tuple[Any, float]:
    """Return the Newton step at a point, and the estimated relative error of q, m and the bias; for
    a `soft` (saturated) fit the error is at least the bound from strong convexity.
    """
    frame, revealed = filled
    loss, ridge, _ = fit.objective
    newton, column = sound_step(fit, frame)
    downhill, bound = off.slope if revealed < EXPLORED else 0.0, 0.0
    if soft:
        inside = fit.work.gradient[1:]
        downhill = np.sqrt(off.slope**2 + dot(inside, inside, frame))
    if downhill > 0.0:
        bound = 2.0 * downhill / (ridge * max(np.sqrt(now.q), off.faint))
    error = max(accuracy(now, last, newton, column, frame, off), bound)
    # The bound comes first: a Hessian costs as much as dozens of passes, and cannot lower it.
    if (
        error < tolerance
        and loss == LOGISTIC
        and (frame > EASY or 2 * frame > fit.rows.logits.size)
    ):
        full_hessian(fit, frame)
        newton, column = sound_step(fit, frame)
        error = max(DOUBT * accuracy(now, last, newton, column, frame, off), bound)
    return newton, error


@kernel(nogil=True)
def accuracy(now: Any, last: Any, newton: Any, column: Any, frame: Any, off: Any) -> float:
    r"""Return the estimated relative error of q, m and B, from the Newton step within the frame and
    the slope outside it (`off`).

    Directions couple to their neighbours, as in Lanczos' method: along the frame the last column of
    the inverse Hessian decays as $R^j$, with $1 - R^2$ the ratio of its squared last entry to its
    squared norm. If the frame continues in the same way, the column of the next direction is the
    last one times $R/(1-R^2)$, and its norm $\sqrt{1+R^2}/(1-R^2)$ times as large. In addition, the
    given directions and the bias have random overlaps with it, of order $N^{-1/2}$ from each of the
    $1/(1-R^2)$ nearest ones. The last changes of q, m and B, which decay as $R^2$, give a second
    estimate. For weights smaller than `off.faint` the error is relative to that norm, because of
    rounding.
    """
    point, q, m, bias = now
    slope, root, faint = off
    size = max(np.sqrt(q), faint)
    square = dot(column, column, frame + 1)
    ending = min(STEEPEST, column[frame] * column[frame] / square)
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


@kernel(nogil=True)
def saturated(fit: OpenFit) -> bool:
    """Return whether a logistic fit with a small ridge separates its samples, so that residuals
    almost vanish.

    Then some directions have no more curvature than the ridge, even if the frame does not show it;
    and single precision, relative to the initial residuals, is too coarse for the final ones.
    """
    loss, ridge, _ = fit.objective
    _, targets, base, change = fit.rows
    count = targets.size
    if loss != LOGISTIC or ridge >= SMALL_RIDGE * count:
        return False
    square, curvature = 0.0, 0.0
    for i in range(count):
        residual = base[i] + change[i]
        sigma = targets[i] + residual
        square += residual * residual
        curvature += sigma * (1.0 - sigma)  # with soft targets large even if residuals are small
    return bool(square < SMALL_RESIDUAL**2 * count and curvature < SMALL_RESIDUAL * count)


@kernel(nogil=True)
def separates(loss: Any, ridge: float, rows: Any) -> bool:
    """Return whether a fit without ridge has no minimum because its samples are separated: if the
    total logistic loss is below ln 2, all margins are positive.
    """
    return ridge == 0.0 and loss == LOGISTIC and total_loss(loss, rows[0], rows[1]) < np.log(2.0)
