r"""The law of the weights: one feature's coefficients over the steps.

Predictions `pred: rs generating functional w` and `pred: w effective average`: the coefficients of
one feature, in units where every entry of v is 1, behave like the Gaussian process `eq: GP of w`,

$$w^{(t)} = \chi^{(t)}\left(\hat m^{(t)} + \hat R^{(t)} w^{(t-1)} +
\sqrt{\hat\chi^{(t)}}\,\xi_w^{(t)}\right), \qquad \xi_w^{(t)} \sim N(0, 1).$$

Its means are m, its variances $v = q - m^2$, its covariances between neighbours $R - m m'$.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, roots_hermitenorm

from ...arrays import Array
from ...errors import ConvergenceError, InvalidInput

if TYPE_CHECKING:
    from ..trajectory import Trajectory

_SIZES = {1: (24, 48, 96, 192, 384), 2: (24, 48, 96, 192, 384), 3: (16, 32, 64, 128)}


class WeightLaw:
    """A Gaussian Markov chain over t = 0..T; steps without a solved state are NaN.

    >>> from selftrain import Problem, Recipe, solve
    >>> run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=2), Recipe())
    >>> law = run.weights
    >>> bool(np.isclose(law.covariance[1, 2], run.overlap[2] - run.m[1] * run.m[2]))
    True
    >>> bool(np.isclose(law.expect(lambda w: w**2, steps=2), run.q[2]))
    True
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._gain = np.append(0.0, trajectory.r_hat[1:] * trajectory.chi[1:])
        self._noise = np.sqrt(trajectory.chi_hat) * trajectory.chi

    def __repr__(self) -> str:
        return f"WeightLaw(steps 0..{self._trajectory.problem.steps})"

    @property
    def mean(self) -> Array:
        """E[w] at each step, equal to m."""
        return self._trajectory.m.copy()

    @cached_property
    def covariance(self) -> Array:
        r"""$\mathrm{Cov}(w^{(s)}, w^{(t)}) = v^{(s)} \prod_{k=s+1}^{t} \hat R^{(k)}\chi^{(k)}$ for
        s <= t, shape (T+1, T+1).
        """
        variance = self._trajectory.v
        covariance = np.diag(variance)
        for t in range(1, variance.size):
            covariance[:t, t] = covariance[:t, t - 1] * self._gain[t]
            covariance[t, :t] = covariance[:t, t]
        return covariance

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Independent paths, shape (size, T+1)."""
        noise = np.random.default_rng(seed).standard_normal((size, self._noise.size))
        drift = self._trajectory.m_hat * self._trajectory.chi
        paths = drift + self._noise * noise
        for t in range(1, self._noise.size):
            paths[:, t] += self._gain[t] * paths[:, t - 1]
        return paths

    def density(self, x: Array, t: int = -1) -> Array:
        """Density of the weights of step t at x."""
        mean, deviation = self._moments(t)
        z = (np.asarray(x, dtype=float) - mean) / deviation
        return np.exp(-0.5 * z**2) / (math.sqrt(2 * math.pi) * deviation)

    def cdf(self, x: Array, t: int = -1) -> Array:
        """Share of the weights of step t that are at most x."""
        mean, deviation = self._moments(t)
        return ndtr((np.asarray(x, dtype=float) - mean) / deviation)

    def expect(
        self,
        function: Callable[..., Array],
        steps: int | Sequence[int] = -1,
        tolerance: float = 1e-10,
    ) -> float:
        """E[function(w at the first step, w at the second, ...)] for up to three steps.

        Gauss-Hermite rules of growing size are compared until two agree to `tolerance`, relative to
        E|function|. A function that they cannot resolve (one that jumps) is an error, as are more
        than three steps: average over `sample` instead.

        Arguments:
            function: called with one array for each of the steps, returns an array of that shape.
            steps: a step, or a sequence of them; negative ones count from the end.
        """
        chosen = [steps] if isinstance(steps, (int, np.integer)) else list(steps)
        indices = [solved_step(self._trajectory, t) for t in chosen]
        if len(indices) not in _SIZES:
            accepted = "one to three steps are accepted; average over sample(size) for more"
            raise InvalidInput("steps", steps, accepted)
        last = math.nan
        for size in _SIZES[len(indices)]:
            weights, probability = self._nodes(indices, size)
            values = np.broadcast_to(function(*weights), probability.shape)
            value, scale = float(values @ probability), float(np.abs(values) @ probability)
            if abs(value - last) <= tolerance * scale:
                return value
            change, last = abs(value - last), value
        raise ConvergenceError(
            indices[-1],
            "Gauss-Hermite rules do not resolve this function; average it over sample(size)",
            {"expectation": last},
            change / scale,
        )

    def _moments(self, t: int) -> tuple[float, float]:
        index = solved_step(self._trajectory, t)
        return float(self._trajectory.m[index]), math.sqrt(self._trajectory.v[index])

    def _nodes(self, indices: list[int], size: int) -> tuple[list[Array], Array]:
        """Weights at the steps on a tensor grid, built along the chain, and their probabilities."""
        nodes, single = roots_hermitenorm(size)
        single = single / single.sum()
        grids = [grid.ravel() for grid in np.meshgrid(*[nodes] * len(indices), indexing="ij")]
        shares = [share.ravel() for share in np.meshgrid(*[single] * len(indices), indexing="ij")]
        found: dict[int, Array] = {}
        before: int | None = None
        for t, noise in zip(sorted(indices), grids, strict=True):
            mean, deviation = self._moments(t)
            if before is None:
                found[t] = mean + deviation * noise
            else:
                gain, fresh = self._between(before, t)
                found[t] = mean + gain * (found[before] - self._moments(before)[0]) + fresh * noise
            before = t
        return [found[t] for t in indices], np.prod(shares, axis=0)

    def _between(self, s: int, t: int) -> tuple[float, float]:
        r"""Gain and fresh noise of $w^{(t)}$ given $w^{(s)}$, s <= t."""
        gain, variance = 1.0, 0.0
        for k in range(s + 1, t + 1):
            gain *= self._gain[k]
            variance = self._gain[k] ** 2 * variance + self._noise[k] ** 2
        return gain, math.sqrt(variance)


def solved_step(trajectory: Trajectory, t: int) -> int:
    """The index of step t (negative: from the end), if it has a solved state."""
    steps = trajectory.problem.steps
    whole = isinstance(t, (int, np.integer)) and not isinstance(t, bool)
    if not whole or not -steps - 1 <= t <= steps:
        raise InvalidInput("t", t, f"a step from 0 to {steps}, or a negative one from the end")
    index = int(t) % (steps + 1)
    if index >= trajectory.good_steps:
        last = trajectory.good_steps - 1
        why = "the labels collapsed into one class" if trajectory.failure is None else "it failed"
        raise InvalidInput("t", t, f"the run has no state at step {index}: {why} after step {last}")
    if trajectory.fading is not None and trajectory.fading.exponents[index] > 0:
        accepted = f"the weights of step {index} underflow, and so do their laws"
        raise InvalidInput("t", t, accepted)
    return index
