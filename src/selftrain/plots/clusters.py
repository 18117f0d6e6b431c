"""Clusters: the spectrum of the noise, and the means along its directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .canvas import Layout, draw_panels
from .style import BLUE, ORANGE, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..arrays import Array
    from ..mixture.clusters import Clusters

SMALLEST_SHOWN = 1e-9
"""Squares below this fraction of the largest are not shown."""


def plot_clusters(
    clusters: Clusters, *, panel: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw variance and squared mean along each principal direction, and cumulative fractions.

    Arguments:
        panel: draw one panel only: "spectrum" or "shares".
        ax: axes for that panel (the spectrum if `panel` is None); by default new ones.
    """
    return draw_panels(PANELS, Layout(1, 2, 8.0, 3.2, 4), panel, ax, clusters=clusters)


def spectra(clusters: Clusters) -> tuple[Array, Array]:
    """Return the noise variance and the squared mean along each principal direction.

    For K classes, the squared mean is the variance of the class means over the classes.
    """
    variances, mean = clusters.spectrum
    if mean.ndim == 1:
        return variances, mean**2
    return variances, np.asarray(((mean - mean.mean(axis=0)) ** 2).mean(axis=0))


def draw_spectrum(ax: Axes, clusters: Clusters) -> None:
    """Draw the variance of the noise and the squared mean along each principal direction."""
    variances, squares = spectra(clusters)
    rank = np.arange(1, variances.size + 1)
    alive, present = variances > 0, squares > 0
    ax.plot(rank[alive], variances[alive], ".-", color=BLUE, label="noise variance")
    ax.plot(rank[present], squares[present], ".", color=ORANGE, label="squared mean")
    drawn = np.concatenate([variances[alive], squares[present]])
    ax.set_ylim(max(float(drawn.min()) / 2, SMALLEST_SHOWN * drawn.max()), 3 * drawn.max())
    logarithmic(ax, "x")
    logarithmic(ax)
    ax.set(xlabel="direction, by variance", ylabel="along the direction")


def draw_shares(ax: Axes, clusters: Clusters) -> None:
    """Draw the fractions of separation and variance in the leading directions."""
    variances, squares = spectra(clusters)
    rank = np.arange(1, variances.size + 1)
    alive = variances > 0
    gain = np.zeros(variances.size)
    gain[alive] = squares[alive] / variances[alive]
    for values, color, label in (
        (gain, ORANGE, "squared separation"),
        (variances, BLUE, "variance"),
    ):
        if values.any():
            shares = np.cumsum(values) / values.sum()
            ax.plot(rank, shares, "--", color=color, label=label)
    logarithmic(ax, "x")
    ax.set(xlabel="leading directions", ylabel="cumulative fraction", ylim=(0, 1.03))


PANELS = {"spectrum": draw_spectrum, "shares": draw_shares}
