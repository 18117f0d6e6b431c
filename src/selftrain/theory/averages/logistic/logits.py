r"""The new logits of a step and the proximal map that turns them into trained ones."""

from __future__ import annotations

import math
from typing import NamedTuple

from ....runtime.kernels import kernel


class Logits(NamedTuple):
    r"""The new logits and their labels, as functions of class and noises.

    $h = \gamma_0\tilde h + s\,$`shift` + `bias` + `tilt` $g_1$ + `noise` $g_2$, with $\gamma_0$ =
    `base`; the label is $\sigma(\gamma\tilde h)$ with $\gamma$ = `sharpness` (infinite: the sign);
    `strength` is $c = \chi\Delta$.
    """

    base: float
    sharpness: float
    shift: float
    tilt: float
    bias: float
    noise: float
    strength: float


@kernel(error_model="numpy")
def prox(field: float, strength: float, above: float) -> float:
    r"""x with $x + c(\sigma(x) - p) = h$, where `above` is 1 - p; Newton from zero, monotone for
    every c.
    """
    flip = field + strength * (0.5 - above) < 0.0
    if flip:
        field, above = -field, 1.0 - above
    rest = field - strength * above
    x = max(0.0, rest)
    for _ in range(200):
        e = math.exp(-x)
        tail = e / (1.0 + e)
        step = (rest - x + strength * tail) / (1.0 + strength * tail * (1.0 - tail))
        x += step
        if step <= 1e-13 * (1.0 + x):
            break
    return -x if flip else x
