r"""The law of the test logits: a sample that no step has seen has a Gaussian logit in each class.

Weights that know nothing of a sample see Gaussian noise around its class mean, so its logit is
$N(B + s m, q_s)$, with $q_s = \Delta q$ on the sphere. Training logits are in `logits`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ...arrays import Array
from ...errors import InvalidInput


class GaussianLogits(NamedTuple):
    """Logits of fresh samples: mean and standard deviation in the negative and the positive class,
    and the share of the positive one. `y` = 0 or 1 restricts to a class.

    >>> from selftrain import Problem, Recipe, solve
    >>> run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=2), Recipe())
    >>> law = run.test_logits(2)
    >>> wrong = 0.4 * law.cdf(0.0, y=1) + 0.6 * (1 - law.cdf(0.0, y=0))
    >>> bool(np.isclose(wrong, run.error[2]))
    True
    """

    means: tuple[float, float]
    spreads: tuple[float, float]
    rho: float

    def cdf(self, u: ArrayLike, y: int | None = None) -> Array:
        """P(logit <= u), in the shape of u."""
        return self._mixed(y, [ndtr(z) for z in self._standard(u)])

    def density(self, u: ArrayLike, y: int | None = None) -> Array:
        """Density of the logit at u, in the shape of u."""
        bells = [np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) for z in self._standard(u)]
        return self._mixed(y, [bell / s for bell, s in zip(bells, self.spreads, strict=True)])

    def _standard(self, u: ArrayLike) -> list[Array]:
        pairs = zip(self.means, self.spreads, strict=True)
        return [(np.asarray(u, dtype=float) - mean) / spread for mean, spread in pairs]

    def _mixed(self, y: int | None, of_class: list[Array]) -> Array:
        if y not in (None, 0, 1):
            raise InvalidInput("y", y, "must be 0, 1, or None for both classes")
        if y is not None:
            return np.asarray(of_class[int(y)])
        return np.asarray((1 - self.rho) * of_class[0] + self.rho * of_class[1])
