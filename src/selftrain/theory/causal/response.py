r"""The response of a sample to its field: the trained logit, the slope of the loss there, and the
derivatives of that slope in the field.

A sample with field H, target p and weight k has the trained logit $u = H - X f$, $f = k\,\partial_2
l(p, u)$, the proximal map of $k l$ in the metric of X. The equations of a step need f, $D =
\partial f/\partial H$ and $\partial D/\partial H$. `Binary` is for two classes and any loss of one
logit: the logistic loss is compiled, the squared one explicit, others use `quadrature.prox`.
`Scores` is for K scores $P u$ of d = K - 1 logits: the cross-entropy of softmax(P u), or half the
squared distance of the scores from the class. A target is $P^\top y$, where y are class
probabilities: a given class, a soft label, or a mixture of both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...losses import Logistic, Loss, Squared
from ...protocol import PseudoLabels, class_basis
from ...runtime.kernels import kernel
from ..averages.quadrature.prox import proximal

_WARM, _COLD = 6, 200
"""Largest number of Halley steps from the last known logit, and of the Newton steps from 0 that
follow if these do not converge (they do for every c); also of Newton steps for K scores.
"""

_LAST_HALLEY, _LAST_NEWTON, _LAST_SCORES = 1e-5, 1e-8, 1e-5
"""A step smaller than this is the last one: the remaining error is below its cube (Halley) or its
square (Newton), for every c.
"""

Respond = tuple[Array, Array]
"""D (points, d, d), and its derivatives (points, d, d, d)."""


class Scores:
    """The loss of K classes as a function of logits u of d = K - 1 components, (points, d):
    cross-entropy, or half the squared distance of the scores P u from the class.

    Attributes:
        classes, components: K and d.
        basis: P, (K, d).
        codes: the targets of the classes, (K, d).
    """

    def __init__(self, classes: int, squared: bool) -> None:
        self.classes, self.components, self.squared = classes, classes - 1, squared
        self.basis = self.codes = class_basis(classes)

    def labels(self, made: PseudoLabels, logits: Array) -> Array:
        """Return the targets of the pseudo-labels `made` from logits."""
        if made.labeler.jumps(made.sharpness):
            return np.asarray(self.codes[self.predicted(logits)])
        if self.squared:
            return made.sharpness * logits
        return _softmax(made.sharpness * logits @ self.basis.T) @ self.basis

    def predicted(self, logits: Array) -> NDArray[np.intp]:
        """Return the class of the largest score."""
        return np.asarray(np.argmax(logits @ self.basis.T, axis=1))

    def margin(self, logits: Array) -> Array:
        """Return the difference of the two largest scores."""
        largest = np.partition(logits @ self.basis.T, -2, axis=1)
        return np.asarray(largest[:, -1] - largest[:, -2])

    def unit(self, square: float) -> float:
        """Return the unit of margins for weights with this squared norm: the root mean square of
        $|w_k - w_l|$ over pairs of classes.
        """
        return math.sqrt(2.0 * square * float((self.basis**2).sum())) / self.components

    def masses(self, target: Array) -> Array:
        """Return the probability that targets give to each class, (points, K)."""
        return np.abs(target @ self.basis.T + 1.0 / self.classes)

    def value(self, target: Array, logits: Array) -> Array:
        """Return the losses, (points)."""
        if self.squared:
            return np.asarray(0.5 * ((logits - target) ** 2).sum(axis=1))
        scores = logits @ self.basis.T
        top = scores.max(axis=1)
        mass = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
        return np.asarray(mass - (target * logits).sum(axis=1))

    def slope(self, target: Array, logits: Array) -> Array:
        """Return the first derivatives of the loss."""
        if self.squared:
            return logits - target
        return _softmax(logits @ self.basis.T) @ self.basis - target

    def curvature(self, target: Array, logits: Array) -> Array:
        """Return the second derivatives of the loss, (points, d, d)."""
        if self.squared:
            return np.broadcast_to(np.eye(self.components), (len(logits), *[self.components] * 2))
        p = _softmax(logits @ self.basis.T)
        mean = p @ self.basis
        square = np.einsum("ik,ka,kb->iab", p, self.basis, self.basis, optimize=True)
        return np.asarray(square - mean[:, :, None] * mean[:, None, :])

    def respond(
        self, field: Array, target: Array, weight: Array, strength: Array, u: Array, f: Array,
        slopes: bool = True,
    ) -> Respond:  # fmt: skip
        """Fill u with the trained logits (its values are the start) and f with the slopes; return
        the derivatives of f.
        """
        size, n = self.components, len(field)
        d, bend = np.empty((n, size, size)), np.zeros((n if slopes else 0, size, size, size))
        if self.squared:
            kinds, which = np.unique(weight, return_inverse=True)
            one = np.eye(size)
            each = np.array([k * np.linalg.inv(one + k * strength) for k in kinds])
            d[:] = each[which]
            f[:] = np.einsum("iab,ib->ia", d, field - target)
            u[:] = field - f @ strength.T
            return d, bend
        inverse = np.linalg.inv(0.5 * (strength + strength.T))
        _cross_entropy((field, target, weight), inverse, self.basis, (u, f, d, bend))
        return d, bend


class Binary(Scores):
    """Any loss of one logit u, for two classes with the scores -u/2 and u/2."""

    def __init__(self, loss: Loss) -> None:
        self.loss, self.classes, self.components = loss, 2, 1
        self.basis = np.array([[-0.5], [0.5]])
        self.codes = np.array([[loss.classes[0]], [loss.classes[1]]])

    def labels(self, made: PseudoLabels, logits: Array) -> Array:
        labels = made.labeler.target(logits[:, 0], made.sharpness, self.loss)
        return np.array(labels, dtype=np.float64)[:, None]

    def masses(self, target: Array) -> Array:
        codes = self.codes[:, 0]
        return np.asarray(np.abs(target - codes[::-1]) / (codes[1] - codes[0]))

    def value(self, target: Array, logits: Array) -> Array:
        return np.asarray(self.loss.value(target[:, 0], logits[:, 0]))

    def slope(self, target: Array, logits: Array) -> Array:
        return np.asarray(self.loss.slope(target, logits))

    def curvature(self, target: Array, logits: Array) -> Array:
        return np.asarray(self.loss.curvature(target, logits))[:, :, None]

    def respond(
        self, field: Array, target: Array, weight: Array, strength: Array, u: Array, f: Array,
        slopes: bool = True,
    ) -> Respond:  # fmt: skip
        h, p, c, k = field[:, 0], target[:, 0], float(strength[0, 0]), weight
        x, slope = u[:, 0], f[:, 0]
        d, bend = np.empty(h.size), np.empty(h.size)
        if type(self.loss) is Logistic:
            _logistic(h, p, k, c, (x, slope, d, bend))
        elif type(self.loss) is Squared:
            slope[:] = k * (h - p) / (1.0 + c * k)
            x[:] = h - c * slope
            d[:] = k / (1.0 + c * k)
            bend[:] = 0.0
        else:
            x[:] = proximal(self.loss, p, h, c * k)
            curved = k * self.loss.curvature(p, x)
            slope[:] = np.where(k > 0, k * self.loss.slope(p, x), 0.0)
            d[:] = curved / (1.0 + c * curved)
            bend[:] = k * self.loss.third(p, x) / (1.0 + c * curved) ** 3
        return d[:, None, None], bend[:, None, None, None]


def engine_loss(loss: Loss, classes: int) -> Scores:
    """Return a loss as a function of logits of K - 1 components."""
    if classes == 2:
        return Binary(loss)
    return Scores(classes, type(loss) is Squared)


def _softmax(scores: Array) -> Array:
    mass = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


@kernel(error_model="numpy")
def _logistic(field: Any, target: Any, weight: Any, strength: float, out: Any) -> None:
    u, f, d, bend = out
    for i in range(field.size):
        k = weight[i]
        if k == 0.0:
            u[i], f[i], d[i], bend[i] = field[i], 0.0, 0.0, 0.0
            continue
        h, p, c = field[i], target[i], strength * k
        x = u[i]
        for _ in range(_WARM):
            share = 1.0 / (1.0 + math.exp(-x))
            slope = c * share * (1.0 - share)
            step = (x + c * (share - p) - h) / (1.0 + slope)
            step /= 1.0 - 0.5 * step * slope * (1.0 - 2.0 * share) / (1.0 + slope)
            x -= step
            if abs(step) <= _LAST_HALLEY:
                break
        else:
            x = _from_zero(h, p, c)
        share = 1.0 / (1.0 + math.exp(-x))
        curvature = k * share * (1.0 - share)
        stretch = 1.0 + strength * curvature
        u[i], f[i] = x, k * (share - p)
        d[i] = curvature / stretch
        bend[i] = curvature * (1.0 - 2.0 * share) / (stretch * stretch * stretch)


@kernel(error_model="numpy")
def _from_zero(h: float, p: float, c: float) -> float:
    """Return the proximal map by Newton's method from 0, which converges monotonically."""
    x = 0.0
    for _ in range(_COLD):
        share = 1.0 / (1.0 + math.exp(-x))
        step = (x + c * (share - p) - h) / (1.0 + c * share * (1.0 - share))
        x -= step
        if abs(step) <= _LAST_NEWTON:
            break
    return x


@kernel(error_model="numpy")
def _shares(basis: Any, x: Any, p: Any) -> float:
    """Fill p with softmax(P x); return the logarithm of the sum of exponentials."""
    classes, size = basis.shape
    top = -math.inf
    for m in range(classes):
        score = 0.0
        for a in range(size):
            score += basis[m, a] * x[a]
        p[m] = score
        top = max(top, score)
    mass = 0.0
    for m in range(classes):
        p[m] = math.exp(p[m] - top)
        mass += p[m]
    for m in range(classes):
        p[m] /= mass
    return top + math.log(mass)


@kernel(error_model="numpy")
def _height(x: Any, h: Any, target: Any, k: float, inverse: Any, log_mass: float) -> float:
    """Return the function that the proximal map minimises: (x-h) X^-1 (x-h) / 2 + k (log mass -
    target x).
    """
    height = log_mass
    for a in range(x.size):
        height -= target[a] * x[a]
    height *= k
    for a in range(x.size):
        for b in range(x.size):
            height += 0.5 * (x[a] - h[a]) * inverse[a, b] * (x[b] - h[b])
    return height


@kernel(error_model="numpy")
def _factorise(square: Any) -> None:
    """Compute the lower triangular factor of a positive definite matrix, in place."""
    for a in range(len(square)):
        for b in range(a + 1):
            total = square[a, b]
            for c in range(b):
                total -= square[a, c] * square[b, c]
            square[a, b] = math.sqrt(total) if a == b else total / square[b, b]


@kernel(error_model="numpy")
def _solve(root: Any, x: Any) -> None:
    """Solve root rootᵀ y = x in place."""
    size = len(root)
    for a in range(size):
        for b in range(a):
            x[a] -= root[a, b] * x[b]
        x[a] /= root[a, a]
    for a in range(size - 1, -1, -1):
        for b in range(a + 1, size):
            x[a] -= root[b, a] * x[b]
        x[a] /= root[a, a]


@kernel(error_model="numpy")
def _stiffen(basis: Any, p: Any, mean: Any, k: float, inverse: Any, square: Any) -> None:
    """Fill `square` with the second derivatives of `_height`, `mean` with the mean of the basis
    under p.
    """
    classes, size = basis.shape
    for a in range(size):
        mean[a] = 0.0
        for m in range(classes):
            mean[a] += p[m] * basis[m, a]
    for a in range(size):
        for b in range(a + 1):
            total = -mean[a] * mean[b]
            for m in range(classes):
                total += p[m] * basis[m, a] * basis[m, b]
            square[a, b] = square[b, a] = inverse[a, b] + k * total


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def _cross_entropy(samples: Any, inverse: Any, basis: Any, out: Any) -> None:
    """Compute the response of each sample, by Newton's method on the convex function `_height`;
    steps that do not decrease it are halved.

    The derivatives: with H the covariance of the rows P_m of the basis under the probabilities p_m
    and A = (1 + X k H)^-1, D = k H A, and its derivatives are k sum_m p_m v v v with v =
    Aᵀ(P_m - mean).
    """
    field, targets, weights = samples
    u, f, d, bend = out
    classes, size = basis.shape
    p, mean, step, trial = np.empty(classes), np.empty(size), np.empty(size), np.empty(size)
    x, h, target = np.empty(size), np.empty(size), np.empty(size)
    root, answer, v = np.empty((size, size)), np.empty((size, size)), np.empty((classes, size))
    for i in range(len(field)):
        k = weights[i]
        if k == 0.0:
            u[i], f[i], d[i] = field[i], 0.0, 0.0
            if len(bend):
                bend[i] = 0.0
            continue
        for a in range(size):
            x[a], h[a], target[a] = u[i, a], field[i, a], targets[i, a]
        for a in range(size):
            if not math.isfinite(x[a]):  # left by an evaluation that failed
                x[:] = 0.0
        log_mass = _shares(basis, x, p)
        for _ in range(_COLD):
            _stiffen(basis, p, mean, k, inverse, root)
            _factorise(root)
            for a in range(size):
                step[a] = -k * (mean[a] - target[a])
                for b in range(size):
                    step[a] += inverse[a, b] * (h[b] - x[b])
            _solve(root, step)
            largest = 0.0
            for a in range(size):
                largest = max(largest, abs(step[a]))
            if largest > 0.5:
                before = _height(x, h, target, k, inverse, log_mass)
                for _ in range(30):
                    for a in range(size):
                        trial[a] = x[a] + step[a]
                    log_mass = _shares(basis, trial, p)
                    if _height(trial, h, target, k, inverse, log_mass) <= before:
                        break
                    step *= 0.5
            for a in range(size):
                x[a] += step[a]
            log_mass = _shares(basis, x, p)
            if largest <= _LAST_SCORES:
                break
        _stiffen(basis, p, mean, k, inverse, root)
        for a in range(size):
            u[i, a], f[i, a] = x[a], k * (mean[a] - target[a])
        _factorise(root)
        for b in range(size):  # A = (X^-1 + k H)^-1 X^-1
            for a in range(size):
                step[a] = inverse[a, b]
            _solve(root, step)
            for a in range(size):
                answer[a, b] = step[a]
        for m in range(classes):
            for b in range(size):
                v[m, b] = 0.0
                for a in range(size):
                    v[m, b] += (basis[m, a] - mean[a]) * answer[a, b]
        for a in range(size):  # k H A = k sum_m p_m (P_m - mean) v_m
            for b in range(size):
                total = 0.0
                for m in range(classes):
                    total += p[m] * (basis[m, a] - mean[a]) * v[m, b]
                d[i, a, b] = k * total
        if not len(bend):
            continue
        for a in range(size):
            for b in range(a + 1):
                for c in range(b + 1):
                    total = 0.0
                    for m in range(classes):
                        total += p[m] * v[m, a] * v[m, b] * v[m, c]
                    total *= k
                    bend[i, a, b, c] = bend[i, a, c, b] = total
                    bend[i, b, a, c] = bend[i, b, c, a] = total
                    bend[i, c, a, b] = bend[i, c, b, a] = total
