r"""One fit of self-training: a ridge-regularised convex loss on any design matrix, by Newton-CG.

Minimises, over the weights c and the bias b,

$$F(c, b) = \sum_i \omega_i\, l(t_i, (Xc)_i + b) + \tfrac{\kappa}{2} \|c\|^2$$

with soft targets t, sample weights $\omega$ (0 or 1 for selection) and no penalty on the bias,
which may also be fixed. In a simulation, $c = w/\sqrt N$ and $\kappa = \lambda N$ (`eq: update of
ST`). A logit is a number, or has d components: then c is N by d, b has d entries, slopes are
vectors and curvatures matrices.

The bias is eliminated exactly from every Newton system: with $D = \omega l''$ and the residuals
$r = \omega l'$, the direction p solves $X^\top D (I - 1 d^\top) X p + \kappa p = -X^\top (r - d
\sum r) - \kappa c$, $d = D/\sum D$, and the bias moves by $-(\sum r + D^\top X p)/\sum D$.
Conjugate gradients need one product with X and one with its transpose per iteration; the logits
need no further products.

`susceptibility` estimates $\chi = \frac1N \mathrm{tr}\,(X^\top D X/N + \lambda)^{-1}$ at a fit: the
trace of the inverse of the Hessian at fixed bias, $H = X^\top D X + \lambda N$. For a probe z on
the sphere of radius $\sqrt N$, $z^\top H^{-1} z$ has the mean $\chi$ (Hutchinson) and a relative
spread of order $N^{-1/2}$. If logits have d components, $\chi$ is the mean over these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import SelfTrainError
from ...losses import Logistic, Squared
from ..designs.design import Design

ROUNDING = 2.0**-50
"""Rounding error of a residual, relative to targets and logits."""


class FitError(SelfTrainError):
    """The fit did not reach the requested accuracy; the message has the accuracy reached.

    Attributes:
        reach: the largest absolute logit.
    """

    def __init__(self, reason: str, reach: float):
        self.reach = reach
        super().__init__(reason)


@dataclass(frozen=True)
class Fit:
    """A minimiser and how it was found.

    Attributes:
        weights, bias: the minimiser.
        logits: X @ weights + bias.
        curvature: second derivatives of the loss at these logits, times the sample weights.
        products: number of products with X and with its transpose.
        error: estimated relative error of the weights: the gradient, or the rounding error of the
            residuals, divided by the smallest curvature found; 1 if the weights are set to zero
            because they are smaller than their error.
    """

    weights: Array
    bias: Any
    logits: Array
    curvature: Array
    products: int
    error: float


def fit(
    design: Design,
    targets: Array,
    loss: Any,
    ridge: float,
    *,
    rows: Array | None = None,
    fit_bias: bool = True,
    weights: Array | None = None,
    bias: Any = 0.0,
    tolerance: float = 1e-8,
    limit: int = 200,
) -> Fit:
    """Minimise the loss of `targets` on `design` plus ridge/2 times the squared norm of the
    weights.

    Arguments:
        targets: one per sample, soft or hard.
        loss: a `Loss`; or a loss of logits with d components (`linear.class_losses`), for which
            `bias` must be an array of d entries.
        rows: sample weights; a boolean mask selects samples.
        fit_bias: whether to train the bias; otherwise it stays at `bias`.
        weights, bias: starting point.
        tolerance: relative accuracy of the weights and the bias.
        limit: largest number of Newton steps before `FitError` is raised.

    >>> from selftrain.losses import Squared
    >>> from selftrain.simulation.designs.design import Stored
    >>> found = fit(Stored(np.array([[1.0], [-1.0]])), np.array([2.0, 0.0]), Squared(), ridge=2.0)
    >>> round(float(found.weights[0]), 9), round(float(found.bias), 9)
    (0.5, 1.0)
    """
    targets = np.asarray(targets, dtype=float)
    rows = np.ones(len(targets)) if rows is None else np.asarray(rows, dtype=float)
    objective = _Objective(design, targets, loss, ridge, rows, fit_bias)
    shape = (design.shape[1], *np.shape(bias))
    point = np.zeros(shape) if weights is None else np.array(weights, dtype=float)
    start = objective.times(point) if point.any() else np.zeros((design.shape[0], *shape[1:]))
    logits = np.asarray(start + bias)
    first = error = last = np.inf
    moved, softest = np.inf, ridge
    for iteration in range(limit):
        local = _Local(objective, point, logits)
        size = float(np.linalg.norm(local.descent))
        first = size if iteration == 0 else first
        scale = float(np.linalg.norm(point))
        stiffness = max(softest, ridge)
        error = size / (stiffness * scale) if stiffness * scale > 0 else np.inf
        # A gradient of this size is rounding error if Newton steps do not reduce it any more.
        at_rest = ridge > 0 and 0.5 * last <= size <= max(local.rounding, 1e-14 * first)
        last = size
        settled = error <= tolerance and moved <= np.sqrt(tolerance)
        bias_error = max(tolerance * (np.abs(bias).max() + scale), local.bias_rounding)
        if (settled or at_rest) and np.abs(local.bias_step(0.0)).max() <= bias_error:
            blur = local.rounding / stiffness if stiffness > 0 else 0.0
            if scale <= blur:  # the weights are smaller than their error
                point, error = np.zeros_like(point), 1.0
            else:
                error = max(error, blur / scale)
            return Fit(point, bias, logits, local.curvature, objective.products, error)
        inner = conjugate_gradients(
            local.curve, local.descent, min(0.1, size / first), 2 * point.size + 20
        )
        seen = min(inner.softest, softest if softest > ridge else np.inf)
        softest = seen if np.isfinite(seen) else ridge
        image = objective.times(inner.x)
        shift = local.bias_step(local.total_curvature(image))
        length = objective.line_search(point, logits, inner.x, image + shift)
        point = point + length * inner.x
        bias = bias + length * shift
        logits = logits + length * (image + shift)
        moved = length * float(np.linalg.norm(inner.x)) / max(float(np.linalg.norm(point)), 1e-300)
        if not np.isfinite(moved):
            break
    reason = (
        f"the fit did not settle in {limit} Newton steps (relative error {error:.1e}, ridge"
        f" {ridge:g})"
    )
    if ridge == 0:
        reason += ": without ridge the minimum may not exist"
    raise FitError(reason, float(np.abs(logits).max(initial=0.0)))


@dataclass
class _Objective:
    """The objective F, and the products with the design that it needs."""

    design: Design
    targets: Array
    loss: Any
    ridge: float
    rows: Array
    fit_bias: bool
    products: int = 0

    def times(self, weights: Array) -> Array:
        self.products += 1
        return self.design.times(weights)

    def transposed_times(self, rows: Array) -> Array:
        self.products += 1
        return self.design.transposed_times(rows)

    def weighted(self, each: Array) -> Array:
        """Return the numbers, vectors or matrices of the samples, multiplied by their weights."""
        return np.asarray(self.rows.reshape(-1, *(1,) * (each.ndim - 1)) * each)

    def slope(self, logits: Array) -> Array:
        return self.weighted(self.loss.slope(self.targets, logits))

    def coarseness(self, logits: Array, slopes: Array, curvature: Array) -> float:
        """Return the norm of the terms whose rounding errors enter the residuals: targets, slopes,
        and the change of the slopes with the logits.

        Targets that are exactly one of the classes do not count: with them the slopes of the
        built-in losses have full relative accuracy.
        """
        targets = self.weighted(np.abs(self.targets))
        if type(self.loss) in (Logistic, Squared):
            targets[np.isin(self.targets, self.loss.classes)] = 0.0
        moved = times_curvature(curvature, np.abs(logits))
        return float(np.linalg.norm(_sizes(targets) + _sizes(slopes) + _sizes(moved)))

    def line_search(self, point: Array, logits: Array, step: Array, image: Array) -> float:
        """Return a step length at which the slope of F along the step is no larger than at its
        start; 1 near the minimum.

        Logits change by at most a few times their size, because the Newton step is much too long
        where the loss is saturated and has almost no curvature.
        """
        along, stretch = self.ridge * _dot(point, step), self.ridge * _dot(step, step)
        start = _dot(self.slope(logits), image) + along
        most = 4.0 * (1.0 + float(np.abs(logits).max(initial=0.0)))
        length = min(1.0, most / max(float(np.abs(image).max(initial=0.0)), 1e-300))
        for _ in range(60):
            slope = _dot(self.slope(logits + length * image), image) + along + length * stretch
            if slope <= 0.9 * abs(start):
                return length
            length *= max(0.1, min(0.7, abs(start) / (abs(start) + slope)))
        return length


class _Local:
    """The quadratic model of F at a point, with the bias eliminated."""

    def __init__(self, objective: _Objective, point: Array, logits: Array):
        self.objective = objective
        self.curvature = objective.weighted(objective.loss.curvature(objective.targets, logits))
        residual = objective.slope(logits)
        total = self.curvature.sum(axis=0)
        weight = float(objective.rows.sum()) or 1.0
        if total.ndim:
            # If probabilities of classes vanish, some directions of the bias have no curvature.
            self.inverse = np.linalg.pinv(total, hermitian=True)
            self.total = max(float(np.linalg.norm(total, 2)), 1e-300)
        else:
            self.total = float(total) if total > 0 else weight
        self.pull = residual.sum(axis=0) if objective.fit_bias else np.zeros(residual.shape[1:])
        balanced = residual - times_curvature(self.curvature, self._bias(self.pull))
        image = objective.transposed_times(balanced)
        self.descent = -(image + objective.ridge * point)
        size = float(np.linalg.norm(balanced))
        grain = ROUNDING * objective.coarseness(logits, residual, self.curvature)
        self.rounding = grain * float(np.linalg.norm(image)) / size if size > 0 else 0.0
        self.bias_rounding = grain * np.sqrt(len(residual)) / self.total

    def _bias(self, pull: Any) -> Any:
        """Return the change of the bias that changes the total slope by `pull`."""
        return self.inverse @ pull if np.ndim(pull) else pull / self.total

    def total_curvature(self, image: Array) -> Any:
        """Return the change of the total slope for a change of the logits."""
        if image.ndim == 1:
            return self.curvature @ image
        return np.einsum("mij,mj->i", self.curvature, image)

    def curve(self, direction: Array) -> Array:
        image = self.objective.times(direction)
        if self.objective.fit_bias:
            image = image - self._bias(self.total_curvature(image))
        moved = times_curvature(self.curvature, image)
        return self.objective.transposed_times(moved) + self.objective.ridge * direction

    def bias_step(self, coupling: Any) -> Any:
        if not self.objective.fit_bias:
            return 0.0 * self.pull
        return -self._bias(self.pull + coupling)


def times_curvature(curvature: Array, logits: Any) -> Array:
    """Return the product of the curvature of every sample (a number or a matrix) with its logits (a
    number or a vector); one vector is broadcast to all samples.
    """
    if curvature.ndim == 1:
        return np.asarray(curvature * logits)
    pairs = "mij,j->mi" if np.ndim(logits) == 1 else "mij,mj->mi"
    return np.asarray(np.einsum(pairs, curvature, logits))


def _dot(a: Array, b: Array) -> float:
    return float(np.vdot(a, b))


def _sizes(each: Array) -> Array:
    """Return the absolute value of the number, or the norm of the vector, of every sample."""
    return np.asarray(np.abs(each) if each.ndim == 1 else np.linalg.norm(each, axis=1))


class LinearSolution(NamedTuple):
    """A solution x of A x = b; `form` is b.x, with a relative error of second order in that of x,
    and `softest` the smallest curvature p.Ap / p.p of all search directions p.
    """

    x: Array
    form: float
    softest: float


def conjugate_gradients(
    apply: Callable[[Array], Array], b: Array, tolerance: float, limit: int
) -> LinearSolution:
    """Solve A x = b until the residual is below `tolerance` times the norm of b, or after `limit`
    products with A (`apply`); b may have any shape.
    """
    x = np.zeros_like(b)
    residual = b.copy()
    square = float(np.vdot(residual, residual))
    goal = tolerance**2 * square
    direction = residual.copy()
    softest = np.inf
    for _ in range(limit):
        if not square > goal:
            break
        image = apply(direction)
        stiffness = float(np.vdot(direction, image))
        if not stiffness > 0:
            break
        softest = min(softest, stiffness / float(np.vdot(direction, direction)))
        step = square / stiffness
        x += step * direction
        residual -= step * image
        before, square = square, float(np.vdot(residual, residual))
        direction *= square / before
        direction += residual
    return LinearSolution(x, float(np.vdot(b, x)), softest)


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
