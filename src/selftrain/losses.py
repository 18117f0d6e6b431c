r"""Losses as functions of the logit.

A loss is the composition $l_L(y, x) = l(y, \sigma(x))$ of the paper (Table `table:functions`)
with its first three derivatives in the logit x, the link $\sigma$ that turns a logit into a
soft label, and the values that encode the two classes. Logistic and squared loss have fast
paths in the engines; any other object with these attributes takes a generic path of the
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
        name: its name in files and on the command line.
        classes: the targets that encode y = 0 and y = 1.
        kinks: logits at which the second or third derivative is discontinuous: a tuple if they are
            the same for every target, else a method that takes an array of targets and returns a
            tuple of arrays, one per kink.
    """

    name: str
    classes: tuple[float, float]
    kinks: Any

    def link(self, logit: Array) -> Array:
        r"""Return the model output $\sigma(x)$, used as soft target."""

    def value(self, target: Array, logit: Array) -> Array:
        """Return the loss l(target, x)."""

    def slope(self, target: Array, logit: Array) -> Array:
        r"""Return $\partial_2 l$, the first derivative in the logit (increasing)."""

    def curvature(self, target: Array, logit: Array) -> Array:
        """Return the second derivative in the logit (not negative)."""

    def third(self, target: Array, logit: Array) -> Array:
        """Return the third derivative in the logit."""


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
        # sigma(x) - p without cancellation if both are near 0 or near 1
        target, logit = np.asarray(target), np.asarray(logit)
        return (1 - target) * self.link(logit) - target * self.link(-logit)

    def curvature(self, target: Array, logit: Array) -> Array:
        return self.link(logit) * self.link(-np.asarray(logit))

    def third(self, target: Array, logit: Array) -> Array:
        return -np.tanh(0.5 * np.asarray(logit)) * self.curvature(target, logit)

    def __repr__(self) -> str:
        return "Logistic()"


class Squared:
    """Half the squared difference of logit and target; classes are encoded as -1 and +1."""

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
    """Return the logits at which the loss has kinks for each target, shape (targets, kinks).

    >>> kinks_at(Squared(), np.zeros(3)).shape
    (3, 0)
    """
    target = np.asarray(target, dtype=float)
    places = loss.kinks(target) if callable(loss.kinks) else loss.kinks
    columns = [np.broadcast_to(np.asarray(place, dtype=float), target.shape) for place in places]
    return np.stack(columns, axis=-1) if columns else np.empty((*target.shape, 0))


def fixed_kinks(loss: Loss) -> tuple[float, ...]:
    """Return the kinks that do not depend on the target; empty if they do."""
    return () if callable(loss.kinks) else tuple(loss.kinks)


OUTER = np.geomspace(3.3, 1e3, 30)
CHECKED = np.concatenate([-OUTER[::-1], np.linspace(-2.9, 3.1, 25), OUTER])
"""Logits in increasing order, most of them near 0, at which a loss is checked before it is used.
The engines check larger ones when they occur.
"""

CENTRAL = 5.0
"""Logits up to this size must give finite values; larger ones may overflow."""

BETWEEN = 17
"""Number of targets between the smallest and the largest one with which each logit is checked."""

GOLDEN = 0.6180339887498949
"""Shift of these targets from one logit to the next, in units of their spacing. With multiples of
the golden ratio (a low-discrepancy sequence) the targets of all logits together leave no gap.
"""

STEP = 1e-5
"""Step of the finite differences: absolute for logits below 1, relative for larger ones."""

HALVINGS = 40
"""Halvings of an interval in the search for a jump of the slope, to about 50 spacings of floats."""

_registry: dict[str, Loss] = {"logistic": Logistic(), "squared": Squared()}


def register(loss: Loss) -> Loss:
    """Register a loss, so that it can be given by its name in code, files and commands."""
    _check(loss)
    _registry[loss.name] = loss
    return loss


def get_loss(loss: Any, field: str = "loss") -> Loss:
    """Return the loss of a name, or the object itself if it is a loss; `field` is the name of the
    argument for error messages.
    """
    if isinstance(loss, str):
        if loss not in _registry:
            raise InvalidInput(field, loss, f"unknown loss; {nearest(loss, _registry)}")
        return _registry[loss]
    _check(loss, field)
    return loss  # type: ignore[no-any-return]


def same_loss(one: Loss, other: Loss) -> bool:
    """Return whether two losses are the same object or the same built-in loss."""
    return one is other or (type(one) is type(other) and type(one) in (Logistic, Squared))


def _check(loss: Any, field: str = "loss") -> None:
    """Raise unless an object is a loss whose derivatives are consistent at logits up to 1000."""
    if isinstance(loss, type) or not isinstance(loss, Loss):
        accepted = "must be a name, or an object with the attributes of selftrain.losses.Loss"
        raise InvalidInput(field, loss, accepted)
    if type(loss) in (Logistic, Squared):
        return
    if not isinstance(loss.name, str) or not loss.name:
        raise InvalidInput(f"{field}.name", loss.name, "must be a string that is not empty")
    if loss.name in (Logistic.name, Squared.name):
        raise InvalidInput(f"{field}.name", loss.name, "must not be that of a built-in loss")
    _check_classes(loss, field)
    _check_link(loss, field)
    _check_kinks(loss, field)
    soft = loss.link(np.array([-3.0, -1.3, -0.4, 0.4, 1.3, 3.0]))
    check_derivatives(loss, *_pairs([*loss.classes, *soft], CHECKED))
    _check_continuity(loss, [*loss.classes, *soft])


def _check_continuity(loss: Loss, targets: list[float]) -> None:
    """Raise if the slope jumps, as that of the hinge does: the equations need a continuous one.

    Each interval between checked logits is halved `HALVINGS` times, toward the half over which the
    slope changes more. At the end a continuous slope hardly changes any more; a jump remains.
    """
    target = np.repeat(np.asarray(targets, dtype=float), CHECKED.size - 1)
    low, high = (np.tile(ends, len(targets)) for ends in (CHECKED[:-1], CHECKED[1:]))
    at_low, at_high = (_called(loss, "slope", target, ends) for ends in (low, high))
    finite = np.isfinite(at_low) & np.isfinite(at_high)
    size = np.abs(at_low[finite & (np.abs(low) <= CENTRAL)]).max(initial=0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = 1e-3 * np.abs(at_high - at_low) + 1e-6 * size
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            between = _called(loss, "slope", target, middle)
            left = np.abs(between - at_low) > np.abs(at_high - between)
            low, high = np.where(left, low, middle), np.where(left, middle, high)
            at_low, at_high = np.where(left, at_low, between), np.where(left, between, at_high)
        jumps = finite & (np.abs(at_high - at_low) > allowed)
    if jumps.any():
        at = int(np.flatnonzero(jumps)[np.argmin(np.abs(high[jumps]))])
        accepted = (
            f"the slope jumps from {at_low[at]:g} to {at_high[at]:g} at target {target[at]:g},"
            f" logit {high[at]:.6g}; it must be continuous, so smooth the loss there"
        )
        raise InvalidInput("loss", loss.name, accepted)


def _check_classes(loss: Loss, field: str) -> None:
    """Raise unless the classes are two increasing numbers."""
    try:
        low, high = (float(code) for code in loss.classes)
        sound = not isinstance(loss.classes, str) and -np.inf < low < high < np.inf
    except (TypeError, ValueError):
        sound = False
    if not sound:
        accepted = (
            "must be two finite numbers, the smaller first: the targets of y = 0 and y = 1, such as"
            " (0.0, 1.0)"
        )
        raise InvalidInput(f"{field}.classes", loss.classes, accepted)


def _check_link(loss: Loss, field: str) -> None:
    """Raise if the link does not return one number per logit, or decreases."""
    with np.errstate(all="ignore"):
        given = loss.link(CHECKED)
    name = f"{field}.link"
    targets = _numbers(given, CHECKED.shape, name, given)
    lost = np.isnan(targets) | ((np.abs(CHECKED) <= CENTRAL) & ~np.isfinite(targets))
    if lost.any():
        at = min(CHECKED[lost], key=abs)
        accepted = f"must be finite; it is not at logit {at:g}"
        raise InvalidInput(name, given, accepted)
    finite = targets[np.isfinite(targets)]
    rounding = 1e-12 * np.maximum(np.abs(finite[1:]), np.abs(finite[:-1]))
    if (np.diff(finite) < -rounding).any() or not finite[-1] > finite[0]:
        accepted = "must increase with the logit (which is larger for y = 1)"
        raise InvalidInput(name, given, accepted)


def _check_kinks(loss: Loss, field: str) -> None:
    """Raise unless the kinks are logits, or a function from targets to logits."""
    try:
        sound = bool(np.isfinite(kinks_at(loss, np.array(loss.classes, dtype=float))).all())
    except (TypeError, ValueError):
        sound = False
    if not sound or isinstance(loss.kinks, str):
        accepted = (
            "must be a tuple of finite logits, () for none, or a method that takes an array of"
            " targets and returns a tuple of arrays of its shape"
        )
        raise InvalidInput(f"{field}.kinks", loss.kinks, accepted)


def check_within(loss: Loss, reach: float, *targets: float) -> None:
    """Check the derivatives of a loss at logits from -`reach` to `reach`, for the targets of both
    classes, those in `targets`, and values between them.
    """
    grid = np.linspace(-reach, reach, 202)
    check_derivatives(loss, *_pairs([*loss.classes, *targets], grid))


def _pairs(targets: list[float], logits: Array) -> tuple[Array, Array]:
    """Pair each logit with each of `targets`, and with `BETWEEN` more targets between the smallest
    and the largest of them; return the targets and the logits of all pairs.
    """
    low, high = min(targets), max(targets)
    shift = np.modf(GOLDEN * np.arange(1, logits.size + 1))[0]
    between = low + (high - low) * (np.arange(BETWEEN) + shift[:, None]) / BETWEEN
    given = np.broadcast_to(np.asarray(targets, dtype=float), (logits.size, len(targets)))
    target = np.concatenate([given, between], axis=1)
    return target.ravel(), np.repeat(logits, target.shape[1])


def check_derivatives(loss: Loss, target: Array, logit: Array) -> None:
    """Raise `InvalidInput` if the derivatives of a loss are inconsistent at one of these pairs.

    Away from kinks, each derivative is compared with the central difference of the previous one;
    with wrong derivatives the engines would silently solve other equations. Values that overflow at
    large logits are not compared.
    """

    def reject(at: int, what: str) -> None:
        where = f"target {target[at]:g}, logit {logit[at]:g}"
        raise InvalidInput("loss", loss.name, f"{what} at {where}")

    step = STEP * np.maximum(1.0, np.abs(logit))
    smooth = (np.abs(logit[:, None] - kinks_at(loss, target)) > 1e3 * step[:, None]).all(axis=1)
    target, logit, step = target[smooth], logit[smooth], step[smooth]
    for name in ("value", "slope", "curvature", "third"):
        lost = (np.abs(logit) <= CENTRAL) & ~np.isfinite(_called(loss, name, target, logit))
        if lost.any():
            reject(int(np.argmax(lost)), f"{name} must be finite; it is not")
    for name, before in (("slope", "value"), ("curvature", "slope"), ("third", "curvature")):
        found, expected, wrong = _compared(loss, name, before, target, logit, step)
        # Ignore a difference that is absent nearby (a kink that is not listed) or absent with a
        # smaller step (an oscillation shorter than the step).
        for shift in (-3.0, 3.0, 0.0):
            t, x, h = target[wrong], logit[wrong], step[wrong]
            width = h if shift else np.full(h.shape, STEP)
            wrong[wrong] = _compared(loss, name, before, t, x + shift * h, width)[2]
        if wrong.any():
            at = int(np.flatnonzero(wrong)[np.argmin(np.abs(logit[wrong]))])
            values = f"{found[at]:g} is not {expected[at]:g}"
            reject(at, f"{name} must be the derivative of {before}: {values}")
        if name == "curvature" and found.min(initial=0.0) < -1e-9:
            at = int(np.argmin(found))
            reject(at, f"the loss must be convex: its curvature is negative, {found[at]:g}")


def _compared(
    loss: Loss, name: str, before: str, target: Array, logit: Array, step: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return the derivative `name` of the loss, the central difference of the derivative `before`,
    and a mask of the pairs at which they differ by more than rounding and truncation errors.
    """
    found, slopes = _called(loss, name, target, logit), []
    with np.errstate(invalid="ignore", over="ignore"):
        for width in (step, 0.5 * step):
            above, below = (_called(loss, before, target, logit + h) for h in (width, -width))
            slopes.append((above - below) / (2.0 * width))
        rounding = 64.0 * np.finfo(float).eps * (np.abs(above) + np.abs(below)) / step
        noise = rounding + 4.0 * np.abs(slopes[0] - slopes[1]) + 1e-9
        allowed = 1e-4 * np.maximum(np.abs(found), np.abs(slopes[1]))
        allowed += np.where(np.isfinite(noise), noise, np.inf)
        return found, slopes[1], np.abs(found - slopes[1]) > allowed


def _called(loss: Loss, name: str, target: Array, logit: Array) -> Array:
    """Call a function of the loss; return one number per logit."""
    with np.errstate(all="ignore"):
        given = getattr(loss, name)(target, logit)
    return _numbers(given, logit.shape, name, getattr(loss, "name", loss))


def _numbers(given: Any, shape: tuple[int, ...], name: str, value: Any) -> Array:
    """Return the result of a user's function as floats; raise if it has another shape or type."""
    array = np.asarray(given) if hasattr(given, "__array__") or np.isscalar(given) else None
    if array is not None and array.shape == shape and array.dtype.kind in "fiub":
        return array.astype(float)
    if array is None:
        returned = f"a {type(given).__name__}"
    else:
        returned = f"shape {array.shape}" if array.dtype.kind in "fiub" else f"{array.dtype}"
    accepted = (
        f"{name.rpartition('.')[2]} must return an array with one number per logit, here of shape"
        f" {shape}, not {returned}; use np.broadcast_to(number, np.shape(logit)) for a constant"
    )
    raise InvalidInput("loss" if "." not in name else name, value, accepted)
