r"""Labelers: functions from the logit of the previous model to the target of the next fit.

The paper's pseudo-labeler is $\sigma_{\rm pl}(x) = \sigma(\gamma x)$: the link of the loss applied
to the sharpened logit (`SoftLabels`); $\gamma = \infty$ gives hard labels. Any other object with
the attributes of `Labeler` can be used, and takes the generic path of the solver.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .arrays import Array
from .errors import InvalidInput, nearest
from .losses import Loss

__all__ = ["HardLabels", "Labeler", "SoftLabels", "get_labeler", "register"]


@runtime_checkable
class Labeler(Protocol):
    """A function from logits to targets."""

    name: str

    def target(self, logit: Array, sharpness: float, loss: Loss) -> Array:
        """Return the targets of `loss` for samples with these logits of the previous model.

        Each target must depend on its own logit only: the engines call this for parts of a batch.
        Targets of the logistic loss lie in [0, 1].
        """

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        """Return the logits at which the target is discontinuous; its corners may be listed."""


class SoftLabels:
    r"""Soft labels $\sigma(\gamma \tilde h)$; hard labels if the sharpness $\gamma$ is infinite."""

    name = "soft"

    def target(self, logit: Array, sharpness: float, loss: Loss) -> Array:
        if math.isinf(sharpness):
            negative, positive = loss.classes
            return np.where(np.asarray(logit) > 0, positive, negative)
        return loss.link(sharpness * np.asarray(logit))

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        return (0.0,) if math.isinf(sharpness) else ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HardLabels(SoftLabels):
    r"""Hard labels, the class of the sign of $\tilde h$, for any sharpness."""

    name = "hard"

    def target(self, logit: Array, sharpness: float, loss: Loss) -> Array:
        return super().target(logit, math.inf, loss)

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        return (0.0,)


_registry: dict[str, Labeler] = {"soft": SoftLabels(), "hard": HardLabels()}


def register(labeler: Labeler) -> Labeler:
    """Register a labeler, so that it can be given by its name."""
    _check(labeler)
    _registry[labeler.name] = labeler
    return labeler


def get_labeler(labeler: Any) -> Labeler:
    """Return the labeler of a name, or the object itself if it is a labeler."""
    if isinstance(labeler, str):
        if labeler not in _registry:
            accepted = f"unknown labeler; {nearest(labeler, _registry)}"
            raise InvalidInput("labeler", labeler, accepted)
        return _registry[labeler]
    _check(labeler)
    return labeler  # type: ignore[no-any-return]


def _check(labeler: Any) -> None:
    if isinstance(labeler, type) or not isinstance(labeler, Labeler):
        accepted = "must be a name, or an object with the attributes of selftrain.labelers.Labeler"
        raise InvalidInput("labeler", labeler, accepted)
