r"""The linear response of one step to a small ridge and slightly sharpened labels: the averages at
$\lambda = 0$ and a linear system.

At $\lambda = 0$ the old model already minimises the loss of its own labels, so the step does not
change it. The response of the slopes to a small change of the fields is $k_0 = l''/(1 +
\chi_0\Delta\, l'')$ at the old logit $\tilde h$. Labels sharpened by $\gamma = 1 + \lambda\epsilon$
are the soft labels of the logit $\gamma\tilde h$, where the slope of the loss vanishes; so to first
order the field is $h - \gamma\tilde h$ in place of $h - \tilde h$. The equations of the step
(`step.equations`) with $a = \omega(1 + \lambda r)$, $\eta = \lambda\omega b$, $B = B' +
\lambda\omega\beta$ become, to first order in $\lambda$ and in units of $\omega$,

    E[k_0 h_1] = 0        E[k_0 \hat g h_1] = -1/\alpha        E[k_0 s h_1] = -b \hat Q_0/\alpha

    h_1 = (\beta - \epsilon B'/\omega) + (r - \epsilon) \hat g + \nu^2 b s

with $\hat g = (\tilde h - B')/\omega$ and $1/\chi_0 = \alpha\Delta E[k_0] = \hat Q_0$. A fixed bias
has $\beta = 0$ in place of the first equation. The equation of $\chi_0$ is monotone in $c =
\chi_0\Delta$: $\alpha E[c\,l''/(1 + c\,l'')] = 1$. It has a root if and only if there are more
selected samples with $l'' > 0$ than features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...errors import InvalidInput, NoExpansion, SelfTrainError
from ...fields import number, whole
from ...losses import Loss, fixed_kinks
from ..averages.quadrature.rules import PANEL_W, PANEL_X

if TYPE_CHECKING:
    from ..trajectory import Trajectory

SETTLED = 1e-13
"""Relative difference between a panel and its halves at which an average has converged."""

FIRST_EDGES = (-11.0, -8.0, -4.0, 0.0, 4.0, 8.0, 11.0)
FARTHEST = 38.0
HALVINGS = 48
NEWTON_STEPS = 200


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class State:
    r"""The order parameters of a linear classifier.

    Attributes:
        m: overlap with the cluster direction, $v \cdot w/N$.
        v: squared norm of the weights orthogonal to that direction, $q - m^2$.
        bias: $B$.

    >>> State(m=0.6, v=0.64, bias=-0.1).cosine
    0.6
    """

    m: float
    v: float
    bias: float

    def __post_init__(self) -> None:
        for name in ("m", "v", "bias"):
            value = number(name, getattr(self, name), math.isfinite, "must be a finite number")
            object.__setattr__(self, name, value)
        if self.v < 0:
            raise InvalidInput("v", self.v, "must be a finite number >= 0 (q - m^2)")
        if not 1e-307 <= self.q <= 1e307:
            accepted = "must be weights that are not all zero, with m^2 + v from 1e-307 to 1e307"
            raise InvalidInput("m, v", (self.m, self.v), accepted)

    @classmethod
    def at(cls, trajectory: Trajectory, t: int) -> State:
        """Return the state after step t of a solved run."""
        good = trajectory.good_steps
        accepted = f"must be a solved step, from 0 to {good - 1}"
        t = whole("t", t, lambda n: 0 <= n < good, accepted)
        values = (trajectory.m[t], trajectory.v[t], trajectory.bias[t])
        return cls(*(float(value) for value in values))

    @property
    def q(self) -> float:
        """Squared norm of the weights."""
        return self.m * self.m + self.v

    @property
    def norm(self) -> float:
        r"""Norm of the weights, $\omega = \sqrt q$."""
        return math.hypot(self.m, math.sqrt(self.v))

    @property
    def cosine(self) -> float:
        r"""Cosine with the cluster direction, $\mu = m/\sqrt q$."""
        return self.m / self.norm

    @property
    def misalignment(self) -> float:
        r"""One minus the squared cosine, $\nu^2 = v/q = 1 - M$, to full relative accuracy."""
        return (math.sqrt(self.v) / self.norm) ** 2


class GivenBatch(NamedTuple):
    r"""Parameters of the batch of a step: $\alpha, \rho, \Delta$ and the threshold $\Gamma$."""

    alpha: float
    rho: float
    delta: float
    threshold: float


@dataclass(frozen=True)
class Response:
    r"""First-order response of a step to its ridge.

    Attributes:
        chi: $\chi_0$.
        points: $\alpha P$, the selected samples per feature with $l'' > 0$.
        selected: all selected samples per feature.
        shrink: r, the rate of $\ln\sqrt q$.
        turn: b, the rate of $\mathrm{artanh}(m/\sqrt q)$.
        drift: $\beta$, the rate of B in units of $\sqrt q$.
        noise: $E[k_0^2 h_1^2]$ in units of q, the sharpening included in $h_1$.
        stiffness: $E[x^2]$ with $x = \chi_0\Delta\,k_0$, between 0 and 1.
    """

    chi: float
    points: float
    selected: float
    shrink: float
    turn: float
    drift: float
    noise: float
    stiffness: float


def respond(
    loss: Loss, state: State, batch: GivenBatch, fixed_bias: bool, sharpening: float = 0.0
) -> Response:
    r"""Return the response of a step from `state` to its ridge and to labels of sharpness
    $1 + \lambda\epsilon$, with $\epsilon$ = `sharpening`; raise `NoExpansion` if there is none.
    """
    nodes, c = _settled_nodes(loss, state, batch)
    s, g, k = nodes.s, nodes.g, nodes.curvature / (1.0 + c * nodes.curvature)
    columns = np.array([np.ones_like(g), g, s])
    gram = (columns * (nodes.weight * k)) @ columns.T
    known = SETTLED * ((np.abs(columns) * (nodes.weight * k)) @ np.abs(columns).T)
    gram[np.abs(gram) < known] = 0.0  # for symmetric batches, so that a bias of zero stays zero
    nu2 = state.misalignment
    alpha, delta = batch.alpha, batch.delta
    matrix = gram * [1.0, 1.0, nu2]
    matrix[2, 2] += delta * gram[0, 0]
    right = np.array([0.0, -1.0 / alpha, 0.0])
    scaled_bias = sharpening * state.bias / state.norm
    if fixed_bias:
        matrix[0] = 1.0, 0.0, 0.0
        right[0] = -scaled_bias
    level, slope, turn = np.linalg.solve(matrix, right)
    field = level + slope * g + nu2 * turn * s
    return Response(
        chi=c / delta,
        points=alpha * nodes.share,
        selected=alpha * nodes.selected,
        shrink=float(slope + sharpening),
        turn=float(turn),
        drift=0.0 if fixed_bias else float(level + scaled_bias),
        noise=float(nodes.weight @ (k * field) ** 2),
        stiffness=float(nodes.weight @ (c * k) ** 2),
    )


class _Nodes(NamedTuple):
    r"""Quadrature nodes for averages over selected samples: class, $\hat g$, curvature at
    $\tilde h$, weight.
    """

    s: Array
    g: Array
    curvature: Array
    weight: Array

    @property
    def share(self) -> float:
        """Probability that a sample is selected and the curvature at its logit is not zero."""
        return float(self.weight[self.curvature > 0].sum())

    @property
    def selected(self) -> float:
        """Probability that a sample is selected."""
        return float(self.weight.sum())


def _settled_nodes(loss: Loss, state: State, batch: GivenBatch) -> tuple[_Nodes, float]:
    """Return nodes on panels, which are halved until the averages agree with those of the halves,
    and c.
    """
    panels = _panels(loss, state, batch)
    for _ in range(HALVINGS):
        middle = 0.5 * (panels[1] + panels[2])
        left = np.array([panels[0], panels[1], middle])
        right = np.array([panels[0], middle, panels[2]])
        halves = np.stack([left, right], axis=2).reshape(3, -1)
        fine = _nodes(loss, state, batch, halves)
        c = _strength(fine, batch.alpha, state)
        whole = _averages(_nodes(loss, state, batch, panels), c)
        parts = _averages(fine, c).reshape(len(whole), -1, 2).sum(axis=2)
        scale = np.abs(parts).sum(axis=1, keepdims=True)
        bad: Mask = np.asarray((np.abs(whole - parts) > SETTLED * scale).any(axis=0))
        short = _beyond(panels, parts, scale)
        if not bad.any() and not short.size:
            return fine, c
        panels = np.concatenate([panels[:, ~bad], halves[:, np.repeat(bad, 2)], short], axis=1)
    raise SelfTrainError(
        f"the averages over the batch did not settle to {SETTLED:g} at m={state.m:.6g}, "
        f"q={state.q:.6g}, bias={state.bias:.6g}: a jump of the curvature of the loss "
        f"{loss.name!r} may be missing from its kinks"
    )


def _panels(loss: Loss, state: State, batch: GivenBatch) -> Array:
    """Return the initial panels, columns (class, from, to) in the noise, split at thresholds, kinks
    and zero.
    """
    omega, spread = state.norm, math.sqrt(batch.delta) * state.norm
    cuts = [0.0, -batch.threshold * omega, batch.threshold * omega, *fixed_kinks(loss)]
    columns = []
    for s in (1.0, -1.0):
        centre = s * state.m + state.bias
        places = (np.array(cuts) - centre) / spread
        inside = places[np.abs(places) < FIRST_EDGES[-1]]
        edges = np.unique(np.concatenate([FIRST_EDGES, inside]))
        columns.append(np.array([np.full(edges.size - 1, s), edges[:-1], edges[1:]]))
    return np.concatenate(columns, axis=1)


def _beyond(panels: Array, parts: Array, scale: Array) -> Array:
    """Return panels beyond the outermost ones, if these contribute noticeably to an average."""
    columns = []
    heavy: Mask = np.asarray((np.abs(parts) > 0.1 * SETTLED * scale).any(axis=0))
    for s in (1.0, -1.0):
        own = panels[0] == s
        low, high = panels[1, own].min(), panels[2, own].max()
        if heavy[own & (panels[1] == low)].any() and low > -FARTHEST:
            columns.append((s, low - 3.0, low))
        if heavy[own & (panels[2] == high)].any() and high < FARTHEST:
            columns.append((s, high, high + 3.0))
    return np.array(columns).reshape(-1, 3).T


def _nodes(loss: Loss, state: State, batch: GivenBatch, panels: Array) -> _Nodes:
    """Return 16 Gauss-Legendre nodes on each panel; rejected samples have weight zero."""
    half = 0.5 * (panels[2] - panels[1])[:, None]
    noise = (panels[1][:, None] + half * (1.0 + PANEL_X)).ravel()
    s = np.repeat(panels[0], PANEL_X.size)
    share = np.where(s > 0, batch.rho, 1.0 - batch.rho)
    weight = share * (half * PANEL_W).ravel() * np.exp(-0.5 * noise**2) / math.sqrt(2 * math.pi)
    g = s * state.cosine + math.sqrt(batch.delta) * noise
    logit = state.bias + state.norm * g
    weight = np.where(np.abs(logit) > batch.threshold * state.norm, weight, 0.0)
    curvature = np.asarray(loss.curvature(loss.link(logit), logit), dtype=float)
    return _Nodes(s, g, curvature, weight)


def _averages(nodes: _Nodes, c: float) -> Array:
    r"""Return, for each panel, the averages of $1$, $x = \chi_0\Delta\,k_0$ and $x^2$ times powers
    of $\hat g$; one row for each average.
    """
    x = c * nodes.curvature / (1.0 + c * nodes.curvature)
    rows = np.array([np.ones_like(x), x, x * nodes.g, x * nodes.g**2, x * x, (x * nodes.g) ** 2])
    sums: Array = (nodes.weight * rows).reshape(len(rows), -1, PANEL_X.size).sum(axis=2)
    return sums


def _strength(nodes: _Nodes, alpha: float, state: State) -> float:
    r"""Return $c = \chi_0\Delta$, the root of $\alpha E[c\,l''/(1 + c\,l'')] = 1$.

    Newton's method in $\ln c$ is applied to the logarithm of the ratio of $E[c\,l''/(1+c\,l'')]$
    and $E[1/(1+c\,l'')]$, which is linear for a constant curvature; a step that leaves the bracket
    is replaced by a bisection.
    """
    curved = nodes.curvature > 0
    curvature, weight = nodes.curvature[curved], alpha * nodes.weight[curved]
    points = float(weight.sum())
    if not points > 1.0 + 10 * SETTLED:
        raise NoExpansion(points, state, selected=alpha * nodes.selected)
    low, high = -700.0, 700.0
    x = math.log((1.0 / (points - 1.0)) * points / float(weight @ curvature))
    for _ in range(NEWTON_STEPS):
        free = 1.0 / (1.0 + math.exp(x) * curvature)
        bound = math.exp(x) * curvature * free
        tied, loose = float(weight @ bound), float(weight @ free)
        gap = math.log(tied) - math.log(loose / (points - 1.0))
        low, high = (x, high) if gap < 0 else (low, x)
        slope = float(weight @ (free * bound)) * (1.0 / tied + 1.0 / loose)
        moved = x - gap / slope
        if not low <= moved <= high:
            moved = 0.5 * (low + high)
        if abs(moved - x) <= 1e-14 * (1.0 + abs(x)):
            return math.exp(moved)
        x = moved
    raise SelfTrainError(
        f"the susceptibility was not found in {NEWTON_STEPS} steps at m={state.m:.6g}, "
        f"q={state.q:.6g}, bias={state.bias:.6g}"
    )
