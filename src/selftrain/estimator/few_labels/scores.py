r"""Three scores of a table: self-training, a random forest, and a linear model on the labels.

Each is zero at even odds of the classes, a column per class against the rest (one for two classes),
and has held-out values for the labelled samples, by which they are weighted (`ensemble.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import StandardScaler

from ...arrays import Array
from ..classifier import SelfTrainingLinearClassifier
from ..folds import Labeled, supervised_start
from ..settings import TABLE, Settings
from .averaged import as_columns
from .samples import Samples

TREES = 100
FEATURES = 0.5
"""Fraction of the columns that a split of the forest looks at: the one constant that matters."""

CERTAIN = 0.02
"""Forest means are clipped so far from 0 and 1: a hundred trees that agree are not certain."""


ANCHORED = Settings(mixture_steps=TABLE.mixture_steps)
"""Self-training on a table; a constant that is set keeps it from the Gaussian method."""


class SelfTrained(NamedTuple):
    """Scores of `SelfTrainingLinearClassifier`, held-out ones from runs without a fold."""

    model: SelfTrainingLinearClassifier
    held_out: Array

    def score(self, rows: Array) -> Array:
        """Return the scores of samples: a column per class."""
        return as_columns(self.model.decision_function(rows))


def self_trained(samples: Samples, model: SelfTrainingLinearClassifier) -> SelfTrained:
    """Return a fitted model with out-of-fold scores of the labelled samples.

    For each fold the model is fitted again with the labels of that fold hidden.
    """
    labeled = samples.rows[samples.known]
    held_out = as_columns(model.decision_function(labeled))
    for fold in samples.usable_folds():
        part = clone(model).set_params(settings=ANCHORED)
        part.fit(samples.rows, samples.without(fold), samples.weights)
        outside = samples.folds == fold
        held_out[outside] = as_columns(part.decision_function(labeled[outside]))
    return SelfTrained(model, held_out)


class Forest(NamedTuple):
    """Log-odds of a random forest on the labels, less those of the labelled proportions."""

    model: Any
    proportions: Array
    held_out: Array

    def score(self, rows: Array) -> Array:
        """Return the scores of samples: a column per class."""
        return _forest_odds(self.model.predict(rows), self.proportions)


def forest(samples: Samples, seed: int) -> Forest:
    """Fit a forest to the labelled samples; held-out scores are out-of-bag."""
    targets, weights = samples.targets, samples.weights[samples.known]
    model = RandomForestRegressor(
        TREES, max_features=FEATURES, oob_score=True, random_state=seed, n_jobs=1
    )
    # Targets are centred: ties between splits are then broken alike whichever class is called 1.
    centred = (targets[:, 0] if targets.shape[1] == 1 else targets) - 0.5
    model.fit(samples.rows[samples.known], centred, weights)
    proportions = weights @ targets / weights.sum()
    return Forest(model, proportions, _forest_odds(model.oob_prediction_, proportions))


def _forest_odds(centred: Array, proportions: Array) -> Array:
    means = np.clip(as_columns(centred) + 0.5, CERTAIN, 1 - CERTAIN)
    return np.asarray(logit(means) - logit(proportions))


class Linear(NamedTuple):
    """Balanced ridge logistic regression on the labels, standardised columns, ridge by folds."""

    scaler: StandardScaler
    coefficients: Array
    bias: Array
    held_out: Array

    def score(self, rows: Array) -> Array:
        """Return the scores of samples: a column per class."""
        return np.asarray(self.scaler.transform(rows) @ self.coefficients + self.bias)


def linear(samples: Samples) -> Linear:
    """Fit the supervised baseline of every class against the rest."""
    scaler = StandardScaler().fit(samples.rows)
    labeled = scaler.transform(samples.rows[samples.known])
    weights, metric = samples.weights[samples.known], np.ones(labeled.shape[1])
    starts = [
        supervised_start(Labeled(labeled, column, weights, samples.folds), metric)
        for column in samples.targets.T
    ]
    return Linear(
        scaler,
        np.column_stack([start.student.coefficients for start in starts]),
        np.array([start.student.bias for start in starts]),
        np.column_stack([start.out_of_fold for start in starts]),
    )
