r"""Losses of K classes, as functions of d = K - 1 logits.

The scores of the classes are $s = P u$ with an orthonormal basis P of the scores of sum zero
(`protocol.class_basis`), so that $|u|^2$ is the sum of the squares of the scores and the ridge is
that of the multinomial fit of scikit-learn. Targets have one entry per class.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import logsumexp, softmax

from ...arrays import Array
from ...losses import Loss, Squared
from ...protocol import class_basis
from ..designs.design import Design
from .fit import Fit, FitError, fit

LOST = 1e-12
"""A class with a smaller proportion of the labels counts as lost, as in the theory."""


class CrossEntropy:
    r"""The cross-entropy $-\sum_c y_c \ln \mathrm{softmax}_c(P u)$, its gradient $P^\top(p - y)$
    and its Hessian $P^\top(\mathrm{diag}\,p - p p^\top)P$.
    """

    def __init__(self, classes: int):
        self.basis = class_basis(classes)

    def value(self, target: Array, logit: Array) -> Array:
        scores = logit @ self.basis.T
        own = (target * scores).sum(axis=1)
        return np.asarray(logsumexp(scores, axis=1) * target.sum(axis=1) - own)

    def slope(self, target: Array, logit: Array) -> Array:
        return np.asarray((softmax(logit @ self.basis.T, axis=1) - target) @ self.basis)

    def curvature(self, target: Array, logit: Array) -> Array:
        shares = softmax(logit @ self.basis.T, axis=1)
        mean = shares @ self.basis
        square = np.einsum("mc,ci,cj->mij", shares, self.basis, self.basis, optimize=True)
        return np.asarray(square - mean[:, :, None] * mean[:, None, :])


class SquaredScores:
    r"""The squared loss $|P u - y|^2/2$ up to a constant: $|u - P^\top y|^2/2$."""

    def __init__(self, classes: int):
        self.basis = class_basis(classes)

    def value(self, target: Array, logit: Array) -> Array:
        return np.asarray(0.5 * ((logit - target @ self.basis) ** 2).sum(axis=1))

    def slope(self, target: Array, logit: Array) -> Array:
        return np.asarray(logit - target @ self.basis)

    def curvature(self, target: Array, logit: Array) -> Array:
        one = np.eye(logit.shape[1])
        return np.broadcast_to(one, (len(logit), *one.shape))


def class_loss(loss: Loss, classes: int) -> CrossEntropy | SquaredScores:
    """Return the loss of K classes that corresponds to a loss of two."""
    return SquaredScores(classes) if type(loss) is Squared else CrossEntropy(classes)


def fit_classes(
    design: Design,
    targets: Array,
    loss: Loss,
    ridge: float,
    *,
    rows: Array,
    fit_bias: bool,
    weights: Array,
    bias: Array,
    tolerance: float,
) -> Fit:
    """Fit the scores of K classes; weights, bias and logits of the result have one column per
    class. Arguments as for `fit`.

    With the cross-entropy, a class without any label is lost: its trained bias is minus infinity
    and its weights are zero.
    """
    mass = rows @ targets
    alive = np.isfinite(bias)
    if fit_bias:
        alive = np.full(len(bias), True) if type(loss) is Squared else mass > LOST * mass.sum()
    elif mass[~alive].any():
        raise FitError("the bias that is copied excludes a class that has labels", np.inf)
    inner = class_loss(loss, int(alive.sum()))
    basis = inner.basis
    found = fit(
        design,
        targets[:, alive],
        inner,
        ridge,
        rows=rows,
        fit_bias=fit_bias,
        weights=weights[:, alive] @ basis,
        bias=np.where(np.isfinite(bias), bias, 0.0)[alive] @ basis,
        tolerance=tolerance,
    )

    def spread(inside: Array, other: float) -> Array:
        whole = np.full((*inside.shape[:-1], len(bias)), other)
        whole[..., alive] = inside @ basis.T
        return whole

    return replace(
        found,
        weights=spread(found.weights, 0.0),
        bias=spread(found.bias, -np.inf),
        logits=spread(found.logits, -np.inf),
    )
