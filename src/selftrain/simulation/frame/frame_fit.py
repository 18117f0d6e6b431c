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
from .fit_accuracy import FitPoint, Outside, accuracy
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
"""Ways a fit ends: converged, more columns (or double precision) are needed, no convergence."""

TAKEN_BACK, INSIDE_MOVES = 3, 12
"""A move taken back so often, or so many moves in a row inside the span: the Hessian is
recomputed.
"""

ROUNDING = 2.0**-50
"""Of a residual, relative to targets and residuals."""

EXPLORED = 12
"""With fewer directions the Hessian is not known well enough to say what others would do: then only
the bound of strong convexity counts, the slope over the ridge.
"""

SMALL_RIDGE, SMALL_RESIDUAL = 5e-3, 0.03
"""A logistic fit is saturated where its ridge is below this number times the rows, and below the
other are both the root mean square of its residuals and the mean of its curvatures: then the loss
is hardly more curved than the ridge.
"""

EASY, DOUBT = 32, 4.0
"""A logistic fit with more directions is ill-conditioned: its error is estimated on a recomputed
Hessian, and taken to be so many times larger.
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
    that was reached, and the norm that rounding alone may give to weights.
    """

    ended: int
    frame: int
    revealed: int
    bias: float
    error: float
    blur: float


@kernel(nogil=True, error_model="numpy")
def fit_frame(
    loss: Any, columns: Any, frame: Any, rows: Any, start: Any, law: Any, tolerance: float
) -> FrameFit:
    """Minimise over the bias and the frame, which grows as it must.

    Arguments:
        columns: with room for as many as may be needed; the first `frame` of x are given.
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
    # Typed constants: a literal would make the compiler specialise every pass for it.
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


@kernel(nogil=True, error_model="numpy")
def judge(
    fit: Any, filled: Any, now: Any, last: Any, off: Any, tolerance: float, soft: bool
) -> tuple[Any, float]:
    """The Newton step at a point, and the estimated relative error of q, m and the bias there; in a
    `soft` (saturated) fit no smaller than strong convexity allows.
    """
    frame, revealed = filled
    loss, ridge, _ = fit.objective
    newton, column = sound_step(fit, frame)
    error = accuracy(now, last, newton, column, frame, off)
    if (
        error < tolerance
        and loss == LOGISTIC
        and (frame > EASY or 2 * frame > fit.rows.logits.size)
    ):
        full_hessian(fit, frame)
        newton, column = sound_step(fit, frame)
        error = DOUBT * accuracy(now, last, newton, column, frame, off)
    downhill = off.slope if revealed < EXPLORED else 0.0
    if soft:
        inside = fit.work.gradient[1:]
        downhill = np.sqrt(off.slope**2 + dot(inside, inside, frame))
    if downhill > 0.0:
        error = max(error, 2.0 * downhill / (ridge * max(np.sqrt(now.q), off.faint)))
    return newton, error


@kernel(nogil=True, error_model="numpy")
def saturated(fit: OpenFit) -> bool:
    """Whether a small ridge lets a logistic fit separate its rows, so that hardly a residual is
    left.

    Then some directions are as soft as the ridge, whatever the frame shows, and single precision,
    which is relative to the residuals of the start, knows too little of those of the end.
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
        curvature += sigma * (1.0 - sigma)  # of soft targets it may be large at small residuals
    return bool(square < SMALL_RESIDUAL**2 * count and curvature < SMALL_RESIDUAL * count)


@kernel(nogil=True, error_model="numpy")
def separates(loss: Any, ridge: float, rows: Any) -> bool:
    """Whether a fit without ridge has no minimum: a logistic loss below ln 2 has every margin
    positive.
    """
    return ridge == 0.0 and loss == LOGISTIC and total_loss(loss, rows[0], rows[1]) < np.log(2.0)
