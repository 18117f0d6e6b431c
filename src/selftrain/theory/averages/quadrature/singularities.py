r"""Where the integrands are singular in the complex plane of the previous noise $g_1$.

The label $\sigma(\gamma\tilde h)$ has poles at $\gamma\tilde h = \pm i\pi$. The proximal map of the
logistic loss has branch points at $\mathrm{Im}\,h = \pm\pi$ for every strength c. 16-point panels
keep them all off the Bernstein ellipse of error $e^{-T}$, $\eta = T/32$ (`clear_length`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ....runtime.kernels import kernel


class OldLogit(NamedTuple):
    r"""The previous logit of one class, $\tilde h =$ mean + spread $g_1$, and the sharpness of its
    label.
    """

    mean: float
    spread: float
    sharpness: float


class NewLogit(NamedTuple):
    r"""The new logit as far as it is known: $h =$ mean + scale $g_1$ + noise $g_2$, prox of
    strength c.
    """

    mean: float
    scale: float
    noise: float
    strength: float


@kernel(error_model="numpy")
def clear_length(x: float, longest: float, near: Any, floor: float, exponent: float) -> float:
    r"""Length of a 16-point panel that starts at x, at most `longest`, of error exp(-exponent).

    Convergence is $e^{-32\eta}$ if all singularities lie outside the ellipse with the ends as foci:
    the distances to both ends add up to at least length times $\cosh\eta$. `near` lists (real,
    imaginary) parts of singularities; none is closer to the axis than `floor`.
    """
    eta = exponent / 32.0
    least = min(longest, 2.0 * floor / math.sinh(eta))
    length = longest
    for i in range(near.shape[0]):
        here = math.hypot(x - near[i, 0], near[i, 1])
        while length > least and here + math.hypot(
            x + length - near[i, 0], near[i, 1]
        ) < length * math.cosh(eta):
            length *= 0.85
    return max(length, least)


@kernel(error_model="numpy")
def branch_points(old: OldLogit, new: NewLogit, reach: float, near: Any) -> None:
    r"""Where the prox has branch points as a function of $g_1$; fills the rows of `near` from 1 on.

    The prox depends on $G = h + c\,p$ alone, with branch points at $-e \pm i\pi$ and $c + e \pm
    i\pi$. The average over new noise of scale b replaces them by growth like $\exp((\mathrm{Im}^2 -
    \mathrm{Re}^2)/2b^2)$ around these points, kept off by treating a row of points at height 3b as
    singular. For hard labels h is linear in $g_1$ on each side; for soft ones $G(g_1)$ is inverted
    by bisection on the axis and Newton off it.
    """
    centre, spread, sharpness = old.mean, old.spread, old.sharpness
    new_centre, noise, c = new.mean, new.noise, new.strength
    root = math.sqrt(1.0 + 4.0 / c)
    edge = math.log((root + 1.0) / (root - 1.0)) + 2.0 / (1.0 + root)
    height = max(math.pi, 3.0 * noise)
    new_scale = max(new.scale, 1e-300)
    near[1:, 0] = near[0, 0]
    near[1:, 1] = near[0, 1]
    if math.isinf(sharpness):
        for i in range(4):
            target = edge if i < 2 else edge + c
            near[1 + i, 0] = ((target if i % 2 == 0 else -target) - new_centre) / new_scale
            near[1 + i, 1] = height / new_scale
        return
    rate = sharpness * spread
    k = 1
    for offset in range(-2, 3):
        if offset != 0 and 3.0 * noise < math.pi:
            continue
        target = -edge + 1.5 * offset * noise
        for side in (-1.0, 1.0):
            # the upper edge is the lower one after h -> -h, y -> -y
            lo, hi = -reach, reach
            for _ in range(30):
                g = 0.5 * (lo + hi)
                label = 1.0 / (1.0 + math.exp(side * sharpness * (centre + spread * g)))
                if (-side * (new_centre + new_scale * g) + c * label > target) == (side < 0):
                    hi = g
                else:
                    lo = g
            if abs(lo) > 0.999 * reach:
                continue
            # from there G grows like k Y + A exp(Y): start Newton at a root of (A + k)(exp(Y) - 1)
            label = 1.0 / (1.0 + math.exp(side * sharpness * (centre + spread * lo)))
            turn = height / (c * label + new_scale / rate)
            first = complex(0.5 * math.log1p(turn * turn), math.atan(turn)) / rate
            z = lo - side * first
            for _ in range(6):
                y = side * sharpness * (centre + spread * z)
                e = math.exp(y.real) * complex(math.cos(y.imag), math.sin(y.imag))
                label_z = 1.0 / (1.0 + e)
                value = -side * (new_centre + new_scale * z) + c * label_z
                slope = -side * (new_scale + c * rate * label_z * (1.0 - label_z))
                move = (complex(target, height) - value) / slope
                if not abs(move) < 1e3 / rate:
                    break
                z += move
                if abs(move) < 1e-3 * abs(z.imag):
                    break
            trusted = 0.0 < abs(z.imag) < math.pi / rate
            near[k, 0] = z.real if trusted else lo - side * first.real
            near[k, 1] = abs(z.imag) if trusted else first.imag
            k += 1
