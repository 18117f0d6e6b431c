"""The constants of self-training: those of each method, and those a user replaces.

Real data depart from Gaussian clusters: labelled samples must anchor every step and few steps are
best (`TABLE`). If samples are Gaussian, the unlabelled ones determine the classes, and many steps
with a light anchor converge to the limit (`GAUSSIAN`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ..errors import InvalidInput, nearest
from ..fields import number, whole
from ..recipe import Recipe

PREPROCESSING = ("auto", "shared", "table")


class Constants(NamedTuple):
    """The constants of a run; `Settings` says what they are.

    Attributes:
        gaussian: labels give class means in the cross-validated metric (`gaussian.py`), rather
            than a student in every metric (`anchored.py`).
    """

    anchor: float = 10.0
    ridge: float = 0.06
    steps: int = 3
    mixture_steps: int = 3
    caution: float | None = None
    sharpness: float = 1.0
    annealing: float = 0.0
    shrinkage: float = 0.5
    metrics: tuple[float, ...] = (0.0, 0.5)
    directions: int = 60
    slope_spread: float = 0.3
    tolerance: float = 1e-4
    gaussian: bool = False


TABLE = Constants()
GAUSSIAN = Constants(
    anchor=1.0,
    steps=200,
    mixture_steps=5,
    shrinkage=1.0,
    metrics=(0.0, 0.5, 1.0),
    directions=300,
    gaussian=True,
)

ANCHORED = ("anchor", "ridge", "caution", "mixture_steps", "shrinkage", "metrics")
"""Constants of the anchored method: if one is set, the method is not changed."""

_NUMBERS = {
    "anchor": (lambda x: 0 < x < float("inf"), "must be > 0"),
    "ridge": (lambda x: 0 < x < float("inf"), "must be > 0"),
    "caution": (lambda x: 0 <= x <= 1, "must be from 0 to 1"),
    "sharpness": (lambda x: 0 < x < float("inf"), "must be > 0"),
    "annealing": (lambda x: 0 <= x < float("inf"), "must be >= 0"),
    "shrinkage": (lambda x: 0 <= x <= 1, "must be from 0 to 1"),
    "slope_spread": (lambda x: 0 < x < 100, "must be > 0"),
    "tolerance": (lambda x: 0 <= x < 1, "must be from 0 to 1"),
    "clip": (lambda x: x > 0, "must be > 0"),
}

_WHOLE = {"steps": 0, "mixture_steps": 1, "directions": 1}


UNUSED = {
    "anchored": ("recipe",),
    "gaussian": ("recipe", "ridge", "caution", "slope_spread"),
    "paper": (*set(Constants._fields) - {"steps"}, "preprocessing", "clip"),
}
"""Settings that have no effect, by method."""

METHODS = tuple(UNUSED)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Constants of `SelfTrainingLinearClassifier`; None: that of the method (docs/estimator.md).

    Arguments:
        preprocessing: "table" (each column to unit variance), "shared" (one scale: images, text)
            or "auto".
        anchor: weight of a labelled sample among unlabelled ones of weight 1.
        ridge: of the student, per unlabelled sample.
        steps: largest number of steps; 0 is the supervised fit.
        mixture_steps: steps of expectation-maximisation in every step, from the anchors.
        caution: weight of the supervised start in the result; None lets held-out scores decide.
            Not with neighbours.
        sharpness, annealing: labels are sigmoid(sharpness (1 + annealing t) log-odds) at step t =
            0, 1, ...
        shrinkage: of the mixture's variances to the pooled one (1: equal variances).
        metrics: exponents s of the metrics; there is a student in each, and their mean teaches.
        directions: number of principal directions, at most a tenth of the samples (or 10).
        clip: limit of standardised entries while fitting, None for none.
        slope_spread: prior standard deviation of the log-slope of the probabilities.
        tolerance: mean change of a soft label below which steps end.
        recipe: a `selftrain.Recipe` for the method "paper".

    >>> from selftrain import SelfTrainingLinearClassifier
    >>> SelfTrainingLinearClassifier(settings=Settings(steps=1)).get_params()["settings"].steps
    1
    """

    preprocessing: str = "auto"
    anchor: float | None = None
    ridge: float | None = None
    steps: int | None = None
    mixture_steps: int | None = None
    caution: float | None = None
    sharpness: float | None = None
    annealing: float | None = None
    shrinkage: float | None = None
    metrics: tuple[float, ...] | float | None = None
    directions: int | None = None
    clip: float | None = 8.0
    slope_spread: float | None = None
    tolerance: float | None = None
    recipe: Recipe | None = None

    def __post_init__(self) -> None:
        if self.preprocessing not in PREPROCESSING:
            hint = nearest(str(self.preprocessing), PREPROCESSING)
            raise InvalidInput("preprocessing", self.preprocessing, f"unknown; {hint}")
        if self.recipe is not None and not isinstance(self.recipe, Recipe):
            raise InvalidInput("recipe", self.recipe, "must be a selftrain.Recipe, or None")
        for name, (accepts, accepted) in _NUMBERS.items():
            if getattr(self, name) is not None:
                self._set(name, number(name, getattr(self, name), accepts, f"{accepted}, or None"))
        for name, least in _WHOLE.items():
            if getattr(self, name) is not None:
                accepted = f"must be a whole number >= {least}, or None"
                value = whole(name, getattr(self, name), least.__le__, accepted)
                self._set(name, value)
        if self.metrics is not None:
            self._set("metrics", _metrics(self.metrics))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def reject_caution(self) -> None:
        """Reject `caution` where a graph of neighbours is used, which has no part for it."""
        if self.caution is not None:
            accepted = "must be None if neighbours are used (set neighbours=False to use it)"
            raise InvalidInput("caution", self.caution, accepted)

    @property
    def changed(self) -> dict[str, Any]:
        """Constants of a method that are set."""
        values = {name: getattr(self, name) for name in Constants._fields if name != "gaussian"}
        return {name: value for name, value in values.items() if value is not None}

    def apply(self, constants: Constants) -> Constants:
        """Return the constants of a method with those that are set."""
        return constants._replace(**self.changed)

    def check_method(self, method: str) -> None:
        """Reject constants that have no effect with a method."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in UNUSED[method] and value != field.default:
                used = ", ".join(repr(name) for name in UNUSED if field.name not in UNUSED[name])
                accepted = f"must not be set with method={method!r} (used by {used})"
                raise InvalidInput(field.name, value, accepted)


def _metrics(given: Any) -> tuple[float, ...]:
    exponents = given if isinstance(given, (tuple, list)) else (given,)
    if not exponents:
        raise InvalidInput("metrics", exponents, "must have at least one exponent")
    accepted = "must have exponents from 0 to 1, or be None"
    return tuple(number("metrics", s, lambda x: 0 <= x <= 1, accepted) for s in exponents)
