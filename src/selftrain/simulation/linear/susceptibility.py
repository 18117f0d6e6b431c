r"""The susceptibility at finite size: $\chi = \frac1N \mathrm{tr}\,(X^\top D X/N + \lambda
I)^{-1}$, by random probes.

With $c = w/\sqrt N$ the Hessian is $H = X^\top D X + \lambda N$ (at fixed bias), and $\chi =
\mathrm{tr}\,H^{-1}$. For a probe z, uniform on the sphere of radius $\sqrt N$, $z^\top H^{-1} z$
has the mean $\chi$ (Hutchinson) and a relative spread of order $N^{-1/2}$. If samples have d
logits, D has a block of d by d for each, z is N by d, and $\chi$ is the mean over the d components.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..designs.design import Design
from .conjugate_gradients import conjugate_gradients
from .fit import times_curvature


def susceptibility(
    design: Design, curvature: Array, ridge: float, probes: int, random: np.random.Generator
) -> float:
    """Return the mean of `probes` estimates of the trace of the inverse Hessian; NaN without
    probes.

    >>> from selftrain.simulation.designs.design import Stored
    >>> rows, generator = np.ones(2), np.random.default_rng(0)
    >>> round(susceptibility(Stored(np.eye(2)), rows, 1.0, 1, generator), 9)
    1.0
    """
    features, parts = design.shape[1], curvature.shape[1:2]

    def curve(direction: Array) -> Array:
        image = times_curvature(curvature, design.times(direction))
        return design.transposed_times(image) + ridge * direction

    forms = []
    for _ in range(probes):
        probe = random.standard_normal((features, *parts))
        probe *= np.sqrt(features / np.vdot(probe, probe))
        forms.append(conjugate_gradients(curve, probe, 1e-4, 2 * probe.size + 20).form)
    return float(np.mean(forms)) if forms else float("nan")
