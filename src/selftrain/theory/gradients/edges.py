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
from ..averages.record import BLANK

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
    node = np.empty((4, 1))
    found = BLANK.copy()
    for k in range(groups):
        rho, selected = batch.groups[1, k], moments[k].share / batch.groups[0, k]
        root, change = labels.roots[k], at.anchor - labels.gamma
        logits = Logits(
            labels.gamma, batch.sharpness, at.fields[0, 0] + change * labels.m,
            (at.fields[1 + k, 0] + change) * root, at.lift, at.fields[1 + groups + k, 0],
            at.fields[1 + 2 * groups + k, 0],
        )  # fmt: skip
        count = 0
        for side in (1.0, -1.0):
            for s in (1.0, -1.0):
                weight = rho if s > 0.0 else 1.0 - rho
                edge = edges[k, count]
                count += 1
                for j in range(COLUMNS):
                    edge[j] = 0.0
                if weight == 0.0:
                    continue
                logit = side * batch.limit
                g = (logit - s * labels.m - labels.bias) / root
                if together and side < 0.0:
                    for j in range(COLUMNS):
                        turned = j in (E_F, E_FF, E_K, E_LIMIT)
                        edge[j] = -edges[k, count - 3, j] if turned else edges[k, count - 3, j]
                    continue
                edge[E_CLASS], edge[E_PLACE], edge[E_LIMIT] = s, g, side
                edge[E_WEIGHT] = weight * math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)
                edge[E_WEIGHT] /= selected
                if batch.loss == SQUARED:
                    _squared(logits, s, g, logit, side, found[0])
                else:
                    node[0, 0], node[1, 0], node[2, 0] = s, g, 1.0
                    node[3, 0] = side * max(batch.limit, 1e-300)
                    found[0] = BLANK[0]
                    if logistic_averages(node, 1, logits, exponent, None, found[0]) < 0:
                        return False
                edge[E_F], edge[E_FF] = -side * found[0].f, -side * found[0].ff
                edge[E_K] = -side * found[0].k
    return True


@kernel(error_model="numpy")
def _squared(logits: Logits, s: float, g: float, logit: float, side: float, e: Any) -> None:
    """The averages of f, f^2 and k of the squared loss at one previous logit."""
    gain = 1.0 / (1.0 + logits.strength)
    if math.isinf(logits.sharpness):
        off = logits.base * logit - side
    else:
        off = (logits.base - logits.sharpness) * logit
    e.f = gain * (off + s * logits.shift + logits.bias + logits.tilt * g)
    e.ff = e.f**2 + (gain * logits.noise) ** 2
    e.k = gain


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
