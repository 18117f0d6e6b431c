"""The parameters of the classifier, checked in `fit`."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidInput, nearest
from ..fields import number
from ..runtime.progress import checked_progress
from .settings import UNUSED, Settings
from .targets import no_such_class

METHODS = tuple(UNUSED)


def checked_settings(model: Any) -> Settings:
    """Check the parameters of a model and return its settings; `InvalidInput` names the first
    invalid parameter.
    """
    if not isinstance(model.method, str) or model.method not in METHODS:
        hint = nearest(str(model.method), METHODS)
        raise InvalidInput("method", model.method, f"unknown; {hint}")
    checked_progress(model.progress)
    settings = Settings() if model.settings is None else model.settings
    if not isinstance(settings, Settings):
        accepted = "must be a selftrain.estimator.Settings, or None"
        raise InvalidInput("settings", settings, accepted)
    settings.check_method(model.method)
    _check_share(model.share)
    check_class_weight(model.class_weight)
    return settings


def _check_share(share: Any) -> None:
    accepted = 'must be "estimated", "unlabeled", a number between 0 and 1, or a dictionary of them'
    if isinstance(share, str):
        if share not in ("estimated", "unlabeled"):
            raise InvalidInput("share", share, accepted)
        return
    for value in share.values() if isinstance(share, dict) else (share,):
        number("share", value, lambda x: 0 < x < 1, accepted)


def check_class_weight(weight: Any) -> None:
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
