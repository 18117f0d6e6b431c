r"""Losses: what a step of self-training minimises, as functions of the logit.

A loss is the composition $l_L(y, x) = l(y, \sigma(x))$ of the paper (Table `table:functions`)
with its first three derivatives in the logit x, the link $\sigma$ that turns a logit into a
soft label, and the values that code the two classes. Logistic and squared loss have fast
paths in the engines; any other object with these attributes takes the generic path of the
same accuracy. `register` makes a loss known by name.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from .arrays import Array
from .errors import InvalidInput, nearest

__all__ = ["Logistic", "Loss", "Squared", "get_loss", "register"]


@runtime_checkable
class Loss(Protocol):
    """A convex loss in the logit.

    Attributes:
        name: how it is called in files and on the command line.
        classes: the targets that code y = 0 and y = 1.
        kinks: logits at which the second or the third derivative jumps: a tuple if they are the
            same for every target, else a method that takes an array of targets and returns a tuple
            of arrays, one per kink.
    """

    name: str
    classes: tuple[float, float]
    kinks: Any

    def link(self, logit: Array) -> Array:
        r"""The model output $\sigma(x)$, used as soft target."""
        ...

    def value(self, target: Array, logit: Array) -> Array:
        """l(target, x)."""
        ...

    def slope(self, target: Array, logit: Array) -> Array:
        r"""$\partial_2 l$, the first derivative in the logit (increasing)."""
        ...

    def curvature(self, target: Array, logit: Array) -> Array:
        """The second derivative in the logit (not negative)."""
        ...

    def third(self, target: Array, logit: Array) -> Array:
        """The third derivative in the logit."""
        ...


class Logistic:
    """Cross-entropy of a sigmoid output, targets in [0, 1]."""

    name = "logistic"
    classes = (0.0, 1.0)
    kinks: tuple[float, ...] = ()

    def link(self, logit: Array) -> Array:
        return expit(np.asarray(logit, dtype=float))

    def value(self, target: Array, logit: Array) -> Array:
        target, logit = np.asarray(target), np.asarray(logit)
        return (1 - target) * np.logaddexp(0.0, logit) + target * np.logaddexp(0.0, -logit)

    def slope(self, target: Array, logit: Array) -> Array:
        # sigma(x) - p without cancellation where both are near 0 or near 1
        target, logit = np.asarray(target), np.asarray(logit)
        return (1 - target) * self.link(logit) - target * self.link(-logit)

    def curvature(self, target: Array, logit: Array) -> Array:
        return self.link(logit) * self.link(-np.asarray(logit))

    def third(self, target: Array, logit: Array) -> Array:
        return -np.tanh(0.5 * np.asarray(logit)) * self.curvature(target, logit)

    def __repr__(self) -> str:
        return "Logistic()"


class Squared:
    """Half the squared distance of logit and target; classes coded as -1 and +1."""

    name = "squared"
    classes = (-1.0, 1.0)
    kinks: tuple[float, ...] = ()

    def link(self, logit: Array) -> Array:
        return np.asarray(logit, dtype=float)

    def value(self, target: Array, logit: Array) -> Array:
        return 0.5 * (np.asarray(logit) - target) ** 2

    def slope(self, target: Array, logit: Array) -> Array:
        return np.asarray(logit) - target

    def curvature(self, target: Array, logit: Array) -> Array:
        return np.ones(np.broadcast(target, logit).shape)

    def third(self, target: Array, logit: Array) -> Array:
        return np.zeros(np.broadcast(target, logit).shape)

    def __repr__(self) -> str:
        return "Squared()"


def kinks_at(loss: Loss, target: Array) -> Array:
    """The logits of the kinks for each target, shape (targets, kinks).

    >>> kinks_at(Squared(), np.zeros(3)).shape
    (3, 0)
    """
    target = np.asarray(target, dtype=float)
    places = loss.kinks(target) if callable(loss.kinks) else loss.kinks
    columns = [np.broadcast_to(np.asarray(place, dtype=float), target.shape) for place in places]
    return np.stack(columns, axis=-1) if columns else np.empty((*target.shape, 0))


def fixed_kinks(loss: Loss) -> tuple[float, ...]:
    """The logits of the kinks that are there for every target; none if they move with it."""
    return () if callable(loss.kinks) else tuple(loss.kinks)


_registry: dict[str, Loss] = {"logistic": Logistic(), "squared": Squared()}


def register(loss: Loss) -> Loss:
    """Make `loss` known by its name, so that files and the command line can ask for it."""
    _check(loss)
    _registry[loss.name] = loss
    return loss


def get_loss(loss: Any, field: str = "loss") -> Loss:
    """The loss of that name, or the object itself if it is a loss; `field` is named where it is
    neither.
    """
    if isinstance(loss, str):
        if loss not in _registry:
            raise InvalidInput(field, loss, f"unknown loss; {nearest(loss, _registry)}")
        return _registry[loss]
    _check(loss, field)
    return loss  # type: ignore[no-any-return]


def same_loss(one: Loss, other: Loss) -> bool:
    """Whether two losses are one: the same object, or the same built-in loss."""
    return one is other or (type(one) is type(other) and type(one) in (Logistic, Squared))


def _check(loss: Any, field: str = "loss") -> None:
    if isinstance(loss, type) or not isinstance(loss, Loss):
        raise InvalidInput(
            field, loss, "a name, or an object with the attributes of selftrain.losses.Loss"
        )
    if type(loss) not in (Logistic, Squared):
        if loss.name in (Logistic.name, Squared.name):
            raise InvalidInput(field, loss.name, "the name of a built-in loss is taken")
        _check_derivatives(loss)


def _check_derivatives(loss: Loss) -> None:
    """Refuse a loss whose derivatives do not belong together, or that is not convex.

    Each derivative is compared with the central difference of the one before it, off the kinks; the
    engines would otherwise solve other equations without a word.
    """
    step = 1e-5
    logits = np.linspace(-2.9, 3.1, 25)
    targets = np.concatenate([loss.classes, loss.link(np.array([-1.3, 0.4]))])
    target, logit = (grid.ravel() for grid in np.meshgrid(targets, logits))
    smooth = (np.abs(logit[:, None] - kinks_at(loss, target)) > 1e-2).all(axis=1)
    target, logit = target[smooth], logit[smooth]
    rows = (("slope", "value"), ("curvature", "slope"), ("third", "curvature"))
    for name, before in rows:
        found = np.asarray(getattr(loss, name)(target, logit), dtype=float)
        function = getattr(loss, before)
        expected = (function(target, logit + step) - function(target, logit - step)) / (2 * step)
        wrong = ~(np.abs(found - expected) <= 1e-4 * (1.0 + np.abs(expected)))
        if wrong.any():
            at = int(np.argmax(wrong))
            where = f"target {target[at]:g}, logit {logit[at]:g}"
            accepted = (
                f"{name} must be the derivative of {before}: {found[at]:g} is not {expected[at]:g}"
                f" at {where}"
            )
            raise InvalidInput("loss", loss.name, accepted)
        if name == "curvature" and found.min() < -1e-9:
            raise InvalidInput("loss", loss.name, "it must be convex: its curvature is negative")
