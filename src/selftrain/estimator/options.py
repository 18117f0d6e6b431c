"""The parameters of the classifier, checked in `fit`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import InvalidInput, nearest
from ..fields import number
from ..recipe import Recipe
from ..runtime.progress import checked_progress
from .setting import Setting
from .targets import no_such_class

METHODS = ("anchored", "gaussian", "paper")
PREPROCESSING = ("auto", "shared", "table")

ANCHORED = ("anchor", "ridge", "caution", "mixture_steps", "shrinkage", "metrics")
"""Constants of the anchored method: if one is set, the method is not changed."""


@dataclass(frozen=True)
class Options:
    """Checked parameters.

    Attributes:
        method, neighbours, share, recipe, preprocessing, clip, slope_spread, tolerance: as given.
        changes: constants that replace those of a setting.
    """

    method: str
    neighbours: bool | str
    share: Any
    recipe: Recipe | None
    preprocessing: str
    clip: float | None
    slope_spread: float
    tolerance: float
    changes: dict[str, Any]

    def setting(self, default: Setting) -> Setting:
        """Return a setting with the user's constants."""
        return default._replace(**self.changes)

    @property
    def sets_anchored(self) -> bool:
        """Whether a constant of the anchored method is set."""
        return any(name in self.changes for name in ANCHORED)


_NUMBERS = {
    "anchor": (lambda x: 0 < x < float("inf"), "must be > 0"),
    "ridge": (lambda x: 0 < x < float("inf"), "must be > 0"),
    "caution": (lambda x: 0 <= x <= 1, "must be from 0 to 1"),
    "sharpness": (lambda x: 0 < x < float("inf"), "must be > 0"),
    "annealing": (lambda x: 0 <= x < float("inf"), "must be >= 0"),
    "shrinkage": (lambda x: 0 <= x <= 1, "must be from 0 to 1"),
}

_WHOLE = {"steps": 0, "mixture_steps": 1, "directions": 1}


def checked_options(model: Any) -> Options:
    """Return the checked parameters of a model; `InvalidInput` names the first invalid one."""
    for name, known in (("method", METHODS), ("preprocessing", PREPROCESSING)):
        value = getattr(model, name)
        if not isinstance(value, str) or value not in known:
            raise InvalidInput(name, value, f"unknown; {nearest(str(value), known)}")
    checked_progress(model.progress)
    if not (isinstance(model.neighbours, bool) or model.neighbours == "auto"):
        raise InvalidInput("neighbours", model.neighbours, 'must be "auto", True or False')
    _check_paper(model)
    _check_share(model.share)
    _check_class_weight(model.class_weight)
    clip = model.clip
    if clip is not None:
        clip = number("clip", clip, lambda x: x > 0, "must be > 0, or None")
    return Options(
        model.method,
        model.neighbours,
        model.share,
        model.recipe,
        model.preprocessing,
        clip,
        number("slope_spread", model.slope_spread, lambda x: 0 < x < 100, "must be > 0"),
        number("tolerance", model.tolerance, lambda x: 0 <= x < 1, "must be from 0 to 1"),
        _changes(model),
    )


def _changes(model: Any) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, (accepts, accepted) in _NUMBERS.items():
        if getattr(model, name) is not None:
            changes[name] = number(name, getattr(model, name), accepts, f"{accepted}, or None")
    for name, least in _WHOLE.items():
        value = getattr(model, name)
        if value is not None:
            accepted = f"must be a whole number >= {least}, or None"
            found = number(name, value, partial(_is_whole, least), accepted)
            changes[name] = int(found)
    if model.metrics is not None:
        metrics = model.metrics if isinstance(model.metrics, (tuple, list)) else (model.metrics,)
        if not metrics:
            raise InvalidInput("metrics", metrics, "must have at least one exponent")
        accepted = "must have exponents from 0 to 1, or be None"
        changes["metrics"] = tuple(
            number("metrics", s, lambda x: 0 <= x <= 1, accepted) for s in metrics
        )
    return changes


def _is_whole(least: int, value: float) -> bool:
    return value >= least and value == int(value)


def _check_paper(model: Any) -> None:
    """Reject a recipe without the method "paper", and other constants with it."""
    if model.method != "paper":
        if model.recipe is not None:
            raise InvalidInput("recipe", model.recipe, 'must be None unless method="paper"')
        return
    if model.recipe is not None and not isinstance(model.recipe, Recipe):
        raise InvalidInput("recipe", model.recipe, "must be a selftrain.Recipe, or None")
    for name in (*_NUMBERS, "mixture_steps", "metrics", "directions"):
        if getattr(model, name) is not None:
            accepted = 'must be None with method="paper", whose constants are in `recipe`'
            raise InvalidInput(name, getattr(model, name), accepted)
    if model.neighbours is True:
        raise InvalidInput("neighbours", True, 'False or "auto" with method="paper"')


def _check_share(share: Any) -> None:
    accepted = '"estimated", "unlabeled", a number between 0 and 1, or a dictionary of them'
    if isinstance(share, str):
        if share not in ("estimated", "unlabeled"):
            raise InvalidInput("share", share, accepted)
        return
    for value in share.values() if isinstance(share, dict) else (share,):
        number("share", value, lambda x: 0 < x < 1, accepted)


def _check_class_weight(weight: Any) -> None:
    accepted = 'must be "balanced", a dictionary from class to a number > 0, or None'
    if weight is None or (isinstance(weight, str) and weight == "balanced"):
        return
    if not isinstance(weight, dict):
        raise InvalidInput("class_weight", weight, accepted)
    for value in weight.values():
        number("class_weight", value, lambda x: x > 0, accepted)


def check_weighted_classes(weight: Any, names: list[Any]) -> None:
    """Reject a weight of an unknown class if a known class has none: a misspelt name.

    If all known classes have weights, the others may be absent from these samples.
    """
    if not isinstance(weight, dict) or all(name in weight for name in names):
        return
    for name in weight:
        if name not in names:
            raise no_such_class("class_weight", name, names)
