r"""The averages of one group of samples for any loss and any labeler, in plain numpy.

The averages of `noise` are functions of the previous noise $g_1$. They are integrated over it by
16-point panels, which are split at thresholds and jumps of the label, and further until the sum of
two parts agrees with the whole.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ....arrays import Array
from ....errors import InvalidInput
from ....labelers import Labeler
from ....losses import Loss
from ..quadrature.rules import PANEL_W, PANEL_X, OldModel
from ..record import COUNT, NAMES, position
from .noise import DIFFERENCE, MOST_AT_ONCE, ROWS, SPLIT, Effort, Fields, noise_averages

LABEL_ROWS = ("y", "fy", "ky")
"""Averages that `noise_averages` adds if derivatives in the label are requested."""

SHARP, MASS, COLUMNS = slice(COUNT, COUNT + 5), COUNT + 5, COUNT + 6
"""Columns of the integrals over a panel after the averages: derivatives in the sharpness, and the
selected probability mass.
"""

BY_SHARPNESS = [position(name) for name in ("y", "sy", "gy", "fy", "ky")]
"""Averages that become derivatives of E[f], E[s f], E[g f], E[f^2]/2, E[k] in the sharpness if the
derivative of the label in its logit is replaced by that in the sharpness.
"""

CONVERGED = (*(position(name) for name in ("f", "ff", "k", "gf", "sf")), MASS)
"""Integrals that panels are refined for: they enter the equations, the others only the Jacobian."""


def gather(s: Array, g: Array, rows: dict[str, Array]) -> Array:
    """Return the averages of the record, summed over the last axis, from weighted averages `rows`
    over the new noise at points (s, g1): each is multiplied by the powers of s and g in its name.
    """
    factors: dict[str, Any] = {"": 1.0, "s": s, "g": g, "sg": s * g, "gg": g * g}
    out = np.zeros((*s.shape[:-1], COUNT))
    for column, name in enumerate(NAMES):
        inner = name.lstrip("sg")
        if inner in rows:
            out[..., column] = (factors[name.removesuffix(inner)] * rows[inner]).sum(axis=-1)
    return out


class NewFields(NamedTuple):
    r"""The new logits of a group: $h = s\,$`mean` + `bias` + `tilt` $g_1$ + `noise` $g_2$;
    `strength` is c of the proximal map.
    """

    mean: float
    bias: float
    tilt: float
    noise: float
    strength: float

    def at(self, s: Array, g: Array, target: Array, weight: Array) -> Fields:
        """Return the fields at weighted points (s, g1) with given targets."""
        centre = s * self.mean + self.bias + self.tilt * g
        return Fields(target, centre, weight, self.noise, self.strength)


class Targets:
    """The labels that a labeler gives at one sharpness, for one loss."""

    def __init__(self, labeler: Labeler, loss: Loss, sharpness: float):
        self.labeler, self.loss, self.sharpness = labeler, loss, sharpness

    @property
    def jumps(self) -> tuple[float, ...]:
        """Logits at which the label jumps."""
        return tuple(self.labeler.jumps(self.sharpness))

    def at(self, logit: Array, sharpness: float | None = None) -> Array:
        """Return the labels at these logits, at this sharpness or another."""
        gamma = self.sharpness if sharpness is None else sharpness
        return np.asarray(self.labeler.target(logit, gamma, self.loss), dtype=float)

    def slopes(self, logit: Array) -> tuple[Array, Array]:
        """Return the derivatives of the target in the logit and in the sharpness, by central
        differences.
        """
        if math.isinf(self.sharpness):
            step = DIFFERENCE
            by_sharpness = np.zeros(logit.size)
        else:
            step = DIFFERENCE / max(1.0, self.sharpness)
            by_sharpness = self._by_sharpness(logit)
        steps = np.full(logit.size, step)
        for jump in self.jumps:
            steps = np.minimum(steps, 0.5 * np.abs(logit - jump))
        by_logit = (self.at(logit + steps) - self.at(logit - steps)) / (2 * steps)
        return by_logit, by_sharpness

    def _by_sharpness(self, logit: Array) -> Array:
        """Return the derivative of the target in the sharpness, by a difference to the side on
        which no jump of the label passes the logit.
        """
        gamma, change = self.sharpness, DIFFERENCE * self.sharpness
        here = self.at(logit)
        up = (self.at(logit, gamma + change) - here) / change
        down = (here - self.at(logit, gamma - change)) / change
        slope = 0.5 * (up + down)
        now, after, before = (self._jumps_at(gamma + side * change) for side in (0.0, 1.0, -1.0))
        for at, above, below in zip(now, after, before, strict=True):
            slope = np.where((logit > at) != (logit > above), down, slope)
            slope = np.where((logit > at) != (logit > below), up, slope)
        return slope

    def _jumps_at(self, sharpness: float) -> Array:
        """Return the logits at which the label jumps; raise if their number depends on the
        sharpness.
        """
        jumps = np.array(self.labeler.jumps(sharpness), dtype=float)
        if jumps.size != len(self.jumps):
            accepted = "for a gradient the number of its jumps may not change with the sharpness"
            raise InvalidInput("labeler", self.labeler.name, accepted)
        return jumps

    def jump_slopes(self) -> Array:
        """Return the derivatives in the sharpness of the logits at which the label jumps."""
        if math.isinf(self.sharpness):
            return np.zeros(len(self.jumps))
        change = DIFFERENCE * self.sharpness
        after, before = (self._jumps_at(self.sharpness + side * change) for side in (1.0, -1.0))
        slopes: Array = (after - before) / (2 * change)
        return slopes


class GroupIntegrals:
    """The averages over the pseudo-labelled samples of one group.

    Arguments:
        loss, labeler: loss and labeler of the step.
        old: the labelling model on the group.
        effort: counts the panels of the step.
    """

    def __init__(self, loss: Loss, labeler: Labeler, old: OldModel, effort: Effort):
        self.loss, self.old, self.effort = loss, old, effort
        self.targets = Targets(labeler, loss, old.sharpness)

    def selected(self, exponent: float) -> tuple[Array, Array, Array, Array]:
        """Return the selected points: class, g1, weight (the sum is the selected proportion),
        target.
        """
        s, g, w, previous = self._nodes(self._first_panels(exponent))
        chosen = w > 0
        if not chosen.any():
            return s[chosen], g[chosen], w[chosen], previous[chosen]
        return s[chosen], g[chosen], w[chosen], self.targets.at(previous[chosen])

    def _first_panels(self, exponent: float) -> Array:
        """Return panels in g1 as rows (class, from, to), split at thresholds, jumps, and the points
        of a coarse grid.
        """
        mean, spread, bias, _, limit, sharpness = self.old
        jumps = [0.0, *self.targets.jumps]
        wide = 0.0 if math.isinf(sharpness) else sharpness * spread
        rows = []
        for s in (1.0, -1.0):
            centre = s * mean + bias
            inner = [(jump - centre) / spread for jump in jumps]
            edges = [(side * limit - centre) / spread for side in (-1.0, 1.0)]
            deep = max(0.0, min(-edges[0], edges[1])) if limit > 0 else 0.0
            reach = math.sqrt(deep**2 + 2 * exponent) + min(wide, abs(centre) / spread)
            points = np.array([*np.linspace(-reach, reach, 9), *inner, *edges])
            cuts = np.unique(np.clip(points, -reach, reach))
            rows += [(s, low, high) for low, high in itertools.pairwise(cuts)]
        return np.array(rows)

    def _nodes(self, panels: Array) -> tuple[Array, Array, Array, Array]:
        """Return 16 nodes for each panel: class, g1, weight (0 if rejected), previous logit."""
        mean, spread, bias, rho, limit, _ = self.old
        half = 0.5 * (panels[:, 2] - panels[:, 1])[:, None]
        g = (panels[:, 1][:, None] + half * (1 + PANEL_X)).ravel()
        s = np.repeat(panels[:, 0], 16)
        w = (half * PANEL_W).ravel() * np.where(s > 0, rho, 1 - rho)
        w = w * np.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)
        previous = s * mean + bias + spread * g
        return s, g, np.where(np.abs(previous) > limit, w, 0.0), previous

    def integrals(
        self, new: NewFields, exponent: float, with_labels: bool = False
    ) -> tuple[Array, int]:
        """Return the averages over selected samples with their proportion (column `MASS`), and the
        number of points.

        Panels are bisected until they agree with their halves.
        """
        tolerance = math.exp(-exponent)
        watched = [*CONVERGED, *(map(position, ("y", "fy", "ky")) if with_labels else ())]
        done, points = np.zeros(COLUMNS), 0
        pending = self._first_panels(exponent)
        whole, sizes = self._panels(new, pending, exponent, with_labels)
        scale = np.abs(whole).sum(axis=0) + 1e-300
        begun = self.effort.panels
        for _ in range(40):
            s, low, high = pending.T
            middle = low + SPLIT * (high - low)
            halves = np.array([s, low, middle, s, middle, high]).T.reshape(-1, 3)
            split, _ = self._panels(new, halves, exponent, with_labels, sizes)
            points += 16 * len(halves)
            both = split.reshape(len(pending), 2, -1).sum(axis=1)
            error = (np.abs(both - whole) / scale)[:, watched].max(axis=1)
            good = error <= max(10 * tolerance, 1e-14)
            done += both[good].sum(axis=0)
            too_many = self.effort.panels - begun > MOST_AT_ONCE
            if good.all() or too_many or not np.isfinite(both).all():
                done += both[~good].sum(axis=0)
                done[:] = np.nan if too_many and not good.all() else done
                break
            bad = np.repeat(~good, 2)
            pending, whole = halves[bad], split[bad]
        done[:MASS] /= done[MASS]
        return done, points

    def _panels(
        self,
        new: NewFields,
        panels: Array,
        exponent: float,
        with_labels: bool,
        sizes: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return the integrals over each panel (class, from, to), zero if no point of it is
        selected, and the scales of `noise_averages`.
        """
        s, g, w, previous = self._nodes(panels)
        live = w > 0
        inner = np.zeros((len(ROWS) + len(LABEL_ROWS) * with_labels, g.size))
        if live.any():
            fields = new.at(s[live], g[live], self.targets.at(previous[live]), w[live])
            inner[:, live], sizes = noise_averages(
                self.loss, fields, exponent, with_labels, sizes, effort=self.effort
            )
        shape = (len(panels), 16)
        s, g, rows = s.reshape(shape), g.reshape(shape), (w * inner).reshape(-1, *shape)
        named = dict(zip(ROWS, rows, strict=False))
        out = np.zeros((len(panels), COLUMNS))
        out[:, MASS] = w.reshape(shape).sum(axis=1)
        if with_labels:
            slopes = np.zeros((2, g.size))
            slopes[:, live] = self.targets.slopes(previous[live])
            by_logit, by_sharpness = slopes.reshape(2, *shape)
            named |= dict(zip(LABEL_ROWS, by_logit * rows[len(ROWS) :], strict=True))
            sharp = dict(zip(LABEL_ROWS, by_sharpness * rows[len(ROWS) :], strict=True))
            out[:, SHARP] = gather(s, g, sharp)[:, BY_SHARPNESS] * [1.0, 1.0, 1.0, 2.0, 1.0]
        out[:, :COUNT] = gather(s, g, named)
        return out, np.ones(5) if sizes is None else sizes

    def edges(self, new: NewFields, exponent: float, share: float) -> Array:
        """Return the points at which the integrand jumps, one row for each: both thresholds, and
        the jumps of the label among selected samples.

        Columns: class, g1, density, the decreases of f, f^2 and k across it, the side of a
        threshold (else 0), and the derivative of the position of a label's jump in the sharpness.
        """
        mean, spread, bias, rho, limit, _ = self.old
        places = [(side * limit, side, 0.0) for side in (1.0, -1.0)]
        for jump, moves in zip(self.targets.jumps, self.targets.jump_slopes(), strict=True):
            if abs(jump) > limit:
                places.append((jump, 0.0, moves))
        rows = []
        for (logit, side, moves), s in itertools.product(places, (1.0, -1.0)):
            g = (logit - s * mean - bias) / spread
            near = 1e-9 * (abs(logit) + 1e-9 * spread)
            beside = np.array([logit - near, logit + near])
            fields = new.at(np.full(2, s), np.full(2, g), self.targets.at(beside), np.ones(2))
            f, ff, k = noise_averages(self.loss, fields, exponent, effort=self.effort)[0][:3]
            kept = np.array([side <= 0, side >= 0])  # whether each side of the edge is selected
            falls = [float((row * kept) @ [1.0, -1.0]) for row in (f, ff, k)]
            weight = (rho if s > 0 else 1 - rho) * math.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)
            rows.append([s, g, weight / share, *falls, side, moves])
        return np.array(rows)
