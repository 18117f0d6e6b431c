r"""All Gaussian averages of one step for the logistic loss, with their derivatives, in one pass.

With x the proximal point, $x + c\,l'(x) = h$, a step needs averages of $f = l'(x)$ and of
$k = \partial f/\partial h = l''/(1 + c l'')$; their derivatives need $k' = \partial k/\partial h =
l'''/(1 + c l'')^3$, because $\partial f/\partial c = -f k$ and $\partial k/\partial c = -f k' -
k^2$. The averages run over the class s, the previous noise $g_1$ (the nodes of `quadrature.outer`)
and the new noise $g_2$: on nodes of its own while it is small (`noise_nodes`), over x itself where
it is large (`prox_panels`).

Where the new noise is small, everything is computed from the *change* of the logit, $h -
\gamma\tilde h$: at small ridge f is a difference of nearly equal numbers, and this keeps its
relative accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....runtime.kernels import kernel
from ...tolerances import PANEL_NOISE
from ..record import Extra
from .logits import Logits
from .noise_nodes import over_noise_nodes
from .prox_panels import over_prox_panels


@kernel(error_model="numpy", inline="always")  # one level less to compile
def logistic_averages(
    nodes: Any,
    count: int,
    logits: Logits,
    exponent: float,
    extra: Extra | None,
    out: Any,
) -> int:
    """Add the averages over the outer nodes and the new noise to `out`, a record of
    `step.averages`.

    Returns the number of points used (-1: too many).
    """
    size: Any = np.int64(count)  # a count known beforehand would be compiled apart
    if logits.noise > PANEL_NOISE:
        return over_prox_panels(nodes, size, logits, exponent, extra, out)
    return over_noise_nodes(nodes, size, logits, exponent, extra, out)
