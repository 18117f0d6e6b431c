"""Choice of the method for the samples at hand, and how it fits one class against the rest.

"anchored" becomes "gaussian" if the samples pass for Gaussian clusters and cross-validation of
whole runs agrees in every class, so that nobody has to know in advance what the samples look like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..errors import InvalidInput
from ..recipe import Recipe
from .anchored import Share
from .checks import GivenRows, known_shares
from .normality import departure
from .paper import STEPS, follow_recipe
from .prepared import Prepared, most_directions, prepare
from .settings import ANCHORED, GAUSSIAN, TABLE, Constants, Settings
from .training import Candidate, Fitted, gaussian_if_it_agrees, train


class Method(NamedTuple):
    """A method by its name, and a function that fits a class, given by its index."""

    name: str
    fit: Callable[[int], Fitted]


def choose_method(
    method: str, rows: GivenRows, share: Any, settings: Settings, random: np.random.RandomState
) -> Method:
    """Return the requested method, or "gaussian" instead of "anchored"."""
    if method == "paper":
        return _paper(rows, settings, random)
    shares = known_shares(share, rows.target.names)

    def share_of(positive: int) -> Share:
        return Share(shares.get(positive), share != "unlabeled")

    constants = settings.apply(GAUSSIAN if method == "gaussian" else TABLE)
    own = Candidate(_prepare(rows, settings, constants, random), constants)
    if method == "anchored" and _may_change(settings, own.prepared):
        found = _gaussian_in_every_class(rows, settings, own, share_of, random)
        if found is not None:
            return Method("gaussian", found.__getitem__)
    neighbours = method == "anchored" and own.prepared.has_neighbours(settings.neighbours)
    if neighbours:
        settings.reject_caution()
    return Method(method, lambda positive: train(own, positive, share_of(positive), neighbours))


def _prepare(
    rows: GivenRows, settings: Settings, constants: Constants, random: np.random.RandomState
) -> Prepared:
    most = most_directions(rows.weights)
    if settings.directions is not None and settings.directions > most:
        accepted = f"must be at most {most}, a tenth of the samples (and 10 in any case)"
        raise InvalidInput("directions", settings.directions, accepted)
    return prepare(
        rows.matrix,
        rows.target.codes,
        rows.weights,
        settings.preprocessing,
        settings.clip,
        constants.directions,
        check_random_state(random.randint(2**31 - 1)),
    )


def _may_change(settings: Settings, prepared: Prepared) -> bool:
    """Return whether "anchored" may become "gaussian": a table that passes for Gaussian clusters,
    and no constant of the anchored method is set.

    Pixels and words are not Gaussian, although sums of many of them look so.
    """
    if settings.neighbours is True or prepared.kind != "table":
        return False
    if any(name in settings.changed for name in ANCHORED):
        return False
    return departure(prepared.unlabeled, prepared.basis.variances).small


def _gaussian_in_every_class(
    rows: GivenRows,
    settings: Settings,
    own: Candidate,
    share_of: Callable[[int], Share],
    random: np.random.RandomState,
) -> dict[int, Fitted] | None:
    """Return the Gaussian fit of every class, None if labelled samples contradict one of them."""
    constants = settings.apply(GAUSSIAN)
    prepared = _prepare(rows, settings, constants, random)
    other = Candidate(replace(prepared, folds=own.prepared.folds), constants)
    found: dict[int, Fitted] = {}
    for positive in rows.positives:
        fitted = gaussian_if_it_agrees(other, own, positive, share_of(positive))
        if fitted is None:
            return None
        found[positive] = fitted
    return found


def _paper(rows: GivenRows, settings: Settings, random: np.random.RandomState) -> Method:
    """Return the paper's self-training; every class uses the same batches."""
    steps = STEPS if settings.steps is None else settings.steps
    recipe = Recipe() if settings.recipe is None else settings.recipe
    seed = random.randint(2**31 - 1)
    codes = rows.target.codes

    def fit(positive: int) -> Fitted:
        classes = np.where(codes < 0, -1, codes == positive)
        again = check_random_state(seed)
        return follow_recipe(rows.matrix, classes, rows.weights, recipe, steps, again)

    return Method("paper", fit)
