r"""Losses of K classes, as functions of d = K - 1 logits.

The scores of the classes are $s = P u$ with an orthonormal basis P of the scores of sum zero
(`protocol.class_basis`), so that $|u|^2$ is the sum of the squares of the scores and the ridge is
that of the multinomial fit of scikit-learn. Targets have one entry per class.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from ...arrays import Array
from ...losses import Loss, Squared
from ...protocol import class_basis


class CrossEntropy:
    r"""$-\sum_c y_c \ln \mathrm{softmax}_c(P u)$, its gradient $P^\top(p - y)$ and its Hessian
    $P^\top(\mathrm{diag}\,p - p p^\top)P$.
    """

    def __init__(self, classes: int):
        self.basis = class_basis(classes)

    def value(self, target: Array, logit: Array) -> Array:
        scores = logit @ self.basis.T
        total: Array = logsumexp(scores, axis=1) * target.sum(axis=1) - (target * scores).sum(axis=1)
        return total

    def slope(self, target: Array, logit: Array) -> Array:
        return np.asarray((softmax(logit @ self.basis.T, axis=1) - target) @ self.basis)

    def curvature(self, target: Array, logit: Array) -> Array:
        shares = softmax(logit @ self.basis.T, axis=1)
        mean = shares @ self.basis
        square = np.einsum("mc,ci,cj->mij", shares, self.basis, self.basis, optimize=True)
        return np.asarray(square - mean[:, :, None] * mean[:, None, :])


class SquaredScores:
    r"""$|P u - y|^2/2$ without what no u changes: $|u - P^\top y|^2/2$."""

    def __init__(self, classes: int):
        self.basis = class_basis(classes)

    def value(self, target: Array, logit: Array) -> Array:
        return np.asarray(0.5 * ((logit - target @ self.basis) ** 2).sum(axis=1))

    def slope(self, target: Array, logit: Array) -> Array:
        return np.asarray(logit - target @ self.basis)

    def curvature(self, target: Array, logit: Array) -> Array:
        one = np.eye(logit.shape[1])
        return np.broadcast_to(one, (len(logit), *one.shape))


ClassLoss = CrossEntropy | SquaredScores


def class_loss(loss: Loss, classes: int) -> ClassLoss:
    """Return a loss of two classes written for K."""
    return SquaredScores(classes) if type(loss) is Squared else CrossEntropy(classes)
