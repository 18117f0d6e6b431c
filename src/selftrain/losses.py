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
from numpy.typing import NDArray
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


WIDEST = 1e3
"""Logits up to this size are checked before a loss is used; the engines check those beyond when
they meet them.
"""

STEP = 1e-5
"""Half the distance of the logits a derivative is estimated from."""

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
    """Reject a loss whose derivatives do not belong together, or that is not convex, at logits from
    -1000 to 1000.
    """
    targets = np.concatenate([loss.classes, loss.link(np.array([-1.3, 0.4]))])
    outer = np.geomspace(3.3, WIDEST, 30)
    logits = np.concatenate([-outer, np.linspace(-2.9, 3.1, 25), outer])
    target, logit = (grid.ravel() for grid in np.meshgrid(targets, logits))
    check_derivatives(loss, target, logit)


def check_within(loss: Loss, reach: float, *targets: float) -> None:
    """Check the derivatives of a loss at logits up to `reach`, for the classes and `targets`."""
    grid = np.linspace(-reach, reach, 202)
    target, logit = np.meshgrid([*loss.classes, *targets], grid)
    check_derivatives(loss, target.ravel(), logit.ravel())


def check_derivatives(loss: Loss, target: Array, logit: Array) -> None:
    """Raise `InvalidInput` if the loss contradicts itself at one of these points.

    Each derivative is compared with the central difference of the one before it, off the kinks; the
    engines would otherwise solve other equations without a word. Where a function overflows there
    is nothing to compare.
    """
    step = STEP * np.maximum(1.0, np.abs(logit))
    smooth = (np.abs(logit[:, None] - kinks_at(loss, target)) > 1e3 * step[:, None]).all(axis=1)
    target, logit, step = target[smooth], logit[smooth], step[smooth]
    for name, before in (("slope", "value"), ("curvature", "slope"), ("third", "curvature")):
        found, expected, wrong = _compared(loss, name, before, target, logit, step)
        # A kink that is not listed differs at one point only, and a fine ripple at a large step.
        for shift in (-3.0, 3.0, 0.0):
            t, x, h = target[wrong], logit[wrong], step[wrong]
            width = h if shift else STEP
            wrong[wrong] = _compared(loss, name, before, t, x + shift * h, width + 0.0 * h)[2]
        if wrong.any():
            at = int(np.flatnonzero(wrong)[np.argmin(np.abs(logit[wrong]))])
            where = f"target {target[at]:g}, logit {logit[at]:g}"
            accepted = (
                f"{name} must be the derivative of {before}: {found[at]:g} is not {expected[at]:g}"
                f" at {where}"
            )
            raise InvalidInput("loss", loss.name, accepted)
        if name == "curvature" and found.min(initial=0.0) < -1e-9:
            at = int(np.argmin(found))
            where = f"{found[at]:g} at target {target[at]:g}, logit {logit[at]:g}"
            accepted = f"it must be convex: its curvature is negative, {where}"
            raise InvalidInput("loss", loss.name, accepted)


def _compared(
    loss: Loss, name: str, before: str, target: Array, logit: Array, step: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """A function of the loss, the derivative of the one before it, and where they differ."""
    found = _called(loss, name, target, logit)
    expected, noise = _difference(loss, before, target, logit, step)
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = 1e-4 * np.maximum(np.abs(found), np.abs(expected)) + noise
        return found, expected, np.abs(found - expected) > allowed


def _difference(
    loss: Loss, name: str, target: Array, logit: Array, step: Array
) -> tuple[Array, Array]:
    """The derivative of a function of the loss by central differences, and how far off it may be by
    rounding and by its step.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        slopes = []
        for width in (step, 0.5 * step):
            above, below = (_called(loss, name, target, logit + way * width) for way in (1.0, -1.0))
            slopes.append((above - below) / (2.0 * width))
        rounding = 64.0 * np.finfo(float).eps * (np.abs(above) + np.abs(below)) / step
        noise = rounding + 4.0 * np.abs(slopes[0] - slopes[1]) + 1e-9
    return slopes[1], np.where(np.isfinite(noise), noise, np.inf)


def _called(loss: Loss, name: str, target: Array, logit: Array) -> Array:
    """What a function of the loss returns, one number per logit."""
    with np.errstate(all="ignore"):
        given = np.asarray(getattr(loss, name)(target, logit))
    if given.shape != logit.shape or given.dtype.kind not in "fiub":
        returned = f"shape {given.shape}" if given.dtype.kind in "fiub" else f"{given.dtype}"
        accepted = (
            f"{name} must return an array with one number per logit, here of shape {logit.shape},"
            f" not {returned}; np.broadcast_to(number, np.shape(logit)) makes one of a number"
        )
        raise InvalidInput("loss", getattr(loss, "name", loss), accepted)
    return given.astype(float)
