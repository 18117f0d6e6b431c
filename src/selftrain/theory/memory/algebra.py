r"""Weights over all steps for clusters with a shape: means, responses and covariances, mode by mode
or as matrices.

With the conjugates $\hat Q^c_{ts}$, $\hat\chi^c_{ts}$ of class c and $\hat m_t$, the weights solve
$\lambda_t\beta_t + \sum_{c, s\le t}\hat Q^c_{ts}\Sigma_c\beta_s = \hat m_t\mu + \zeta_t$,
$\mathrm{cov}(\zeta_t, \zeta_s) = \sum_c\hat\chi^c_{ts}\Sigma_c/N$. With $G_t = (\lambda_t +
\sum_c\hat Q^c_{tt}\Sigma_c)^{-1}$ and $K_{ts} = \sum_c\hat Q^c_{ts}\Sigma_c$:

$$\beta_t = G_t\Big(\hat m_t\mu + \zeta_t - \sum_{s<t}K_{ts}\beta_s\Big),\quad
\chi_{ts} = \delta_{ts}G_t - G_t\sum_{s\le r<t}K_{tr}\chi_{rs}.$$

Rows of class c have $C^c_{ts} = E[\beta_t\cdot\Sigma_c\beta_s]$ between their logits, and move them
by $\mathrm{tr}(\Sigma_c\chi_{ts})/N$ per slope.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ...arrays import Array


class Hats(NamedTuple):
    r"""The conjugates of one step: $\hat m_t$, and $\hat Q^c_{ts}$, $\hat\chi^c_{ts}$ for s = 0..t,
    a row per class.
    """

    m: float
    q: Array
    chi: Array


class Operators(Protocol):
    """What is done with operators on the weights: numbers per mode, or matrices."""

    mean: Array
    noise: tuple[Array, Array]
    features: float

    def times(self, a: Array, b: Array) -> Array: ...
    def flip(self, a: Array) -> Array: ...
    def apply(self, a: Array, x: Array) -> Array: ...
    def inverse(self, ridge: float, total: Array) -> Array: ...
    def trace(self, s: Array, a: Array) -> float: ...
    def between(self, s: Array, x: Array, y: Array) -> float: ...


class PerMode:
    r"""Covariances that are diagonal in one set of coordinates; noise: $s_i$ of the negative and
    the positive class.
    """

    def __init__(self, mean: Array, noise: tuple[Array, Array], copies: Array, features: float):
        self.mean, self.noise, self.copies, self.features = mean, noise, copies, features

    def times(self, a: Array, b: Array) -> Array:
        return a * b

    def flip(self, a: Array) -> Array:
        return a

    def apply(self, a: Array, x: Array) -> Array:
        return a * x

    def inverse(self, ridge: float, total: Array) -> Array:
        return np.asarray(1.0 / (ridge + total))

    def trace(self, s: Array, a: Array) -> float:
        return float((self.copies * s) @ a)

    def between(self, s: Array, x: Array, y: Array) -> float:
        return float((s * x) @ y)


class FullMatrices:
    """Covariances without common directions, as matrices: for few features."""

    def __init__(self, mean: Array, noise: tuple[Array, Array]):
        self.mean, self.noise, self.features = mean, noise, float(mean.size)

    def times(self, a: Array, b: Array) -> Array:
        return np.asarray(a @ b)

    def flip(self, a: Array) -> Array:
        return a.T

    def apply(self, a: Array, x: Array) -> Array:
        return np.asarray(a @ x)

    def inverse(self, ridge: float, total: Array) -> Array:
        return np.asarray(np.linalg.inv(ridge * np.eye(total.shape[0]) + total), dtype=float)

    def trace(self, s: Array, a: Array) -> float:
        return float((s * a.T).sum())

    def between(self, s: Array, x: Array, y: Array) -> float:
        return float(x @ s @ y)


class Row(NamedTuple):
    """The weights of one step: mean, responses to steps 0..t, covariances with steps 0..t."""

    mean: Array
    responses: list[Array]
    covariances: list[Array]


class RowFields(NamedTuple):
    r"""What rows see of a step: $m_t$, and for each class $C^c_{ts}$ and
    $\mathrm{tr}(\Sigma_c\chi_{ts})/N$, s = 0..t.
    """

    m: float
    overlaps: Array
    kicks: Array


@dataclass
class WeightHistory:
    """The weights of all steps so far."""

    operators: Operators
    rows: list[Row] = field(default_factory=list)

    def covariance(self, t: int, s: int) -> Array:
        """Between steps t and s, in either order."""
        if t >= s:
            return self.rows[t].covariances[s]
        return self.operators.flip(self.rows[s].covariances[t])

    def next(self, ridge: float, hats: Hats) -> Row:
        """The weights of the next step."""
        do, t = self.operators, len(self.rows)
        stiff = [self._mixed(hats.q[:, s]) for s in range(t + 1)]
        push = [self._mixed(hats.chi[:, s]) / do.features for s in range(t + 1)]
        gain = do.inverse(ridge, stiff[t])
        mean = hats.m * do.mean
        for r in range(t):
            mean = mean - do.apply(stiff[r], self.rows[r].mean)
        responses = []
        for s in range(t):
            parts = (do.times(stiff[r], self.rows[r].responses[s]) for r in range(s, t))
            responses.append(-do.times(gain, sum(parts, np.zeros_like(gain))))
        responses.append(gain)
        covariances: list[Array] = []
        for s in range(t + 1):
            answers = responses if s == t else self.rows[s].responses
            total = np.zeros_like(gain)
            for r in range(s + 1):
                total = total + do.times(push[r], do.flip(answers[r]))
            for r in range(t):
                before = do.flip(covariances[r]) if s == t else self.covariance(r, s)
                total = total - do.times(stiff[r], before)
            covariances.append(do.times(gain, total))
        return Row(do.apply(gain, mean), responses, covariances)

    def fields(self, row: Row) -> RowFields:
        """What rows see of the step `row`, which is the next one."""
        do, t = self.operators, len(self.rows)
        means = [one.mean for one in self.rows[:t]] + [row.mean]
        overlaps, kicks = np.empty((2, t + 1)), np.empty((2, t + 1))
        for c, noise in enumerate(do.noise):
            for s in range(t + 1):
                spread = do.trace(noise, row.covariances[s])
                overlaps[c, s] = do.between(noise, row.mean, means[s]) + spread
                kicks[c, s] = do.trace(noise, row.responses[s]) / do.features
        return RowFields(float(do.mean @ row.mean), overlaps, kicks)

    def _mixed(self, weights: Array) -> Array:
        negative, positive = self.operators.noise
        return np.asarray(weights[0] * negative + weights[1] * positive)
