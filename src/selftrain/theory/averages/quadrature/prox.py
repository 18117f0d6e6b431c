r"""The proximal map of a loss: the trained logit of a point, given its local field.

Every average of the theory runs through the one-dimensional problems `eq:rs-saddle-uhat0` and
`eq:rs-saddle-uhat`, whose minimiser $\hat u$ enters as the trained logit $x = h + \hat u$. With
$c = \chi\Delta$ it is the root of

$$g(x) = x + c\,\partial_2 l(p, x) - h,$$

which increases with slope at least one. `proximal` finds it for arrays, for any convex loss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ....arrays import Array
from ....errors import InvalidInput
from ....losses import Loss

_EPS = float(np.finfo(float).eps)
_FARTHEST = 1e300
_SWEEPS = 500


def proximal(
    loss: Loss,
    target: ArrayLike,
    field: ArrayLike,
    strength: ArrayLike,
    start: ArrayLike = 0.0,
) -> Array:
    r"""Return $\mathrm{argmin}_x\,[(x-h)^2/(2c) + l(p, x)]$, to the accuracy of `loss.slope`.

    Since $\partial_2 l$ increases, the root of g lies between $h$ and $h - c\,\partial_2 l(p, h)$.
    Newton's method runs inside this bracket from its point nearest to `start` (for the logistic
    loss and 0 it then converges monotonically for every c). A step that leaves the bracket, or
    shrinks too slowly, is replaced by a bisection in $\mathrm{asinh}\,x$, which is fast also if the
    bracket spans many orders of magnitude. If g jumps through zero (at a kink of the loss), the
    bisection finds the jump.

    Arguments:
        loss: a convex loss; only `slope` and `curvature` are used.
        target: p, the label.
        field: h, the logit of the point under the model fitted without it.
        strength: c >= 0, how strongly the point changes its own logit.
        start: initial guess of x.

    Returns:
        The trained logits x, in the common shape of target, field and strength.

    >>> from selftrain.losses import Squared
    >>> proximal(Squared(), target=1.0, field=[0.0, 3.0], strength=1.0)
    array([0.5, 2. ])
    """
    arrays = (np.asarray(values, dtype=float) for values in (target, field, strength, start))
    p, h, c, x = np.broadcast_arrays(*arrays)
    with np.errstate(all="ignore"):
        return _root(loss, p.ravel(), h.ravel(), c.ravel(), x.ravel()).reshape(h.shape)


def _root(loss: Loss, p: Array, h: Array, c: Array, start: Array) -> Array:
    """Return the roots by a safeguarded Newton method, on the points that have not converged."""
    other_end = np.clip(h - c * _slope(loss, p, h), -_FARTHEST, _FARTHEST)
    low, high = np.minimum(h, other_end), np.maximum(h, other_end)
    x = np.clip(start, low, high)
    result: Array = x.copy()
    open_points = np.arange(h.size)
    last = high - low
    for _ in range(_SWEEPS):
        pull = c * _slope(loss, p, x)
        g = (x - h) + pull
        rate = 1.0 + c * loss.curvature(p, x)
        step = g / rate
        low, high = np.where(g < 0, x, low), np.where(g > 0, x, high)
        newton = x - step
        inside = (low <= newton) & (newton <= high)
        rounding = 2.0 * _EPS * (np.abs(x) + np.abs(h) + np.abs(pull))
        pinched = high - low <= 2.0 * _EPS * np.maximum(np.abs(low), np.abs(high))
        settled = (np.abs(g) <= rounding) & np.isfinite(g)
        done = settled | (np.abs(step) <= _EPS * np.abs(x)) | pinched
        result[open_points[done]] = np.where(inside, newton, x)[done]
        if done.all():
            return result
        quick = inside & (2.0 * np.abs(step) <= last)
        following = newton
        following[~quick] = _between(low[~quick], high[~quick])
        keep = ~done
        last = np.abs(following - x)[keep]
        open_points, x = open_points[keep], following[keep]
        p, h, c, low, high = p[keep], h[keep], c[keep], low[keep], high[keep]
    raise InvalidInput(
        "loss",
        getattr(loss, "name", loss),
        f"its proximal map was not found at target {p[0]:g}, field {h[0]:g}, strength {c[0]:g}; "
        "the slope has to increase with the logit and the curvature to be its derivative",
    )


def _slope(loss: Loss, p: Array, x: Array) -> Array:
    slope = np.asarray(loss.slope(p, x), dtype=float)
    bad = np.isnan(slope)
    if bad.any():
        where = f"target {p[bad][0]:g}, logit {x[bad][0]:g}"
        raise InvalidInput("loss", getattr(loss, "name", loss), f"its slope is NaN at {where}")
    return slope


def _between(low: Array, high: Array) -> Array:
    """Return the middle of a bracket: in asinh x while it is wide, in x once it is narrow."""
    wide = high - low > np.maximum(1.0, 1e-3 * np.abs(low))
    return np.where(
        wide, np.sinh(0.5 * (np.arcsinh(low) + np.arcsinh(high))), low + 0.5 * (high - low)
    )
