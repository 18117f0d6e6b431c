r"""The averages of `step.averages` for any loss and any label, in plain numpy.

The average over the new noise runs over the proximal point x, where $h = x + c\,l'(x)$ is explicit and kinks of
the loss are ends of panels. The derivatives in the label, for gradients, need $\partial l'/\partial p$ and
$\partial l''/\partial p$, which a loss does not tell: they are central differences, exact for a loss linear or
quadratic in its target.
"""

from __future__ import annotations

import math

import numpy as np

from ....arrays import Array
from ....losses import Loss
from ...quadrature.prox import proximal
from ...quadrature.rules import HERMITE_MAX, HERMITE_W, HERMITE_X, PANEL_W, PANEL_X
from ...step.averages import COUNT, named

INNER, LABEL = 12, 3
"""Rows of the inner averages, and the further ones of the label."""

DIFFERENCE = 1e-5
"""Half the distance of the points a central difference is taken from."""

HERMITE_NOISE = 0.2
"""Below this scale of the noise a smooth loss is averaged by Gauss-Hermite nodes."""


def noise_averages(
    loss: Loss,
    target: Array,
    centre: Array,
    noise: float,
    c: float,
    exponent: float,
    with_labels: bool = False,
) -> Array:
    r"""The inner averages $E[\,\cdot\,]$ over $h = $ `centre` + `noise` $g_2$, one column a point.

    Rows: f, f^2, k, g2 k, f k, g2 f k, f^2 k, k', g2 k', f k', k^2, l; with labels also
    $\partial f/\partial p$, $f\,\partial f/\partial p$, $\partial k/\partial p$ at a given h.
    """
    if noise <= HERMITE_NOISE and not loss.kinks:
        n = HERMITE_X[HERMITE_MAX][None, :]
        w = np.broadcast_to(HERMITE_W[HERMITE_MAX], (centre.size, HERMITE_MAX))
        x = proximal(loss, target[:, None], centre[:, None] + noise * n, c)
        f = loss.slope(target[:, None], x)
        curvature = loss.curvature(target[:, None], x)
    else:
        reach = math.sqrt(2.0 * exponent)
        cuts = np.linspace(-reach, reach, 9)
        edges = proximal(loss, target[:, None], centre[:, None] + noise * cuts, c)
        if loss.kinks:
            kinks = np.broadcast_to(np.asarray(loss.kinks), (centre.size, len(loss.kinks)))
            kinks = np.clip(kinks, edges[:, :1], edges[:, -1:])
            edges = np.sort(np.concatenate([edges, kinks], axis=1), axis=1)
        parts = int(np.clip(np.ceil(np.diff(edges, axis=1).max() * exponent / 60.0), 1, 40))
        share = np.arange(parts) / parts
        lo = (edges[:, :-1, None] + np.diff(edges, axis=1)[:, :, None] * share).reshape(
            centre.size, -1
        )
        half = (np.repeat(np.diff(edges, axis=1), parts, axis=1) / (2 * parts))[:, :, None]
        x = (lo[:, :, None] + half * (1.0 + PANEL_X)).reshape(centre.size, -1)
        f = loss.slope(target[:, None], x)
        curvature = loss.curvature(target[:, None], x)
        n = (x + c * f - centre[:, None]) / noise
        density = np.exp(-0.5 * n * n) / math.sqrt(2 * math.pi)
        w = (half * PANEL_W).reshape(centre.size, -1) * (1.0 + c * curvature) / noise * density
    slope = 1.0 / (1.0 + c * curvature)
    k = curvature * slope
    k3 = loss.third(target[:, None], x) * slope**3
    value = loss.value(target[:, None], x)
    rows = [
        f, f * f, k, n * k, f * k, n * f * k, f * f * k, k3, n * k3, f * k3, k * k, value,
    ]  # fmt: skip
    if with_labels:
        slope_p, curvature_p = label_derivatives(loss, target[:, None], x)
        f_p = slope_p * slope
        rows += [f_p, f * f_p, curvature_p * slope**2 - c * k3 * slope_p]
    averages = np.array([(w * row).sum(axis=1) for row in rows])
    for kink in loss.kinks:
        averages[7:10] += _at_kink(loss, kink, target, centre, noise, c)
        if with_labels:
            at = np.full(target.shape, kink)
            strength = _at_kink(loss, kink, target, centre, noise, c)[0]
            averages[14] -= c * strength * label_derivatives(loss, target, at)[0]
    return averages


def _at_kink(
    loss: Loss, kink: float, target: Array, centre: Array, noise: float, c: float
) -> Array:
    r"""What a jump of l'' at a kink adds to the averages of k', g2 k' and f k': there k' is a delta function.

    The kink of x is at $h = x + c\,l'(x)$, where h has the density $\varphi(n)/b$.
    """
    at = np.full(target.shape, kink)
    near = 1e-9 * (1.0 + abs(kink))
    below, above = (loss.curvature(target, at + side * near) for side in (-1.0, 1.0))
    f = loss.slope(target, at)
    n = (kink + c * f - centre) / noise
    jump = above / (1.0 + c * above) - below / (1.0 + c * below)
    strength = jump * np.exp(-0.5 * n * n) / (math.sqrt(2 * math.pi) * noise)
    return np.array([strength, n * strength, f * strength])


def label_derivatives(loss: Loss, target: Array, x: Array) -> tuple[Array, Array]:
    r"""$\partial l'/\partial p$ and $\partial l''/\partial p$; the differences stay between the classes if p does."""
    low, high = loss.classes
    inside = (low <= target) & (target <= high)
    below = np.where(inside, np.maximum(target - DIFFERENCE, low), target - DIFFERENCE)
    above = np.where(inside, np.minimum(target + DIFFERENCE, high), target + DIFFERENCE)
    width = above - below
    slope = (loss.slope(above, x) - loss.slope(below, x)) / width
    curvature = (loss.curvature(above, x) - loss.curvature(below, x)) / width
    return slope, curvature


def gather(s: Array, g: Array, w: Array, inner: Array) -> Array:
    """The averages, in the order of their record, from the inner ones at weighted points (s, g1)."""
    f, ff, k, nk, fk, nfk, ffk, k3, nk3, fk3, kk, value = inner[:INNER] * w
    out = np.zeros(COUNT)
    e = named(out)
    e.f, e.ff, e.k, e.nk, e.fk, e.nfk = (row.sum() for row in (f, ff, k, nk, fk, nfk))
    e.ffk, e.k3, e.nk3, e.fk3, e.kk, e.loss = (row.sum() for row in (ffk, k3, nk3, fk3, kk, value))
    e.sf, e.sk, e.snk, e.sfk, e.sk3 = (s @ row for row in (f, k, nk, fk, k3))
    e.gf, e.gk, e.gnk, e.gfk, e.gk3 = (g @ row for row in (f, k, nk, fk, k3))
    e.sgk, e.ggk, e.sgf, e.sff = (s * g) @ k, (g * g) @ k, (s * g) @ f, s @ ff
    return out


def gather_labels(s: Array, g: Array, w: Array, inner: Array, out: Array) -> None:
    """The averages that belong to the label; `w` holds the slope of the label too."""
    f, ff, k = inner[INNER:] * w
    e = named(out)
    e.y, e.fy, e.ky = (row.sum() for row in (f, ff, k))
    e.sy, e.sfy, e.sky = (s @ row for row in (f, ff, k))
    e.gy, e.gfy, e.gky = (g @ row for row in (f, ff, k))
    e.sgy, e.ggy = (s * g) @ f, (g * g) @ f


def gather_sharpness(s: Array, g: Array, w: Array, inner: Array) -> Array:
    """Derivatives of E[f], E[s f], E[g f], E[f^2], E[k] through the label; `w` holds its derivative."""
    f, ff, k = inner[INNER:] * w
    return np.array([f.sum(), (s * f).sum(), (g * f).sum(), 2.0 * ff.sum(), k.sum()])
