r"""Where the integrand of a step jumps: at the limits of a selection, and where labels jump.

An edge sits at the previous noise $g_e = (\tilde h_e - s m' - B')/\sqrt{q'_k}$ of a group. Its row
holds the fall of the averages of f, $f^2$ and k across it, averaged over the new noise, and how the
logit $\tilde h_e$ moves with the limit and the sharpness.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel
from ..averages.batch import SQUARED, At, Batch, Labelling
from ..averages.logistic.logistic import logistic_averages
from ..averages.logistic.logits import Logits
from ..averages.record import BLANK, Extra

LABELS = Extra(loss=False, labels=True)
"""What derivatives need besides the averages of the equations."""

E_CLASS, E_PLACE, E_WEIGHT, E_F, E_FF, E_K, E_LIMIT, E_SHARPNESS = range(8)
r"""A jump: class s, place $g_e$, weight, fall of the averages of f, f^2 and k across it, and the
derivatives of the logit at which it sits.
"""

COLUMNS = 8


def edges_for(groups: int) -> Array:
    """Return room for the edges of a step with soft or hard labels: two limits, two classes."""
    return np.zeros((groups, 4, COLUMNS))


@kernel(error_model="numpy")
def fill_edges(
    at: At, labels: Labelling, batch: Batch, exponent: float, moments: Any, edges: Any
) -> bool:
    """Fill the edges of every group, for labels that are soft or hard; False if a rule is too long.

    Without a limit and with soft labels the two sides meet without a jump, and what is left is the
    derivative in a limit that opens a gap there.
    """
    groups = labels.roots.shape[0]
    together = batch.limit == 0.0 and not math.isinf(batch.sharpness)
    nodes = np.empty((4, 2))
    found = BLANK.copy()
    for k in range(groups):
        rho, selected = batch.groups[1, k], moments[k].share / batch.groups[0, k]
        root, change = labels.roots[k], at.anchor - labels.gamma
        logits = Logits(
            labels.gamma, batch.sharpness, at.fields[0, 0] + change * labels.m,
            (at.fields[1 + k, 0] + change) * root, at.lift, at.fields[1 + groups + k, 0],
            at.fields[1 + 2 * groups + k, 0],
        )  # fmt: skip
        for place in range(2):
            side = 1.0 - 2.0 * place
            # both classes in one rule: the average of one is (E[X] + s E[s X])/2
            for i in range(2):
                s = 1.0 - 2.0 * i
                nodes[0, i] = s
                nodes[1, i] = (side * batch.limit - s * labels.m - labels.bias) / root
                nodes[2, i] = 1.0
                nodes[3, i] = side * max(batch.limit, 1e-300)
            e = found[0]
            if not (together and place == 1):
                found[0] = BLANK[0]
                if batch.loss == SQUARED:
                    _squared(logits, nodes, side * batch.limit, side, e)
                elif logistic_averages(nodes, 2, logits, exponent, LABELS, e) < 0:
                    return False
            for i in range(2):
                s, g, edge = nodes[0, i], nodes[1, i], edges[k, 2 * place + i]
                weight = rho if s > 0.0 else 1.0 - rho
                edge[E_CLASS], edge[E_PLACE], edge[E_LIMIT], edge[E_SHARPNESS] = s, g, side, 0.0
                edge[E_WEIGHT] = (
                    weight * math.exp(-0.5 * g * g) / (math.sqrt(2.0 * math.pi) * selected)
                )
                edge[E_F] = -0.5 * side * (e.f + s * e.sf)
                edge[E_FF] = -0.5 * side * (e.ff + s * e.sff)
                edge[E_K] = -0.5 * side * (e.k + s * e.sk)
    return True


@kernel(error_model="numpy")
def _squared(logits: Logits, nodes: Any, logit: float, side: float, e: Any) -> None:
    """Add the averages of the squared loss over two nodes at one previous logit."""
    gain = 1.0 / (1.0 + logits.strength)
    if math.isinf(logits.sharpness):
        off = logits.base * logit - side
    else:
        off = (logits.base - logits.sharpness) * logit
    for i in range(2):
        s, g = nodes[0, i], nodes[1, i]
        f = gain * (off + s * logits.shift + logits.bias + logits.tilt * g)
        ff = f * f + (gain * logits.noise) ** 2
        e.f += f
        e.sf += s * f
        e.ff += ff
        e.sff += s * ff
        e.k += gain
        e.sk += s * gain


@kernel(error_model="numpy")
def fill_sharp(labels: Labelling, sharpness: float, moments: Any, sharp: Any) -> float:
    r"""Fill the derivatives of the averages in the sharpness for labels with the logit $y =
    \gamma\tilde h$; the gain $\partial y/\partial\tilde h$.
    """
    for k in range(sharp.shape[0]):
        for j in range(5):
            sharp[k, j] = 0.0
    if math.isinf(sharpness):
        return 0.0
    m, bias = labels.m, labels.bias
    for k in range(labels.roots.shape[0]):
        e, root = moments[k], labels.roots[k]
        sharp[k, 0] = m * e.sy + bias * e.y + root * e.gy
        sharp[k, 1] = m * e.y + bias * e.sy + root * e.sgy
        sharp[k, 2] = m * e.sgy + bias * e.gy + root * e.ggy
        sharp[k, 3] = 2.0 * (m * e.sfy + bias * e.fy + root * e.gfy)
        sharp[k, 4] = m * e.sky + bias * e.ky + root * e.gky
    return float(sharpness)
