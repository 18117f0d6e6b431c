"""A learning curve: the score of a model against the number of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .canvas import new_axes, whole_figure
from .style import BLUE, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..estimator.evaluation import LearningCurve


def draw_learning_curve(curve: LearningCurve, ax: Any = None) -> Figure:
    """Draw mean and standard error, on the axes of the caller or on new ones."""
    with styled():
        ax = new_axes(ax, 4.5, 3.0)
        ax.errorbar(curve.labels, curve.mean, curve.error, fmt="o-", color=BLUE, capsize=2)
        ax.set(xlabel="labelled samples", ylabel="score on hidden labels")
    return whole_figure(ax)
