"""Label noise: the probabilities of the given label for each true class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..fields import from_array, number

__all__ = ["LabelNoise", "check_label_noise", "label_matrix"]

LabelNoise = float | tuple[tuple[float, ...], ...]

ROUNDING = 1e-9
"""Largest allowed difference of the sum of a row of probabilities from one."""


def check_label_noise(value: Any, classes: int = 2) -> LabelNoise:
    """Return validated `label_noise`: the probability of a wrong label, or P(given | true).

    >>> check_label_noise([[0.9, 0.1], [0.2, 0.8]])
    ((0.9, 0.1), (0.2, 0.8))
    """
    value = from_array(value)
    most = (classes - 1) / classes
    if not isinstance(value, Sequence) or isinstance(value, str):
        accepted = (
            f"must be a share of wrong labels from 0 to below {most:.4g} (where the labels of"
            f" {classes} classes carry no information), or a matrix of P(given label | true class)"
        )
        return number("label_noise", value, lambda share: 0 <= share < most, accepted)
    accepted = f"must be a matrix P(given | true) with {classes} rows of {classes} probabilities"
    rows = [row for row in value if isinstance(row, Sequence) and not isinstance(row, str)]
    if len(rows) != len(value) or [len(row) for row in rows] != [classes] * classes:
        raise InvalidInput("label_noise", value, accepted)
    probability = (lambda entry: 0 <= entry <= 1, "must be a probability from 0 to 1")
    matrix = np.array([
        [number(f"label_noise[{k}][{j}]", entry, *probability) for j, entry in enumerate(row)]
        for k, row in enumerate(rows)
    ])  # fmt: skip
    for k, total in enumerate(matrix.sum(axis=1)):
        if abs(total - 1.0) > ROUNDING:
            accepted = f"must have rows that sum to one; row {k} sums to {total:.6g}"
            raise InvalidInput("label_noise", value, accepted)
    for label in range(classes):
        other = int(np.argmax(np.delete(matrix[:, label], label)))
        other += other >= label
        if matrix[other, label] >= matrix[label, label]:
            accepted = (
                f"must make label {label} more probable in class {label} than in class {other};"
                " otherwise these labels carry no information, or the opposite"
            )
            raise InvalidInput("label_noise", value, accepted)
    return tuple(tuple(row) for row in matrix.tolist())


def label_matrix(noise: LabelNoise, classes: int = 2) -> Array:
    """Return P(given | true), one row per true class; a number is spread evenly over the wrong
    classes.

    >>> label_matrix(0.3, 3).round(2).tolist()
    [[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]]
    """
    if isinstance(noise, tuple):
        return np.array(noise)
    wrong = noise / (classes - 1)
    return np.full((classes, classes), wrong) + (1.0 - noise - wrong) * np.eye(classes)
