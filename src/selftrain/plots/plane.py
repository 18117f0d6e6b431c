r"""The two clusters in the plane spanned by cluster direction and weights, with the separating line
of a step; an animation over the steps.

The coordinates of a new sample are X along the cluster direction and Y along the component of the
weights orthogonal to it. With the angle $\theta$ between weights and cluster direction, the logit
divided by the norm of the weights is

    $X \cos\theta + Y \sin\theta + B/\text{norm}$.

Clusters of general covariance are drawn in whitened coordinates, in which they are spheres.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..arrays import Array
from .style import BLACK, BLUE, GREEN, GREY, ORANGE, steps_axis, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

    from ..theory.trajectory import Trajectory

SAMPLES = 400
"""Number of samples drawn from both clusters together."""

SEED = 2
"""Seed of the samples, chosen so that all lie within 3.1 standard deviations of their centre,
inside the figure."""

CLASSES = (("negative", "#6F6F6F"), ("positive", GREEN))
SIDES = ("#F1F1F1", "#E1F3EC")
"""Background colours of the two sides of a separating line."""


class Plane(NamedTuple):
    """The clusters in the plane: centres at X = -centre and X = centre, standard deviation."""

    centre: float
    deviation: float

    @property
    def reach(self) -> float:
        """Largest coordinate in the figure."""
        return self.centre + 3.2 * self.deviation

    def clouds(self, rho: float) -> tuple[Array, Array]:
        """Return samples of the negative and the positive class, one per row."""
        drawn = np.random.default_rng(SEED).standard_normal((SAMPLES, 2)) * self.deviation
        positive = round(SAMPLES * rho)
        shift = np.array([self.centre, 0.0])
        return drawn[positive:] - shift, drawn[:positive] + shift


def plane_of(run: Trajectory) -> Plane:
    """Return the test clusters of a run, on which its error is measured."""
    if run.problem.shaped:
        return Plane(run.problem.test_clusters.separation, 1.0)
    return Plane(1.0, math.sqrt(run.problem.test_mixture.delta))


def separating_line(run: Trajectory, t: int) -> tuple[tuple[float, float], float]:
    """Return cosine and sine of the angle between weights and cluster direction at step t, and the
    bias over the norm of the weights.
    """
    cosine = float(run.cosine[t])
    if run.problem.shaped:
        place = float(run.bias[t]) / math.sqrt(float(run.logit_variances[t].mean()))
    else:
        place = float(run.bias_to_norm[t])
    return (cosine, math.sqrt(max(0.0, 1 - cosine**2))), place


def line_ends(run: Trajectory, t: int) -> tuple[list[float], list[float]] | None:
    """Return the X and the Y coordinates of the two ends of the separating line; None if it is
    outside of the figure.
    """
    (cosine, sine), place = separating_line(run, t)
    reach = plane_of(run).reach
    if not math.isfinite(place) or abs(place) > 2 * reach:
        return None
    far = 3 * reach
    foot = -place * cosine, -place * sine
    return [foot[0] - far * sine, foot[0] + far * sine], [
        foot[1] + far * cosine,
        foot[1] - far * cosine,
    ]


def plot_plane(runs: Mapping[str, Trajectory], t: int) -> Figure:
    """Draw the clusters of each run with its separating line at step t, and all errors up to t.

    Arguments:
        runs: by title; the same problem with different recipes.
    """
    from .canvas import new_picture  # the explorer uses this module without matplotlib

    with styled():
        figure = new_picture(2.45 * (len(runs) + 1), 2.9, 150)
        *planes, errors = figure.subplots(1, len(runs) + 1)
        colors = dict(zip(runs, (ORANGE, BLUE, BLACK), strict=False))
        for ax, (title, run) in zip(planes, runs.items(), strict=True):
            _draw_plane(ax, run, t)
            ax.set_title(title, color=colors[title])
        _draw_errors(errors, runs, colors, t)
    return figure


def _draw_plane(ax: Axes, run: Trajectory, t: int) -> None:
    """Draw both clouds, the line, and the side that is predicted positive."""
    plane = plane_of(run)
    reach = plane.reach
    (cosine, sine), offset = separating_line(run, t)
    x, y = np.meshgrid(*(np.linspace(-reach, reach, 201),) * 2)
    logit = cosine * x + sine * y + offset
    ax.contourf(x, y, logit, levels=[-np.inf, 0.0, np.inf], colors=SIDES)
    rho = run.problem.test_mixture.rho
    for (name, color), cloud, share in zip(CLASSES, plane.clouds(rho), (1 - rho, rho), strict=True):
        ax.plot(*cloud.T, ".", color=color, ms=4, alpha=0.7, mew=0)
        side, place = ("left", -0.95) if name == "negative" else ("right", 0.95)
        words = f"{share:.0%} {name}"
        ax.text(place * reach, -0.95 * reach, words, color=color, ha=side, fontsize=8)
    ends = line_ends(run, t)
    if ends is not None:
        ax.plot(*ends, color=BLACK)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")
    ax.set_xlabel(f"error {100 * float(run.error[t]):.1f} %")


def _draw_errors(
    ax: Axes, runs: Mapping[str, Trajectory], colors: Mapping[str, str], t: int
) -> None:
    """Draw the errors up to a step on axes that do not depend on it."""
    for title, run in runs.items():
        ax.plot(run.t, 100 * run.error, color=GREY, linewidth=0.6)
        ax.plot(run.t[: t + 1], 100 * run.error[: t + 1], color=colors[title])
        ax.plot(run.t[t], 100 * run.error[t], "o", color=colors[title])
    highest = max(float(np.nanmax(run.error)) for run in runs.values())
    steps_axis((ax,), max(run.problem.steps for run in runs.values()))
    ax.set(ylim=(0, 110 * highest))
    ax.set_title(f"error in %, step {t}")


def film(runs: Mapping[str, Trajectory], milliseconds: int = 350, last: int = 2500) -> bytes:
    """Return `plot_plane` over all steps as an animated GIF that repeats.

    Arguments:
        milliseconds: time for which each step is shown.
        last: the same for the last step.
    """
    steps = min(run.problem.steps for run in runs.values())
    frames = _reduced([_image(plot_plane(runs, t)) for t in range(steps + 1)])
    shown = [milliseconds] * steps + [last]
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:], duration=shown, loop=0)
    return stream.getvalue()


def _image(figure: Figure) -> Image:
    from PIL import Image

    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return Image.open(stream).convert("RGB")


def _reduced(frames: Sequence[Image]) -> list[Image]:
    """Reduce all frames to the palette of the last one: the GIF then stores only what changes."""
    from PIL.Image import Dither

    palette = frames[-1].quantize(64)
    return [frame.quantize(palette=palette, dither=Dither.NONE) for frame in frames]
