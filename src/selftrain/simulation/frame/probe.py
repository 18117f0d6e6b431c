r"""A probe of the susceptibility in the revealed frame.

$\chi = \frac1N \mathrm{tr}\,(X^\top D X/N + \lambda)^{-1}$ is estimated by random probes z. For
each, conjugate gradients solve a linear system; the columns they need are drawn as in the fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.kernels import kernel
from .frame_fit import FULL, SETTLED
from .passes import (
    FLAT,
    WEIGHTED,
    Filled,
    FreshColumn,
    NewDirection,
    PassSums,
    advance,
    dot,
    reveal,
    split,
)

MOST_DIRECTIONS = 400
"""Largest number of directions of a probe, which then returns its current estimate."""


@kernel(nogil=True)
def probe_frame(
    columns: Any, filled: Any, rows: Any, probe: Any, law: Any, tolerance: float
) -> tuple[int, float]:
    r"""Return how the probe ended and $z^\top (X^\top D X + \kappa)^{-1} z$, by conjugate gradients
    that reveal more of the same matrix.

    Arguments:
        rows: with the curvatures D in place of the targets.
        probe: the coordinates of z in the frame, then its length outside.
    """
    ridge, scale, lengths, key = law
    frame, revealed = filled
    logits, _, base, change = rows
    loss, noise = np.int64(WEIGHTED), FreshColumn(key, np.bool_(True))
    room = columns.x.shape[0]
    sums = PassSums(np.zeros(room), np.zeros(room), np.zeros(room))
    slopes, along, fresh = sums
    residual, direction, none = np.zeros(room), np.zeros(room), np.zeros(0)
    start = frame
    for j in range(frame + 1):
        residual[j] = probe[j]
    if lengths[frame] > 0.0:
        if frame + 1 >= room:
            return FULL, np.nan
        logits[:] = 0.0
        base[:] = 0.0
        advance(loss, columns, filled, rows, (direction, 0.0), noise, sums)
        new = NewDirection(none, fresh[:revealed], 0.0, 0.0, scale)
        reveal(loss, columns, filled, rows, new, none)
        frame += 1
    for j in range(frame):
        direction[j] = residual[j]
    square, form = dot(residual, residual, frame), 0.0
    while True:
        if frame >= room:
            return FULL, np.nan
        logits[:] = 0.0
        base[:] = 0.0
        slopes[:] = 0.0
        along[:] = 0.0
        fresh[:] = 0.0
        now = Filled(frame, revealed)
        _, size, cross = advance(loss, columns, now, rows, (direction, 0.0), noise, sums)
        bent = dot(direction, slopes, frame) + ridge * dot(direction, direction, frame)
        length = square / bent
        gain = length * square
        form += gain
        for j in range(frame):
            residual[j] -= length * (slopes[j] + ridge * direction[j])
        inside, outside = split(columns.u, revealed, change, along, size)
        if lengths[frame] > 0.0 and revealed < logits.size and outside > FLAT * np.sqrt(size):
            weight = lengths[frame] - (cross - dot(inside, fresh, revealed)) / outside
            new = NewDirection(inside, fresh[:revealed], outside, weight, scale)
            _, slope = reveal(loss, columns, now, rows, new, none)
            residual[frame] = -length * slope
            direction[frame] = 0.0
            frame += 1
            revealed += 1
        before, square = square, dot(residual, residual, frame)
        if gain * square / before < tolerance * form or frame - start > MOST_DIRECTIONS:
            return SETTLED, form
        for j in range(frame):
            direction[j] = residual[j] + square / before * direction[j]
