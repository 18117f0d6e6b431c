r"""Averages over the new noise $g_2$ for any loss, by adaptive panels that cannot miss a sharp bend
of the loss.

The field is $h = $ centre $ + b\,g_2$, the trained logit its proximal point x, $f = l'(x)$ and $k =
\partial f/\partial h$. The integration variable is x, in which $h = x + c f$ is explicit; or $g_2$,
if the noise is so small relative to the field that x would not resolve it. Panels end at kinks of
the loss. A panel is accepted when three pairs of numbers agree:

- its integrals, and the sums of the integrals over two unequal parts (unequal, so that symmetry
  cannot give both the same error);
- for each part, the integral of l'' (of k) and the difference of f between the ends: as $l'' \ge
  0$, no bend of the loss can be missed;
- for each part, the integral of the density and the difference of the distribution function between
  the ends.

Otherwise the parts are split further. A point that does not converge becomes NaN, so that no step
is confirmed with it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ....arrays import Array
from ....errors import ConvergenceError
from ....losses import Logistic, Loss, Squared, check_within, kinks_at
from ..quadrature.prox import proximal
from ..quadrature.rules import PANEL_W, PANEL_X

ROWS = ("f", "ff", "k", "nk", "fk", "nfk", "ffk", "k3", "nk3", "fk3", "kk", "loss")
"""Names of the averages over the new noise, as in `record`."""

DIFFERENCE = 1e-5
"""Step of central differences in the target, relative to the distance between the two classes."""

RESOLVED = 2e-14
"""x is the integration variable if the rounding error of $g_2$ as a function of x is below this."""

SPLIT = 0.43
"""Position at which a panel is split, as a fraction of its length."""

DEEPEST = 48
"""Largest number of times that a panel is split."""

MOST_PANELS = 400
"""Largest number of open panels per point; with more the integration fails."""

WATCHED = 3
"""Number of first rows (f, f^2, k) that panels are refined for: they enter the equations, the
others only the Jacobian.
"""

CHUNK = 4096
"""Number of panels that are evaluated at once, which limits the memory."""

MOST_AT_ONCE = 1_000_000
"""Largest number of panels of one evaluation of the averages, several times what a kinked loss
needs at the smallest tolerance; with more the evaluation fails.
"""

MOST_WORK = 5_000_000
"""Largest number of panels of a step: ten times what a kinked loss needs, less than a minute."""

EPS = float(np.finfo(float).eps)

Points = NDArray[np.intp]
"""Indices of the points that panels belong to."""


class Fields(NamedTuple):
    r"""The points at which averages over the new noise are computed.

    Attributes:
        target, centre, weight: target, field without new noise, and weight of each point.
        noise: b, the standard deviation of the new noise.
        strength: $c = \chi\Delta$.
    """

    target: Array
    centre: Array
    weight: Array
    noise: float
    strength: float


class Effort:
    """Number of panels used by the averages of one step, and the largest logit so far.

    Without a limit, a diverging search or a loss with inconsistent derivatives would refine panels
    for hours. The loss is checked at the logits that occur, each time their range has doubled.
    """

    def __init__(self, step: int):
        self.step, self.panels, self.checked = step, 0, 0.0

    def add(self, panels: int) -> None:
        """Count panels; raise `ConvergenceError` if they are too many."""
        self.panels += panels
        if self.panels > MOST_WORK:
            reason = (
                f"its averages did not settle with {MOST_WORK:,} panels: the integrands are too"
                " steep, or the search went astray"
            )
            raise ConvergenceError(self.step, reason, {}, math.nan)

    def met(self, loss: Loss, targets: Array, logits: Array) -> None:
        """Validate a user's loss at these logits if they are larger than any checked before."""
        with np.errstate(invalid="ignore"):
            reach = float(np.abs(logits[np.isfinite(logits)]).max(initial=0.0))
        if reach <= self.checked or type(loss) in (Logistic, Squared):
            return
        self.checked = 2.0 * reach
        check_within(loss, self.checked, float(targets.min()), float(targets.max()))


class _Panels(NamedTuple):
    """Integrals over each panel, and their error estimates.

    Attributes:
        rows: the integrals, in the order of `noise_averages`.
        bend: the integral of k minus the change of f between the ends of the panel.
        mass: the integral of the density minus its exact value.
        rounding: the rounding errors of f, f^2, k and of these two differences.
    """

    rows: Array
    bend: Array
    mass: Array
    rounding: Array

    def take(self, which: NDArray[np.bool_]) -> _Panels:
        return _Panels(
            self.rows[:, which], self.bend[which], self.mass[which], self.rounding[:, which]
        )


def noise_averages(
    loss: Loss,
    fields: Fields,
    exponent: float,
    with_labels: bool = False,
    scale: Array | None = None,
    *,
    effort: Effort,
) -> tuple[Array, Array]:
    r"""Return the averages $E[\,\cdot\,]$ over $g_2$, one column per point, and the scales of their
    errors.

    Rows: `ROWS`; with labels also $\partial f/\partial p$, $f\,\partial f/\partial p$,
    $\partial k/\partial p$ at a given h. Errors are $e^{-\rm exponent}$ of the averages over all
    points.

    Arguments:
        scale: the sizes of these averages, if the points are only some of those of the step.
        effort: counts the panels of the step, and raises if they are too many.
    """
    rule = _Rule(loss, fields, with_labels, effort)
    total, scale, stuck = _integrate(rule, exponent, scale)
    if stuck.size:
        # At these points the loss bends too sharply for x as the variable: use g2.
        few = fields._replace(
            target=fields.target[stuck], centre=fields.centre[stuck], weight=fields.weight[stuck]
        )
        again = _Rule(loss, few, with_labels, effort, may_use_x=False)
        total[:, stuck], _, lost = _integrate(again, exponent, scale)
        total[:, stuck[lost]] = np.nan
    return total, scale


def _integrate(rule: _Rule, exponent: float, scale: Array | None) -> tuple[Array, Array, Points]:
    """Return the averages, the scales of their errors, and the points that did not converge.

    `scale` as for `noise_averages`.
    """
    point, low, high = rule.first_panels(exponent)
    whole = rule.integrals(point, low, high)
    if scale is None:
        scale = rule.sizes(point, whole)
    allowed = rule.allowed(exponent, scale)
    total = np.zeros((whole.rows.shape[0], rule.fields.centre.size))
    lost = np.zeros(rule.fields.centre.size, dtype=bool)
    begun = rule.effort.panels
    for _ in range(DEEPEST):
        middle = low + SPLIT * (high - low)
        starts, stops = np.concatenate([low, middle]), np.concatenate([middle, high])
        twice = np.concatenate([point, point])
        parts = rule.integrals(twice, starts, stops)
        both = parts.rows[:, : point.size] + parts.rows[:, point.size :]
        apart = np.abs(both - whole.rows)[:WATCHED]
        good = (apart <= allowed[:WATCHED, None] + whole.rounding[:WATCHED]).all(axis=0)
        fair = parts.bend <= allowed[WATCHED] + parts.rounding[WATCHED]
        fair &= parts.mass <= allowed[WATCHED + 1]
        good &= fair[: point.size] & fair[point.size :]
        for row, values in zip(total, both, strict=True):
            row += np.bincount(point[good], values[good], minlength=row.size)
        hopeless = ~fair & (parts.rounding[WATCHED + 1] > 0.5 * allowed[WATCHED + 1])
        lost[twice[hopeless]] = True
        bad = np.concatenate([~good, ~good]) & ~lost[twice]
        point, low, high, whole = twice[bad], starts[bad], stops[bad], parts.take(bad)
        too_many = rule.effort.panels - begun > MOST_AT_ONCE
        if point.size == 0 or point.size > MOST_PANELS * lost.size or too_many:
            break
    rule.add_kinks(total)
    lost[point] = True
    return total, scale, np.flatnonzero(lost)


class _Rule:
    """The panels of the points of one call of `noise_averages`."""

    def __init__(
        self,
        loss: Loss,
        fields: Fields,
        with_labels: bool,
        effort: Effort,
        may_use_x: bool = True,
    ):
        self.loss, self.fields, self.with_labels = loss, fields, with_labels
        self.effort, self.may_use_x = effort, may_use_x
        self.kinks = kinks_at(loss, fields.target)
        self.over_x = np.zeros(fields.centre.size, dtype=bool)
        target, centre, _, noise, c = fields
        self.middle = proximal(loss, target, centre, c)
        self.rate = noise / (1.0 + c * loss.curvature(target, self.middle))

    def first_panels(self, exponent: float) -> tuple[Points, Array, Array]:
        """Return point, lower and upper end of each initial panel; they depend on the exponent, so
        that a refined rule is independent.
        """
        loss, (target, centre, _, noise, c) = self.loss, self.fields
        reach = math.sqrt(2.0 * exponent)
        cuts = np.linspace(-reach, reach, 5)
        guess = self.middle[:, None] + self.rate[:, None] * cuts
        x = proximal(loss, target[:, None], centre[:, None] + noise * cuts, c, guess)
        self.effort.met(loss, target, x)
        f, bend = loss.slope(target[:, None], x), loss.curvature(target[:, None], x)
        sizes = np.abs(x) * (1.0 + c * bend) + np.abs(c * f) + np.abs(centre[:, None])
        self.over_x = self.may_use_x & (EPS * sizes.max(axis=1) <= RESOLVED * noise)
        edges = np.where(self.over_x[:, None], x, cuts)
        if self.kinks.size:
            at = self.kinks
            n = (at + c * loss.slope(target[:, None], at) - centre[:, None]) / noise
            places = np.where(self.over_x[:, None], at, n)
            places = np.clip(places, edges[:, :1], edges[:, -1:])
            edges = np.sort(np.concatenate([edges, places], axis=1), axis=1)
        point = np.repeat(np.arange(centre.size), edges.shape[1] - 1)
        low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        some = high > low
        return point[some], low[some], high[some]

    def integrals(self, point: Points, low: Array, high: Array) -> _Panels:
        """Return the integrals over each panel."""
        self.effort.add(point.size)
        if point.size <= CHUNK:
            return self._integrals(point, low, high)
        chunks = [slice(first, first + CHUNK) for first in range(0, point.size, CHUNK)]
        parts = [self._integrals(point[here], low[here], high[here]) for here in chunks]
        return _Panels(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))

    def _integrals(self, point: Points, low: Array, high: Array) -> _Panels:
        loss, (targets, centres, _, noise, c) = self.loss, self.fields
        half = 0.5 * (high - low)[:, None]
        nodes = low[:, None] + half * (1.0 + PANEL_X)
        nodes = np.concatenate([nodes, low[:, None], high[:, None]], axis=1)
        target, centre = targets[point][:, None], centres[point][:, None]
        direct = self.over_x[point][:, None]
        x = nodes.copy()
        by_noise = ~direct[:, 0]
        if by_noise.any():
            which, n = point[by_noise][:, None], nodes[by_noise]
            guess = self.middle[which] + self.rate[which] * n
            x[by_noise] = proximal(loss, target[by_noise], centre[by_noise] + noise * n, c, guess)
        f = loss.slope(target, x)
        n = np.where(direct, (x + c * f - centre) / noise, nodes)
        ends, x, f, n = (f[:, 16:], n[:, 16:]), x[:, :16], f[:, :16], n[:, :16]
        curvature = loss.curvature(target, x)
        stretch = 1.0 + c * curvature
        slope = 1.0 / stretch
        k = curvature * slope
        k3 = loss.third(target, x) * slope**3
        rows = [
            f, f * f, k, n * k, f * k, n * f * k, f * f * k, k3, n * k3, f * k3, k * k,
            loss.value(target, x),
        ]  # fmt: skip
        if self.with_labels:
            slope_p, curvature_p = label_derivatives(loss, target, x)
            f_p = slope_p * slope
            rows += [f_p, f * f_p, curvature_p * slope**2 - c * k3 * slope_p]
        width = half * PANEL_W
        density = np.exp(-0.5 * n * n) / math.sqrt(2 * math.pi)
        w = width * density * np.where(direct, stretch / noise, 1.0)
        bend = (width * np.where(direct, curvature, noise * k)).sum(axis=1) - np.diff(ends[0])[:, 0]
        peak = np.exp(-0.5 * np.clip(0.0, ends[1][:, 0], ends[1][:, 1]) ** 2)
        mass = w.sum(axis=1) - np.diff(ndtr(ends[1]))[:, 0]
        blur = np.where(direct, np.abs(x) * stretch, np.abs(x) + np.abs(centre) + np.abs(c * f))
        blur *= 4.0 * EPS
        rounding = [
            (w * blur * k).sum(axis=1),
            (w * blur * k * 2.0 * np.abs(f)).sum(axis=1),
            (w * blur * np.abs(k3)).sum(axis=1),
            (blur * k).max(axis=1) * peak,
            (blur * density * direct).max(axis=1) / noise,
        ]
        return _Panels(
            np.array([(w * row).sum(axis=1) for row in rows]),
            np.abs(bend) * peak,  # a bend counts only where the density is not negligible
            np.abs(mass),
            np.array(rounding),
        )

    def sizes(self, point: Points, whole: _Panels) -> Array:
        """Return the averages over all points of |f|, f^2 and k, of the changes of f where the
        density is not negligible, and of the terms of f; they are the scales of errors.
        """
        loss, (target, centre, weight, noise, c) = self.loss, self.fields
        share = weight / weight.sum()
        rows = [float(share[point] @ np.abs(row)) for row in whole.rows[:WATCHED]]
        x = self.middle
        pieces = [np.abs(loss.slope(np.full(x.size, side), x)) for side in loss.classes]
        terms = np.maximum(*pieces)
        around = [
            loss.slope(target, proximal(loss, target, centre + side * noise, c))
            for side in (1.0, -1.0)
        ]
        change = float(share @ np.abs(around[0] - around[1]))
        return np.array([*rows, change, float(share @ terms)]) + 1e-300

    def allowed(self, exponent: float, scale: Array) -> Array:
        """Return the allowed errors of a panel in f, f^2, k, the change of f and the mass."""
        tolerance = max(10.0 * math.exp(-exponent), 20.0 * EPS)
        rounding = 4.0 * EPS * scale[4]
        typical = math.sqrt(scale[1])
        errors = tolerance * np.append(scale[:4], 1.0)
        errors += np.array([rounding, 4.0 * typical * rounding, 0.0, rounding, 2.0 * RESOLVED])
        return errors

    def add_kinks(self, total: Array) -> None:
        r"""Add the contribution of kinks to the averages of k', which is a delta function where l''
        jumps.

        The kink at $x = \kappa$ is at $h = \kappa + c\,l'(\kappa)$, where h has the density
        $\varphi(n)/b$; its position depends on the target.
        """
        loss, (target, centre, _, noise, c) = self.loss, self.fields
        for j in range(self.kinks.shape[1]):
            at = self.kinks[:, j]
            near = 1e-9 * (np.abs(at) + noise)
            below, above = (loss.curvature(target, at + side * near) for side in (-1.0, 1.0))
            f = loss.slope(target, at)
            n = (at + c * f - centre) / noise
            jump = above / (1.0 + c * above) - below / (1.0 + c * below)
            strength = jump * np.exp(-0.5 * n * n) / (math.sqrt(2 * math.pi) * noise)
            total[7:10] += np.array([strength, n * strength, f * strength])
            if self.with_labels:
                total[14] -= strength * self._kink_shift(j)

    def _kink_shift(self, j: int) -> Array:
        """Return the derivative in the target of the field at which kink number j lies."""
        below, above = beside(self.loss, self.fields.target)
        fields = []
        for target in (below, above):
            at = kinks_at(self.loss, target)[:, j]
            fields.append(at + self.fields.strength * self.loss.slope(target, at))
        shift: Array = (fields[1] - fields[0]) / (above - below)
        return shift


def beside(loss: Loss, target: Array) -> tuple[Array, Array]:
    """Return targets slightly below and above the given ones, for central differences; they stay
    between the classes if the target is.
    """
    low, high = loss.classes
    step = DIFFERENCE * (high - low)
    inside = (low <= target) & (target <= high)
    below = np.where(inside, np.maximum(target - step, low), target - step)
    above = np.where(inside, np.minimum(target + step, high), target + step)
    return below, above


def label_derivatives(loss: Loss, target: Array, x: Array) -> tuple[Array, Array]:
    r"""Return $\partial l'/\partial p$ and $\partial l''/\partial p$ by central differences, exact
    for a loss linear or quadratic in its target.
    """
    below, above = beside(loss, target)
    width = above - below
    slope = (loss.slope(above, x) - loss.slope(below, x)) / width
    curvature = (loss.curvature(above, x) - loss.curvature(below, x)) / width
    return slope, curvature
