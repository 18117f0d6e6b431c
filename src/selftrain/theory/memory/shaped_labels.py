"""The labels of the rows of a bank on clusters with a shape: what they are worth, whether they have
collapsed, and their loss.
"""

from __future__ import annotations

import math

import numpy as np

from ..ending import Ending
from ..tolerances import COLLAPSED_MASS
from .shaped_rows import ClassRows


def label_quality(used: list[ClassRows]) -> tuple[float, float, float]:
    """Share of the unlabelled rows that are selected, accuracy of all labels, and of the selected
    ones.
    """
    total = selected = right = both = 0.0
    for rows in used:
        if rows.group.labeled:
            continue
        chosen, correct = rows.weight > 0, (rows.logits > 0) == (rows.sign > 0)
        total += rows.share
        selected += rows.share * float(chosen.mean())
        right += rows.share * float(correct.mean())
        both += rows.share * float((chosen & correct).mean())
    return selected / total, right / total, both / selected if selected else math.nan


def one_class(t: int, used: list[ClassRows], train_bias: bool) -> bool:
    """Whether the labels of a step have collapsed; a step without any row is an error."""
    if any(rows.group.labeled for rows in used):
        return False
    negative, positive = used[0].loss.classes
    width = positive - negative
    total = sum(rows.share * float(rows.weight.mean()) for rows in used)
    if total == 0:
        raise Ending.EMPTY.error(t)
    up = sum(
        rows.share * float(rows.weight @ np.abs(rows.target - negative)) / rows.weight.size
        for rows in used
    )
    down = sum(
        rows.share * float(rows.weight @ np.abs(rows.target - positive)) / rows.weight.size
        for rows in used
    )
    return train_bias and min(up, down) < COLLAPSED_MASS * total * width


def training_loss(used: list[ClassRows], t: int) -> float:
    """Mean loss of the selected unlabelled rows; of the labelled ones at step 0."""
    count = loss = 0.0
    for rows in used:
        if rows.group.labeled == (t == 0):
            chosen = rows.weight > 0
            values = rows.loss.value(rows.target, rows.answer.u)
            count += rows.share * float(chosen.mean())
            loss += rows.share * float((values * chosen).mean())
    return loss / count if count else math.nan
