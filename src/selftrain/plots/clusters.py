"""The shape of two clusters: the spectrum of the noise, and how the mean lies in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .style import BLUE, ORANGE, entries, legend_under, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..clusters import Clusters

SMALLEST_SHOWN = 1e-9
"""Squares below this share of the largest are below the picture."""


def plot_clusters(clusters: Clusters) -> Figure:
    """Variance and squared mean along each principal direction of the noise, and the shares that
    leading ones carry.
    """
    from .canvas import new_picture

    variances, mean = clusters.spectrum
    rank = np.arange(1, variances.size + 1)
    alive = variances > 0
    with styled():
        figure = new_picture(8.0, 3.2)
        left, right = figure.subplots(1, 2)
        left.loglog(rank[alive], variances[alive], ".-", color=BLUE, label="noise variance")
        left.loglog(rank[mean != 0], mean[mean != 0] ** 2, ".", color=ORANGE, label="squared mean")
        drawn = np.concatenate([variances[alive], mean[mean != 0] ** 2])
        left.set_ylim(max(float(drawn.min()) / 2, SMALLEST_SHOWN * drawn.max()), 3 * drawn.max())
        left.set(xlabel="direction, by variance", ylabel="along the direction")
        gain = np.zeros(variances.size)
        gain[alive] = mean[alive] ** 2 / variances[alive]
        if gain.any():
            right.semilogx(
                rank,
                np.cumsum(gain) / gain.sum(),
                "--",
                color=ORANGE,
                label="share of the squared separation",
            )
        right.semilogx(
            rank,
            np.cumsum(variances) / variances.sum(),
            "--",
            color=BLUE,
            label="share of the variance",
        )
        right.set(xlabel="leading directions", ylabel="share that they carry", ylim=(0, 1.03))
        legend_under(figure, entries(left, right), 4)
    return figure
