r"""The law of the logits of rows that a step was fitted to, from what the rows have seen before.

The logit of a training row is monotone in the noise of its last step, so given everything it has
seen before its law is that of a Gaussian number through the proximal map. The average over what it
has seen is over a bank of rows. Spheres (`laws`) and shapes (`shaped_laws`) follow their rows in
different ways and share this law.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ...arrays import Array
from ...errors import InvalidInput
from ...losses import Loss
from ...protocol import LABELED
from ...rows import RowGroup
from ..laws.logits import LogitSample

POINTS = 2**12
"""Rows of the bank of a law, for each class."""

_BLOCK = 256
_ROOT_2PI = math.sqrt(2 * math.pi)


class SeenRows(NamedTuple):
    """Rows before the noise of the last step: class, share, previous logit, target, weight, mean
    of the field; spread of the field, and how strongly a row moves its own logit.
    """

    signs: Array
    shares: Array
    previous: Array
    target: Array
    weight: Array
    center: Array
    spread: float
    strength: float


def groups_asked(groups: tuple[RowGroup, ...], t: int, samples: str | None) -> list[RowGroup]:
    """The groups of samples that a law is about."""
    used = [group for group in groups if group.weights[t] > 0]
    plain = [group for group in used if not group.labeled or t == 0]
    if samples is None:
        return plain
    if samples == LABELED and used[0].labeled:
        return used[:1]
    accepted = 'None, or "labeled" in a step that uses the labelled samples, is accepted'
    raise InvalidInput("samples", samples, accepted)


class RowLaw:
    """The law of (class, previous logit, trained logit) of the rows of a step.

    `y` = 0 or 1 restricts to a class, `selected` to rows that the threshold keeps or rejects, as in
    `LogitLaw`.
    """

    def __init__(self, t: int, samples: str | None, loss: Loss, parts: list[SeenRows]) -> None:
        self.t, self.samples = t, samples
        self._loss, self._parts = loss, parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}(t={self.t}, samples={self.samples!r})"

    @property
    def selected_probability(self) -> float:
        """Share of the rows that the threshold keeps."""
        total = sum(float(part.shares.sum()) for part in self._parts)
        kept = sum(float(part.shares @ (part.weight > 0)) for part in self._parts)
        return kept / total

    def cdf(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """P(logit <= u), in the shape of u."""
        far = np.clip(np.asarray(u, dtype=float), -1e9, 1e9)
        return np.clip(self._law(far, y, selected, density=False), 0.0, 1.0)

    def density(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """Density of the logit at u, in the shape of u."""
        return self._law(np.asarray(u, dtype=float), y, selected, density=True)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> LogitSample:
        """Rows drawn from the bank, with fresh noise in the last step."""
        from ..averages.quadrature.prox import proximal

        rng = np.random.default_rng(seed)
        signs, shares, previous, target, weight, center = (
            np.concatenate([getattr(part, name) for part in self._parts])
            for name in SeenRows._fields[:6]
        )
        spread, strength = (
            np.concatenate([np.full(part.signs.size, getattr(part, name)) for part in self._parts])
            for name in ("spread", "strength")
        )
        at = rng.choice(signs.size, size, p=shares / shares.sum())
        field = center[at] + spread[at] * rng.standard_normal(size)
        u = proximal(self._loss, target[at], field, strength[at] * weight[at])
        return LogitSample((signs[at] > 0).astype(int), previous[at], u, weight[at] > 0)

    def _law(self, u: Array, y: int | None, selected: bool | None, *, density: bool) -> Array:
        if y not in (None, 0, 1):
            raise InvalidInput("y", y, "0, 1, or None for both classes is accepted")
        points = u.ravel()
        result, total = np.zeros(points.shape), 0.0
        for part in self._parts:
            chosen: NDArray[np.bool_] = np.full(part.signs.size, True)
            if y is not None:
                chosen &= (part.signs > 0) == (y == 1)
            if selected is not None:
                chosen &= (part.weight > 0) == selected
            share = part.shares[chosen]
            total += float(share.sum())
            for begin in range(0, points.size, _BLOCK):
                here = slice(begin, begin + _BLOCK)
                result[here] += share @ self._profile(part, chosen, points[None, here], density)
        if total == 0:
            raise InvalidInput("selected", selected, f"step {self.t} has no such row")
        return (result / total).reshape(u.shape)

    def _profile(self, part: SeenRows, chosen: NDArray[np.bool_], u: Array, density: bool) -> Array:
        target, center = part.target[chosen, None], part.center[chosen, None]
        strength = part.strength * part.weight[chosen, None]
        pull = np.where(strength > 0, strength * self._loss.slope(target, u), 0.0)
        z = (u + pull - center) / part.spread
        if not density:
            return np.asarray(ndtr(z))
        stretch = 1.0 + strength * self._loss.curvature(target, u)
        return np.asarray(stretch * np.exp(-0.5 * z * z) / (_ROOT_2PI * part.spread))
