r"""The mirror: $s \to -s$, and with it every logit and the bias.

A problem with balanced classes, whose losses and labels treat the classes alike, is its own mirror
image. Its bias is then zero, and so is every derivative of what the mirror leaves alone in what it
turns around (`gradients.step_derivatives.drop_odd`). Averages give neither as an exact zero: the
rounding that is left is removed, for weights that shrink magnify it from step to step.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...labelers import Labeler
from ...losses import Loss
from ...problem import Problem
from ...recipe import Recipe


def treats_classes_alike(problem: Problem, recipe: Recipe) -> bool:
    """Whether losses and labels are the same in the mirror."""
    sharpness = np.unique(recipe.at_steps(problem.steps).sharpness)
    losses = (problem.loss_at(t) for t in (0, 1))
    return all(_alike(loss, recipe.label_function, sharpness) for loss in losses)


def _alike(loss: Loss, labeler: Labeler, sharpness: Array) -> bool:
    ends = sum(loss.classes)
    logits = np.geomspace(1e-3, 30.0, 25)
    targets = np.linspace(*loss.classes, 5)[:, None]
    slopes = loss.slope(targets, logits), -loss.slope(ends - targets, -logits)
    labels = [
        (labeler.target(logits, value, loss), ends - labeler.target(-logits, value, loss))
        for value in sharpness
    ]
    return all(np.allclose(*pair, rtol=1e-12, atol=1e-14) for pair in (slopes, *labels))
