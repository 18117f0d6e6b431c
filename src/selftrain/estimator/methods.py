"""Choice of the method for the samples at hand, and how it fits one class against the rest.

"anchored" becomes "gaussian" if the samples pass for Gaussian clusters and cross-validation of
whole runs agrees in every class, so that nobody has to know in advance what the samples look like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..recipe import Recipe
from .anchored import Share
from .given import GivenRows, known_shares
from .normality import departure
from .options import Options
from .paper import STEPS, follow_recipe
from .prepared import Prepared, prepare
from .setting import GAUSSIAN, TABLE, Setting
from .training import Candidate, Fitted, gaussian_if_it_agrees, train


class Method(NamedTuple):
    """A method by its name, and a function that fits a class, given by its index."""

    name: str
    fit: Callable[[int], Fitted]


def choose_method(rows: GivenRows, options: Options, random: np.random.RandomState) -> Method:
    """Return the requested method, or "gaussian" instead of "anchored"."""
    if options.method == "paper":
        return _paper(rows, options, random)
    shares = known_shares(options.share, rows.target.names)

    def share_of(positive: int) -> Share:
        return Share(shares.get(positive), options.share != "unlabeled")

    setting = options.setting(GAUSSIAN if options.method == "gaussian" else TABLE)
    own = Candidate(_prepare(rows, options, setting, random), setting)
    if _may_change(options, own.prepared) and _looks_gaussian(own.prepared):
        found = _gaussian_in_every_class(rows, options, own, share_of, random)
        if found is not None:
            return Method("gaussian", found.__getitem__)
    neighbours = own.prepared.has_neighbours(options.neighbours)

    def fit(positive: int) -> Fitted:
        share = share_of(positive)
        return train(own, positive, share, options.slope_spread, options.tolerance, neighbours)

    return Method(options.method, fit)


def _prepare(
    rows: GivenRows, options: Options, setting: Setting, random: np.random.RandomState
) -> Prepared:
    return prepare(
        rows.matrix,
        rows.target.codes,
        rows.weights,
        options.preprocessing,
        options.clip,
        setting.directions,
        check_random_state(random.randint(2**31 - 1)),
    )


def _may_change(options: Options, prepared: Prepared) -> bool:
    """Return whether "anchored" may become "gaussian": a table, and no constant of it is set.

    Pixels and words are not Gaussian, although sums of many of them look so.
    """
    free = options.method == "anchored" and options.neighbours is not True
    return free and prepared.kind == "table" and not options.sets_anchored


def _looks_gaussian(prepared: Prepared) -> bool:
    return departure(prepared.unlabeled, prepared.basis.variances).small


def _gaussian_in_every_class(
    rows: GivenRows,
    options: Options,
    own: Candidate,
    share_of: Callable[[int], Share],
    random: np.random.RandomState,
) -> dict[int, Fitted] | None:
    """Return the Gaussian fit of every class, None if labelled samples contradict one of them."""
    setting = options.setting(GAUSSIAN)
    prepared = _prepare(rows, options, setting, random)
    other = Candidate(replace(prepared, folds=own.prepared.folds), setting)
    found: dict[int, Fitted] = {}
    for positive in rows.positives:
        fitted = gaussian_if_it_agrees(
            other, own, positive, share_of(positive), options.slope_spread, options.tolerance
        )
        if fitted is None:
            return None
        found[positive] = fitted
    return found


def _paper(rows: GivenRows, options: Options, random: np.random.RandomState) -> Method:
    """Return the paper's self-training; every class uses the same batches."""
    steps = options.changes.get("steps", STEPS)
    recipe = Recipe() if options.recipe is None else options.recipe
    seed = random.randint(2**31 - 1)
    codes = rows.target.codes

    def fit(positive: int) -> Fitted:
        classes = np.where(codes < 0, -1, codes == positive)
        again = check_random_state(seed)
        return follow_recipe(rows.matrix, classes, rows.weights, recipe, steps, again)

    return Method("paper", fit)
