"""A learning curve: the score of a model against the number of labelled rows it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .style import BLUE, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..estimator.evaluation import LearningCurve


def draw_learning_curve(curve: LearningCurve, ax: Any = None) -> Figure:
    """Mean and standard error, on axes of the caller's or a figure of its own."""
    from matplotlib.figure import Figure

    with styled():
        if ax is None:
            figure = Figure(figsize=(4.5, 3.0), layout="constrained")
            ax = figure.subplots()
        ax.errorbar(curve.labels, curve.mean, curve.error, fmt="o-", color=BLUE, capsize=2)
        ax.set(xlabel="labelled rows", ylabel="score on labels not given")
    found: Figure = ax.figure
    return found
