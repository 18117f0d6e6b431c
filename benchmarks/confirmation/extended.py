r"""The equations of one step in extended precision, with exact derivatives.

Numbers are long doubles (64 bits of mantissa on most machines): after a cancellation of eight
digits, eleven are left. Derivatives are computed by complex steps, without subtraction: a parameter
gets an imaginary part of 1e-40, and the imaginary part of an equation, divided by it, is the
derivative. If the integrand jumps, the ends of the panels move into the complex plane with the
jump.

Steps and unknowns are those of `independent`; averages are computed here, on panels that are halved
until the integrals converge. Losses: logistic in any units, and squared.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import independent
from .extended_noise import NODES, REAL, TAIL, WEIGHTS, gaussian, inner
from .independent import LOGISTIC, Step

COMPLEX = np.clongdouble
TINY = REAL("1e-40")
"""Imaginary part of a complex step."""

SETTLED = 1e-15
"""Panels are halved until the relative change of the integrals is smaller than this."""

UNSETTLED = 1e-12
"""A step is undecided if the error estimate of its integrals is larger than this."""

GENERATIONS = 14
"""Largest number of halvings of a panel."""

FURTHEST = 36.0
"""Largest distance of a jump from zero; further out, densities underflow in `independent`."""

MOST_PANELS = 150
"""Largest number of panels of a class; a step that needs more is undecided."""

MOVING = (1, 2, 3)
"""Marks of panel ends that move with the parameters of a step: the two thresholds, and the jump of
a hard label."""


class Panels(NamedTuple):
    """Panels of the integral over the old noise: their ends, and marks of those that move."""

    low: Any
    high: Any
    low_mark: Any
    high_mark: Any


def old_logit(step: Step, s: float, g: Any) -> Any:
    """Return the logit of the previous model at class s and old noise g."""
    return step.omega * (s * step.mu + np.sqrt(step.delta) * g) + step.old_bias


def integrand(step: Step, z: Any, s: float, g: Any) -> tuple[Any, Any, Any]:
    """Return averages of f, f^2, k over the new noise at points g of the old one."""
    root = np.sqrt(step.delta)
    c = np.exp(z[4]) * step.delta
    b = np.sqrt(step.delta * (step.nu2 * z[1] ** 2 + np.exp(2 * z[3])))
    change = s * (step.mu * z[0] + step.nu2 * z[1]) + z[2] + root * g * z[0]
    up = np.full(np.shape(g), s > 0)
    if not step.first:
        mean = step.omega * (s * step.mu + root * g)
        up = np.real(mean + step.old_bias) > 0
    binary = step.first or step.hard
    if binary:
        field = change
        if not step.first:
            field = field + step.anchor * mean + step.bias_anchor * step.old_bias
        label, off = np.where(up, REAL(1), REAL(0)), field
    else:
        label = step.sharpness * (mean + step.old_bias)
        off = change + (step.anchor - step.sharpness) * mean
        off = off + (step.bias_anchor - step.sharpness) * step.old_bias
    if step.loss.kind == LOGISTIC:
        units = REAL(step.loss.units)
        logit = label if binary else units * label
        f, ff, k = inner(not binary, logit, units * (off + 0 * g), units * b, units * c)
        return f, ff, units * k
    if binary:
        off = off - (2 * label - 1)
    k = 1 / (1 + c)
    return k * off, k * k * (off * off + b * b), k + 0 * off


def _sums(step: Step, z: Any, s: float, low: Any, high: Any) -> Any:
    """Return integrals of 1, f, g f, f^2, k, |f| and |g f| over each panel."""
    half = 0.5 * (high - low)
    g = low[:, None] + half[:, None] * (1 + NODES)
    w = half[:, None] * WEIGHTS * gaussian(g)
    f, ff, k = integrand(step, z, s, g)
    size = np.abs(np.real(f)) * np.abs(w)
    rows = (w, f * w, g * f * w, ff * w, k * w, size, np.abs(np.real(g)) * size)
    return np.stack([row.sum(1) for row in rows], axis=1)


def _ends(step: Step, z: Any, s: float) -> Panels:
    """Return the initial panels, those of `independent`, with marks at the jumps."""
    plain: list[Any] = [
        float(np.real(x)) if isinstance(x, (np.floating, np.complexfloating)) else x for x in step
    ]
    found = independent.outer_ends(Step(*plain), np.real(z).astype(float), s)
    jumps = [(_jump(step, s, mark).real, mark) for mark in _marks(step)]
    # the only selected samples may be beyond a jump in the tail
    beyond = max((abs(x) for x, _ in jumps if abs(x) < FURTHEST), default=0.0)
    reach = REAL(max(abs(found[0]), abs(found[-1]), math.hypot(beyond, TAIL)))
    marks = [(REAL(x), 0) for x in (-reach, *found, reach)]
    jumps = [(x, mark) for x, mark in jumps if abs(x) < reach]
    clear = [(x, 0) for x, _ in marks if all(abs(x - y) > 1e-9 for y, _ in jumps)]
    ordered = sorted(clear + jumps)
    apart = [ordered[0]]
    for end in ordered[1:]:
        if end[0] - apart[-1][0] > 1e-12:
            apart.append(end)
    x = np.array([end[0] for end in apart], dtype=REAL)
    mark = np.array([end[1] for end in apart])
    panels = Panels(x[:-1], x[1:], mark[:-1], mark[1:])
    middle = old_logit(step, s, 0.5 * (x[:-1] + x[1:])).real
    chosen = np.abs(middle) > np.real(step.threshold * step.omega)
    return Panels(*(column[chosen] for column in panels))


def _marks(step: Step) -> tuple[int, ...]:
    if np.real(step.threshold) > 0:
        return MOVING[:2]
    return MOVING[2:] if step.hard else ()


def _jump(step: Step, s: float, mark: int) -> Any:
    """Return the old noise at which the old logit equals a threshold or zero."""
    logit = {1: -step.threshold * step.omega, 2: step.threshold * step.omega, 3: 0.0}[mark]
    return (logit - s * step.mu * step.omega - step.old_bias) / (np.sqrt(step.delta) * step.omega)


def settle(step: Step, z: Any, s: float) -> tuple[Panels, float]:
    """Return panels on which the integrals have converged, and their error estimate."""
    todo = _ends(step, z, s)
    done: list[Panels] = []
    values = _sums(step, z, s, todo.low, todo.high)
    size = np.abs(values).sum(0)
    size[1], size[2] = size[5], size[6]
    doubt = 0.0
    for generation in range(GENERATIONS):
        middle = 0.5 * (todo.low + todo.high)
        left, right = (
            _sums(step, z, s, todo.low, middle),
            _sums(step, z, s, middle, todo.high),
        )
        change = np.abs(left + right - values)[:, :5] / np.maximum(size[:5], REAL("1e-4000"))
        bad = change.max(1) > SETTLED
        done.append(Panels(*(column[~bad] for column in todo)))
        if not bad.any():
            break
        none = np.zeros(bad.sum(), dtype=int)
        halves = (
            Panels(todo.low[bad], middle[bad], todo.low_mark[bad], none),
            Panels(middle[bad], todo.high[bad], none, todo.high_mark[bad]),
        )
        if generation == GENERATIONS - 1 or sum(p.low.size for p in done) + bad.sum() > MOST_PANELS:
            doubt = float(change.max())
            done += halves
            break
        todo = Panels(*(np.concatenate(pair) for pair in zip(*halves, strict=True)))
        values = np.concatenate([left[bad], right[bad]])
    return Panels(*(np.concatenate(column) for column in zip(*done, strict=True))), doubt


def totals(step: Step, z: Any, s: float, panels: Panels) -> Any:
    """Return integrals of 1, f, g f, f^2, k over a class, including the motion of panel ends."""
    low, high = panels.low.astype(z.dtype), panels.high.astype(z.dtype)
    for mark in _marks(step):
        shift = _jump(step, s, mark)
        shift = shift - shift.real
        low = low + shift * (panels.low_mark == mark)
        high = high + shift * (panels.high_mark == mark)
    return _sums(step, z, s, low, high).sum(0)[:5]


def _first(step: Step, z: Any, s: float) -> Any:
    f, ff, k = integrand(step, z, s, np.zeros(1, dtype=z.dtype))
    return np.array([1, f[0], 0, ff[0], k[0]], dtype=z.dtype)


def residual(step: Step, z: Any, panels: dict[float, Panels]) -> Any:
    """Return the five equations of `independent`."""
    sums = np.zeros(6, dtype=z.dtype)  # share, f, s f, g f, f^2, k
    for s, share in ((1.0, step.rho), (-1.0, 1 - step.rho)):
        mass, f, gf, ff, k = _first(step, z, s) if step.first else totals(step, z, s, panels[s])
        sums += share * np.array([mass, f, s * f, gf, ff, k])
    mass, f, sf, gf, ff, k = sums
    a = step.anchor * step.omega + z[0]
    drive = -step.alpha * sf
    hat = step.alpha * step.delta * k + step.ridge
    return np.array(
        [
            z[0]
            if step.first
            else step.ridge * a - step.mu * drive + step.alpha * np.sqrt(step.delta) * gf,
            hat * z[1] - drive,
            z[2] - step.bias if step.fixed_bias else f / mass,
            np.log(step.alpha * step.delta * ff) + 2 * z[4] - 2 * z[3],
            z[4] + np.log(hat),
        ]
    )


class Solved(NamedTuple):
    """The equations of a step at a point.

    Attributes:
        value, jacobian: the residuals, and their derivatives with respect to the unknowns.
        panels: the panels of each class.
        doubt: error estimate of the averages.
    """

    value: Any
    jacobian: Any
    panels: dict[float, Panels]
    doubt: float


def extended(step: Step) -> Step:
    """Return the step with its numbers in long doubles."""
    wide: list[Any] = [REAL(x) if isinstance(x, (float, np.floating)) else x for x in step]
    return Step(*wide)


def at(step: Step, z: Any) -> Solved:
    """Evaluate the equations and their Jacobian at z."""
    z = np.asarray(z, dtype=REAL)
    panels, doubt = {}, 0.0
    if not step.first:
        for s in (1.0, -1.0):
            panels[s], unsettled = settle(step, z, s)
            doubt = max(doubt, unsettled)
    value = residual(step, z, panels)
    jacobian = np.empty((5, 5), dtype=REAL)
    for i in range(5):
        moved = z.astype(COMPLEX)
        moved[i] += 1j * TINY
        jacobian[:, i] = residual(step, moved, panels).imag / TINY
    return Solved(value, jacobian, panels, doubt)


def along(step: Step, z: Any, panels: dict[float, Panels], rates: dict[str, Any]) -> Any:
    """Return the derivative of the equations along a direction: rates of change of fields of the
    step.
    """
    moved = {name: getattr(step, name) + 1j * TINY * REAL(rate) for name, rate in rates.items()}
    return residual(step._replace(**moved), np.asarray(z, dtype=COMPLEX), panels).imag / TINY


def newton(step: Step, z: Any, solved: Solved, right: Any) -> Any:
    """Return the solution of the linear system with this right-hand side, in scaled doubles with
    one iterative refinement in long doubles.
    """
    unit = independent.scales(step, np.asarray(z, dtype=float)).astype(REAL)
    matrix = solved.jacobian * unit
    rows = np.abs(matrix).max(axis=1)
    matrix, right = matrix / rows[:, None], right / rows
    inverse = np.linalg.inv(matrix.astype(float)).astype(REAL)
    x = inverse @ right
    for _ in range(4):
        x = x + inverse @ (right - matrix @ x)
    return unit * x


def correction(step: Step, z: Any) -> independent.Verdict:
    """Return the distance of z from the root, which is found by Newton's method from z; so the
    result does not depend on the rounding of z.
    """
    step = extended(step)
    start = z = np.asarray(z, dtype=REAL)
    distance, doubt = math.nan, 0.0
    for _ in range(4):
        solved = at(step, z)
        doubt = max(doubt, solved.doubt)
        if not (np.isfinite(solved.value).all() and np.isfinite(solved.jacobian).all()):
            return independent.Verdict(math.nan, False, z)
        unit = independent.scales(step, z.astype(float))
        z = z + np.clip(newton(step, z, solved, -solved.value), -unit, unit)
        last, distance = distance, independent.relative(step, start, z - start)
        if distance < 1e-10 or abs(distance - last) < 0.1 * distance:
            break
    return independent.Verdict(distance, doubt < UNSETTLED, z)
