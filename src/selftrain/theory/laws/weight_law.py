r"""The law of the weights over the steps: of one feature, or along a direction.

Predictions `pred: rs generating functional w` and `pred: w effective average`: the weights of one
feature, in units where every entry of v is 1, behave like the Gaussian process `eq: GP of w`,

$$w^{(t)} = \chi^{(t)}\left(\hat m^{(t)} + \hat R^{(t)} w^{(t-1)} +
\sqrt{\hat\chi^{(t)}}\,\xi_w^{(t)}\right), \qquad \xi_w^{(t)} \sim N(0, 1).$$

Its means are m, its variances $v = q - m^2$, its covariances between neighbours $R - m m'$. With
general covariances the same holds mode by mode, or for matrices: $\beta^{(t)} = K_t\beta^{(t-1)} +
\dots$ with $K_t = G\sum_k\hat R_k\Sigma_k$.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, roots_hermitenorm

from ...arrays import Array
from ...errors import ConvergenceError, InvalidInput
from ..step_inputs import StepInputs

if TYPE_CHECKING:
    from ..trajectory import Trajectory

_SIZES = {1: (24, 48, 96, 192, 384), 2: (24, 48, 96, 192, 384), 3: (16, 32, 64, 128)}


class WeightLaw:
    """A Gaussian process over t = 0..T: the weight of one feature, or the weights along a
    direction; steps without a solved state are NaN.

    Arguments:
        trajectory: the run.
        mean, variance: mean and variance at every step.
        covariance: function that returns the covariances of all pairs of steps; called if needed.

    >>> from selftrain import Problem, Recipe, solve
    >>> run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=2), Recipe())
    >>> law = run.weights
    >>> bool(np.isclose(law.covariance[1, 2], run.overlap[2] - run.m[1] * run.m[2]))
    True
    >>> bool(np.isclose(law.expect(lambda w: w**2, steps=2), run.q[2]))
    True
    """

    def __init__(
        self, trajectory: Trajectory, mean: Array, variance: Array, covariance: Callable[[], Array]
    ) -> None:
        self._trajectory, self.mean, self.variance = trajectory, mean, variance
        self._covariance = covariance

    def __repr__(self) -> str:
        return f"WeightLaw(steps 0..{self._trajectory.problem.steps})"

    @cached_property
    def covariance(self) -> Array:
        """Covariances of all pairs of steps, shape (T+1, T+1)."""
        return self._covariance()

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Draw independent paths of the process, shape (size, T+1)."""
        good = self._trajectory.good_steps
        paths = np.full((size, self.mean.size), np.nan)
        noise = np.random.default_rng(seed).standard_normal((size, self.mean.size))[:, :good]
        paths[:, :good] = self.mean[:good] + noise @ _root(self.covariance[:good, :good]).T
        return paths

    def density(self, x: Array, t: int = -1) -> Array:
        """Return the density of the weights of step t at x."""
        mean, deviation = self._moments(t)
        z = (np.asarray(x, dtype=float) - mean) / deviation
        return np.exp(-0.5 * z**2) / (math.sqrt(2 * math.pi) * deviation)

    def cdf(self, x: Array, t: int = -1) -> Array:
        """Return P(w <= x) for the weights w of step t."""
        mean, deviation = self._moments(t)
        return ndtr((np.asarray(x, dtype=float) - mean) / deviation)

    def expect(
        self, function: Callable[..., Array], steps: int | Sequence[int] = -1,
        tolerance: float = 1e-10,
    ) -> float:  # fmt: skip
        """Return E[function(w)], where w are the weights at one to three steps.

        Gauss-Hermite rules of growing size are compared until two agree to `tolerance`, relative to
        E|function|. If they do not agree, because the function jumps, `ConvergenceError` is raised:
        average over `sample` instead, as for more than three steps.

        Arguments:
            function: called with one array for each of the steps, returns an array of that shape.
            steps: a step, or a sequence of steps; negative ones count from the end.
        """
        chosen = [steps] if isinstance(steps, (int, np.integer)) else steps
        indices = [self._trajectory.solved_step(t) for t in chosen]
        if len(indices) not in _SIZES:
            accepted = "must be one to three steps; average over sample(size) for more"
            raise InvalidInput("steps", steps, accepted)
        last = math.nan
        for size in _SIZES[len(indices)]:
            weights, probability = self._nodes(indices, size)
            values = np.broadcast_to(function(*weights), probability.shape)
            value, scale = float(values @ probability), float(np.abs(values) @ probability)
            if abs(value - last) <= tolerance * scale:
                return value
            change, last = abs(value - last), value
        reason = "Gauss-Hermite rules do not resolve this function; average it over sample(size)"
        raise ConvergenceError(indices[-1], reason, {"expectation": last}, change / scale)

    def _moments(self, t: int) -> tuple[float, float]:
        index = self._trajectory.solved_step(t)
        return float(self.mean[index]), math.sqrt(self.variance[index])

    def _nodes(self, indices: list[int], size: int) -> tuple[list[Array], Array]:
        """Return the weights at the steps on a tensor grid of nodes, and their probabilities."""
        nodes, single = roots_hermitenorm(size)
        single = single / single.sum()
        grids = [grid.ravel() for grid in np.meshgrid(*[nodes] * len(indices), indexing="ij")]
        shares = [share.ravel() for share in np.meshgrid(*[single] * len(indices), indexing="ij")]
        if len(indices) == 1:
            root = np.sqrt(self.variance[indices])[:, None]
        else:
            root = _root(self.covariance[np.ix_(indices, indices)])
        weights = self.mean[indices][:, None] + root @ np.array(grids)
        return list(weights), np.prod(shares, axis=0)


def _root(covariance: Array) -> Array:
    """Return a Cholesky factor; unlike numpy's it allows pivots of zero, which steps have whose
    weights hardly differ.
    """
    root, rest = np.zeros_like(covariance), covariance.copy()
    for k in range(len(rest)):
        if rest[k, k] > 0:
            root[k:, k] = rest[k:, k] / math.sqrt(rest[k, k])
            rest[k:, k:] -= np.outer(root[k:, k], root[k:, k])
    return root


def weights_of(run: Trajectory) -> WeightLaw:
    """Return the law of the weights along the cluster direction; for a sphere, of any feature."""
    if run.reuse is not None and not run.problem.shaped:  # steps before the reuse are exact in it
        covariance = partial(np.subtract, run.reuse.pairs, np.outer(run.m, run.m))
        return WeightLaw(run, run.m.copy(), run.v.copy(), covariance)
    mean = run.problem.test_clusters.mean
    return DirectedWeights(run, mean / np.linalg.norm(mean))


class DirectedWeights(WeightLaw):
    r"""The law of $u\cdot\beta$ over the steps, for a direction u in feature space."""

    def __init__(self, run: Trajectory, direction: Array):
        self._units = _units(run)
        means, variances = np.full((2, run.m.size), np.nan)
        for t in range(run.good_steps):
            law = run.law(t)
            seen = run.space.mean_of(law, run.problem.test_clusters) @ direction
            means[t] = seen * self._units[t]
            variances[t] = run.space.along(law.variance, direction) * self._units[t] ** 2
        super().__init__(run, means, variances, partial(_covariance_along, run, direction))

    def vector(self, t: int = -1) -> Array:
        """Return the mean of the weights of step t, one entry per feature."""
        run, step = self._trajectory, range(self._trajectory.m.size)[t]
        mean = run.space.mean_of(run.law(step), run.problem.test_clusters)
        return np.asarray(self._units[step] * np.asarray(mean, dtype=float))

    def along(self, direction: ArrayLike) -> DirectedWeights:
        """Return the law of the weights along another direction in feature space."""
        u, run = np.asarray(direction, dtype=float), self._trajectory
        if u.shape != (run.space.features,):
            accepted = f"must be a vector with {run.space.features} entries"
            raise InvalidInput("direction", direction, accepted)
        return DirectedWeights(run, u)


def _covariance_along(run: Trajectory, u: Array) -> Array:
    """Return the covariances between all pairs of steps of the weights along the direction u."""
    if run.reuse is not None:
        return run.space.along(run.reuse.crossed, u)
    return _both_sides(_over_pairs(run, _spreads(run), lambda alive: run.space.along(alive, u)))


def overlaps_of(run: Trajectory) -> Array:
    r"""Return $\beta^{(t)}\cdot\beta^{(s)}$ of all pairs of steps."""
    means = run.weight_means * _units(run)[:, None]
    fluctuating = _over_pairs(run, _spreads(run), run.space.trace)
    overlaps: Array = means @ means.T + _both_sides(fluctuating)
    return overlaps


def response_of(run: Trajectory) -> Array:
    """Return how the weights of step t respond to a linear term in the loss of step s, lower
    triangular.
    """
    space = run.space
    first = [answer for _, answer in _chains(run)]
    response = _over_pairs(run, first, lambda alive: space.trace(alive) / space.features)
    return np.where(np.tri(run.m.size, dtype=bool), response, 0.0)


def _units(run: Trajectory) -> Array:
    """Return the unit of the weights of each step, $2^{-e_t}$ of `theory.fading`."""
    if run.fading is None:
        return np.ones(run.m.size)
    return np.ldexp(1.0, -run.fading.exponents)


def _spreads(run: Trajectory) -> list[Array]:
    """Return the covariance of the weights of each solved step, multiplied by its units."""
    units = _units(run)
    return [run.weight_spreads[t] * units[t] ** 2 for t in range(run.good_steps)]


def _chains(run: Trajectory) -> Iterator[tuple[Array, Array]]:
    """Yield for each step the factor of the previous weights in the new ones, and the response."""
    inputs = StepInputs(run.problem, run.recipe)
    for t in range(run.good_steps):
        equations = inputs.equations(t, *run.model_before(t))
        yield equations.algebra.chain(run.unknowns[t], equations.ridge, float(run.gammas[t]))


def _over_pairs(run: Trajectory, first: list[Array], of: Callable[[Array], Array]) -> Array:
    """Return a lower triangular table over pairs of steps t >= s: the function `of`, applied to
    `first[s]` propagated to step t.
    """
    table = np.full((run.m.size, run.m.size), np.nan)
    alive = np.empty((run.good_steps, *first[0].shape)) if first else np.empty(0)
    for t, (turn, _) in enumerate(_chains(run)):
        alive[:t] = turn * alive[:t] if turn.ndim == 1 else turn @ alive[:t]
        alive[t] = first[t]
        table[t, : t + 1] = of(alive[: t + 1])
    return table


def _both_sides(lower: Array) -> Array:
    """Return a symmetric matrix from its lower triangle."""
    return np.where(np.tri(len(lower), dtype=bool), lower, lower.T)
