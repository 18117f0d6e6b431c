r"""The susceptibility at finite size: $\chi = \frac1N \mathrm{tr}\,(X^\top D X/N + \lambda
I)^{-1}$, by random probes.

With $c = w/\sqrt N$ the matrix is $H = X^\top D X + \lambda N$ and $\chi = \mathrm{tr}\,H^{-1}$,
the bias fixed. A probe z, uniform on the sphere of radius $\sqrt N$, gives $z^\top H^{-1} z$ with
mean $\chi$ (Hutchinson) and a relative spread of order $N^{-1/2}$.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..designs.design import Design
from .conjugate_gradients import conjugate_gradients


def susceptibility(
    design: Design, curvature: Array, ridge: float, probes: int, random: np.random.Generator
) -> float:
    """Mean of `probes` estimates of the trace of the inverse Hessian; NaN without probes.

    >>> from selftrain.simulation.designs.design import Stored
    >>> rows, generator = np.ones(2), np.random.default_rng(0)
    >>> round(susceptibility(Stored(np.eye(2)), rows, 1.0, 1, generator), 9)
    1.0
    """
    features = design.shape[1]

    def curve(direction: Array) -> Array:
        image = design.times(direction)
        return design.transposed_times(curvature * image) + ridge * direction

    forms = []
    for _ in range(probes):
        probe = random.standard_normal(features)
        probe *= np.sqrt(features / (probe @ probe))
        forms.append(conjugate_gradients(curve, probe, 1e-4, 2 * features + 20).form)
    return float(np.mean(forms)) if forms else float("nan")
