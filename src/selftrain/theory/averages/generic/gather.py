r"""The averages of `step.averages` for any loss and any label, from those of `noise` at weighted
points.
"""

from __future__ import annotations

import numpy as np

from ....arrays import Array
from ..record import COUNT, named
from .noise import INNER


def gather(s: Array, g: Array, w: Array, inner: Array) -> Array:
    """The averages, in the order of their record, from the inner ones at weighted points (s,
    g1).
    """
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
    """Derivatives of E[f], E[s f], E[g f], E[f^2], E[k] through the label; `w` holds its
    derivative.
    """
    f, ff, k = inner[INNER:] * w
    return np.array([f.sum(), (s * f).sum(), (g * f).sum(), 2.0 * ff.sum(), k.sum()])
