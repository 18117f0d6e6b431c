r"""Hardness of soft labels: $E|2p - 1|$ over their batch, from 0 (one half) to 1 (hard)."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.legendre import leggauss

REACH = 12.0
"""Gaussian tails beyond so many standard deviations are left out: below 1e-32."""

PANELS, NODES = 64, 12


def hardness(m: float, q: float, bias: float, rho: float, delta: float, sharpness: float) -> float:
    r"""Compute $E|\tanh(\gamma\tilde h/2)|$ for logits $\tilde h = s m + B + \sqrt{q\Delta}\,g$.

    Arguments:
        m, q, bias: the model that labels.
        rho, delta: the batch.
        sharpness: $\gamma$.

    >>> round(hardness(0.0, 1.0, 0.0, 0.5, 1.0, 1e9), 6)
    1.0
    >>> abs(hardness(1e-9, 1e-12, 0.5, 0.3, 1.0, 2.0) - math.tanh(0.5)) < 1e-6
    True
    """
    nodes, weights = leggauss(NODES)
    spread = math.sqrt(q * delta)
    total = 0.0
    for sign, share in ((1.0, rho), (-1.0, 1.0 - rho)):
        kink = float(np.clip(-(sign * m + bias) / spread, -REACH, REACH))
        scale = 1.0 / (sharpness * spread)
        fine = kink + np.outer([-1.0, 1.0], np.geomspace(min(scale, 1.0) * 1e-2, 2 * REACH, PANELS))
        edges = np.unique(np.clip(np.append(fine, [kink, -REACH, REACH]), -REACH, REACH))
        half, centre = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
        g = centre[:, None] + half[:, None] * nodes
        density = np.exp(-0.5 * g**2) / math.sqrt(2 * math.pi)
        values = np.abs(np.tanh(0.5 * sharpness * (sign * m + bias + spread * g))) * density
        total += share * float(half @ values @ weights)
    return total
