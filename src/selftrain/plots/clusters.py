"""The shape of two clusters: the spectrum of the noise, and how the mean lies in it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .style import BLUE, ORANGE, entries, legend_under, logarithmic, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..mixture.clusters import Clusters

SMALLEST_SHOWN = 1e-9
"""Squares below this share of the largest are below the picture."""


def plot_clusters(
    clusters: Clusters, *, panel: str | None = None, ax: Axes | None = None
) -> Figure:
    """Variance and squared mean along each principal direction of the noise, and the shares that
    leading ones carry.

    Arguments:
        panel: draw one panel only: "spectrum" or "shares".
        ax: axes for that panel (the spectrum if `panel` is None); by default new ones.
    """
    from .canvas import new_picture, one_panel

    if panel is not None or ax is not None:
        draws = {name: partial(draw, clusters=clusters) for name, draw in PANELS.items()}
        return one_panel(draws, panel, ax)
    with styled():
        figure = new_picture(8.0, 3.2)
        left, right = figure.subplots(1, 2)
        draw_spectrum(left, clusters)
        draw_shares(right, clusters)
        legend_under(figure, entries(left, right), 4)
    return figure


def draw_spectrum(ax: Axes, clusters: Clusters) -> None:
    """Variance of the noise and square of the mean along each principal direction."""
    variances, mean = clusters.spectrum
    rank = np.arange(1, variances.size + 1)
    alive, present = variances > 0, mean != 0
    ax.plot(rank[alive], variances[alive], ".-", color=BLUE, label="noise variance")
    ax.plot(rank[present], mean[present] ** 2, ".", color=ORANGE, label="squared mean")
    drawn = np.concatenate([variances[alive], mean[present] ** 2])
    ax.set_ylim(max(float(drawn.min()) / 2, SMALLEST_SHOWN * drawn.max()), 3 * drawn.max())
    logarithmic(ax, "x")
    logarithmic(ax)
    ax.set(xlabel="direction, by variance", ylabel="along the direction")


def draw_shares(ax: Axes, clusters: Clusters) -> None:
    """What the leading directions carry of the separation and of the variance."""
    variances, mean = clusters.spectrum
    rank = np.arange(1, variances.size + 1)
    alive = variances > 0
    gain = np.zeros(variances.size)
    gain[alive] = mean[alive] ** 2 / variances[alive]
    for values, color, label in (
        (gain, ORANGE, "share of the squared separation"),
        (variances, BLUE, "share of the variance"),
    ):
        if values.any():
            shares = np.cumsum(values) / values.sum()
            ax.plot(rank, shares, "--", color=color, label=label)
    logarithmic(ax, "x")
    ax.set(xlabel="leading directions", ylabel="share that they carry", ylim=(0, 1.03))


PANELS = {
    "spectrum": draw_spectrum,
    "shares": draw_shares,
}
