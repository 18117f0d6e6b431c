"""Starting points of Newton's method: the conjugates that belong to given weights."""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from .step import CausalStep, Totals
from .unknowns import Hats
from .weights import FAINT, Trial

MOST_SUBSTITUTIONS = 30

SMALL_REST = (1e-6, 1e-4)
"""If a start has no new direction, one is added with this fraction of the squared weights: the
minimum, and the value per unit of the ridge.
"""


def large_ridge_start(stage: CausalStep, bias: Array) -> Array:
    """Return the unknowns for a large ridge, from the slopes at weights of zero."""
    history = stage.history
    shape = (stage.layout.components, history.space.size, history.count)
    return start_at(stage, np.zeros(shape), bias)


def no_update_start(stage: CausalStep, bias: Array) -> Array:
    """Return the unknowns from the slopes at the weights of the fit before, with this fit's
    labels.
    """
    history = stage.history
    return start_at(stage, history.fits[-1][:, :, : history.count], bias)


def start_at(stage: CausalStep, w: Array, bias: Array) -> Array:
    """Return the unknowns from the slopes of the loss at the logits of the weights w."""
    history, layout = stage.history, stage.layout
    d = layout.components
    bias = bias if stage.bias is None else stage.bias
    trial = Trial(w, {}, history.space.gain(stage.ridge, {}, d))
    found = Totals(layout, ())
    seen = {a: history.see(a, trial)[0] for a in layout.sources}
    parts = []
    for cell in stage.cells:
        own = seen[cell.source]
        mean = history.means(cell.law, w)[:, cell.kind] + bias
        part, off = cell.view.along(own.along)
        theta = cell.combine(mean, part, np.zeros((d, d)), own.react)
        parts.append((cell, *cell.start_averages(theta), off))
    stiffness, strengths = _start_stiffness(stage)
    for cell, f, square, off in parts:
        own_stiffness = cell.start_stiffness(strengths[cell.source])
        f[:, cell.used :] = own_stiffness  # by Stein's identity
        found.add(cell, f, square, own_stiffness, off)
    along = {a: found.along[a] - stiffness[a] @ seen[a].along for a in layout.sources}
    fresh = {}
    share = max(SMALL_REST[0], SMALL_REST[1] * min(1.0, stage.ridge))
    for a, own in seen.items():
        slopes = found.slopes[a]
        square = found.square[a] - slopes @ slopes.T
        scale = float(np.trace(found.square[a]))
        least = share * float((own.along**2).sum()) / np.trace(strengths[a]) ** 2
        low = max(least, 1e2 * FAINT * scale, 1e-290)
        fresh[a] = square if np.linalg.eigvalsh(square).min() > low else low * np.eye(d)
    return layout.pack(bias, Hats(found.means, stiffness, along, found.slopes, fresh))


def _start_stiffness(stage: CausalStep) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return stiffness and strength of a start, which depend on each other, by fixed-point
    iteration.
    """
    history, layout = stage.history, stage.layout
    d = layout.components
    stiffness = {a: np.zeros((d, d)) for a in layout.sources}
    strengths: dict[int, Array] = {}
    for _ in range(MOST_SUBSTITUTIONS):
        gain, before = history.space.gain(stage.ridge, stiffness, d), strengths
        strengths = {a: history.strength(a, gain) for a in layout.sources}
        stiffness = {a: np.zeros((d, d)) for a in layout.sources}
        for cell in stage.cells:
            a = cell.source
            stiffness[a] += cell.share * cell.start_stiffness(strengths[a])
        if before and all(
            np.abs(strengths[a] - before[a]).max() <= 0.01 * np.trace(before[a]) for a in before
        ):
            break
    return stiffness, strengths
