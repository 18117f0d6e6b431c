r"""The process of a row: what a group of rows has seen, step after step, on a bank.

The weights of step t are $w_t = m_t v + \sum_{k \le t} \Lambda_{tk} e_k$ with directions $e_k$
orthonormal to each other and to v. Along $e_k$ a row has $x_k = \sqrt\Delta z_k - y_k$: fresh noise
minus the reaction $y_k = \Delta\varphi_k$ to having been fitted, where the slopes are $f^{(t)} =
\sum_k \Phi_{tk}\varphi_k$. `Returning` rows carry these numbers along; rows that one step alone
uses (`Once`) need two Gaussian numbers only, one along the labelling model and one across.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...arrays import Array
from ...labelers import Labeler
from ...losses import Loss
from ...rows import RowGroup
from .bank import Bank, Draw, turned
from .response import RowAnswer, respond
from .sums import Active, Layout, Places, Sums


@dataclass
class Path:
    r"""The parameters of all steps: what the weights of a run are made of.

    Attributes:
        bias, m, kappa: $B_t$, $m_t$, $\chi_{tt}$.
        loadings: $\Lambda$, lower triangular; `slopes`: $\Phi$, lower triangular.
        first: where the weights of step 0 point, roughly: along v and across.
        live: the steps with a direction of their own; the others add nothing that rounding leaves.
    """

    bias: Array
    m: Array
    kappa: Array
    loadings: Array
    slopes: Array
    first: Array
    live: list[int] = field(default_factory=list)

    @classmethod
    def empty(cls, steps: int, first: Array) -> Path:
        size = steps + 1
        rows = (np.full(size, np.nan) for _ in range(3))
        bias, m, kappa = rows
        return cls(bias, m, kappa, np.zeros((size, size)), np.zeros((size, size)), first)

    def q(self, t: int) -> float:
        """Squared norm of the weights of step t."""
        return float(self.m[t] ** 2 + self.loadings[t] @ self.loadings[t])

    def model(self, t: int) -> Array:
        """Coordinates of the weights of step t: along v, then along the live directions."""
        return np.append(self.m[t], self.loadings[t, self.live])


@dataclass(frozen=True)
class Labels:
    """How rows get their targets in one step: threshold on |logit| and sharpness."""

    labeler: Labeler
    threshold: float
    sharpness: float

    def target(self, logit: Array, loss: Loss) -> Array:
        return np.asarray(self.labeler.target(logit, self.sharpness, loss), dtype=float)

    def selected(self, logit: Array) -> Array:
        return np.asarray(np.abs(logit) > self.threshold)


class GroupRows:
    """Rows of one group: signs of the classes, weights in averages, targets of the step at hand."""

    group: RowGroup
    loss: Loss
    signs: Array
    shares: Array
    logits: Array
    target: Array
    weight: Array
    answer: RowAnswer

    def __init__(self, group: RowGroup, loss: Loss, bank: Bank):
        self.group, self.loss = group, loss
        self.signs = np.repeat([1.0, -1.0], bank.weights.size)
        share = np.where(self.signs > 0, group.rho, 1 - group.rho)
        self.shares = group.alpha * share * np.tile(bank.weights, 2)
        self.answer = RowAnswer.empty(self.signs.size)

    def set_targets(self, t: int, labels: Labels | None) -> None:
        """Targets and weights of step t, from the logits under the model of step t - 1."""
        factor = self.group.weights[t]
        if self.group.labeled or labels is None:
            negative, positive = self.loss.classes
            self.target = np.where(self.signs > 0, positive, negative)
            self.weight = np.full(self.signs.size, factor)
            return
        self.target = labels.target(self.logits, self.loss)
        self.weight = factor * labels.selected(self.logits)

    def react(self, field_: Array, kappa: float) -> None:
        """Trained logits and slopes at a field."""
        strength = kappa * self.group.delta
        respond(self.loss, field_, self.target, self.weight, strength, self.answer)

    def start_sums(self, layout: Layout) -> tuple[Array, float]:
        r"""Of the slopes at the present logits: averages with the past reactions, and of their
        square with $\Delta$.
        """
        slope = self.weight * self.loss.slope(self.target, self.logits)
        weighted = self.shares * slope
        return self.past_average(weighted, layout), self.group.delta * float(weighted @ slope)

    def past_average(self, weighted: Array, layout: Layout) -> Array:
        """Averages with the past reactions; rows without a past have none."""
        return np.zeros(layout.past.size)

    @property
    def signal(self) -> float:
        r"""$-\alpha E[s f]$."""
        return -float((self.shares * self.signs) @ self.answer.f)

    def quality(self) -> tuple[float, float, float, float]:
        """Rows, selected rows, right labels, right and selected labels, per feature."""
        chosen, right = self.weight > 0, (self.logits > 0) == (self.signs > 0)
        parts = (np.ones(chosen.size), chosen, right, chosen & right)
        total, selected, correct, both = (float(self.shares @ part) for part in parts)
        return total, selected, correct, both

    def label_mass(self) -> tuple[float, float, float]:
        """Weight of the selected rows, and how much of it the labels give to either class."""
        share = self.shares * self.weight
        negative, positive = self.loss.classes
        up = float(share @ np.abs(self.target - negative)) / (positive - negative)
        down = float(share @ np.abs(self.target - positive)) / (positive - negative)
        return float(share.sum()), down, up

    def loss_sums(self) -> tuple[float, float]:
        """Selected rows per feature, and the sum of their losses."""
        share = self.shares * (self.weight > 0)
        return float(share.sum()), float(share @ self.loss.value(self.target, self.answer.u))


class Returning(GroupRows):
    """Rows that several steps use, with everything they have seen."""

    def __init__(self, group: RowGroup, loss: Loss, path: Path, draw: Draw):
        first, last = group.steps[0], group.steps[-1]
        before = [k for k in path.live if k < first]
        bank = draw(2 + len(before) + last - first)
        super().__init__(group, loss, bank)
        self._root = np.sqrt(group.delta)
        noise = turned(bank.noise, path.model(first - 1) if first > 0 else path.first)
        self._noise = np.concatenate([noise, -noise])
        self._used = 1 + len(before)
        self.columns = np.zeros((self.signs.size, 5 + 2 * (len(before) + last - first)), order="F")
        self.columns[:, 0] = 1.0
        self.columns[:, 1] = self.signs + self._root * self._noise[:, 0]
        for place in range(len(before)):
            self.columns[:, 2 + 2 * place] = self._root * self._noise[:, 1 + place]
        if first > 0:
            self.logits = self.columns[:, : 2 + 2 * len(before)] @ field_of(path, first - 1)
            self.answer.u[:] = self.logits

    def begin(self, t: int, layout: Layout) -> None:
        """Put the fresh noise of step t into its column."""
        self.columns[:, layout.new] = self._root * self._noise[:, self._used]
        self._used += 1

    def gram(self, directions: int) -> Array:
        r"""$\alpha\Delta E[\varphi_j\varphi_k]$ of these rows."""
        past = self.columns[:, Layout.of(directions).past]
        return np.asarray(past.T @ (past * (self.shares / self.group.delta)[:, None]))

    def past_average(self, weighted: Array, layout: Layout) -> Array:
        """Averages with the past reactions."""
        return np.asarray(weighted @ self.columns[:, layout.past])

    def sum(self, sums: Sums, z: Array, layout: Layout) -> None:
        """Add the averages at the unknowns z."""
        lin, coefficients = coefficients_of(z, layout)
        columns = self.columns[:, : layout.new + 1]
        kappa = float(np.exp(z[-1]))
        self.react(columns @ lin, kappa)
        rows = Active(columns, self.shares, self.group.delta)
        sums.add(rows, self.answer, coefficients, kappa)

    def conditional(self, z: Array, layout: Layout) -> tuple[Array, float]:
        """Mean of the field of the step given what the rows have seen, and the spread of its fresh
        noise.
        """
        lin, _ = coefficients_of(z, layout)
        seen = slice(0, layout.new)
        return self.columns[:, seen] @ lin[seen], float(self._root * lin[layout.new])

    def finish(self, z: Array, layout: Layout, lives: bool) -> None:
        """Take the solution of the step: logits, reaction and noise along the new direction."""
        lin, coefficients = coefficients_of(z, layout)
        columns, kappa, delta = self.columns, float(np.exp(z[-1])), self.group.delta
        seen = columns[:, : layout.new + 1]
        self.react(seen @ lin, kappa)
        self.logits = self.answer.u.copy()
        if not lives:
            return
        slope = np.sqrt(z[layout.new]) / kappa
        columns[:, layout.new + 1] = (delta * self.answer.f - seen @ coefficients / kappa) / slope

    def cross(self, layout: Layout) -> Array:
        r"""$\alpha\Delta E[\varphi_t\varphi_k]$ with the earlier directions, then with itself."""
        new = self.columns[:, layout.new + 1] * (self.shares / self.group.delta)
        places = np.append(layout.past, layout.new + 1)
        return np.asarray(new @ self.columns[:, places])

    def settle(self, layout: Layout, overlap: Array, norm: float) -> None:
        """Make the new reaction orthogonal to the earlier ones, and enter it."""
        new = layout.new
        reaction = (self.columns[:, new + 1] - self.columns[:, layout.past] @ overlap) / norm
        self.columns[:, new] -= reaction
        self.columns[:, new + 1] = reaction


class Once(GroupRows):
    """Rows that one step alone uses: two Gaussian numbers, exact in the others."""

    def __init__(self, group: RowGroup, loss: Loss, path: Path, draw: Draw):
        bank = draw(2)
        super().__init__(group, loss, bank)
        self._noise = np.concatenate([bank.noise, -bank.noise])
        self._root = np.sqrt(group.delta)
        t = group.steps[0]
        self._old = np.append(path.model(t - 1), 0.0)
        self._norm = float(np.linalg.norm(self._old))
        self.logits = (
            path.bias[t - 1]
            + self.signs * path.m[t - 1]
            + self._root * self._norm * self._noise[:, 0]
        )
        self.answer.u[:] = self.logits

    def begin(self, t: int, layout: Layout) -> None:
        """Nothing: the noise of these rows has two columns, made for every model."""

    def sum(self, sums: Sums, z: Array, layout: Layout) -> None:
        """Add the averages at the unknowns z; what is across both directions is averaged
        exactly.
        """
        lin, coefficients = coefficients_of(z, layout)
        places, along, across, first, second = self._plane(lin, layout)
        kappa, delta = float(np.exp(z[-1])), self.group.delta
        noise = self._root * self._noise
        self.react(lin[0] + self.signs * lin[1] + noise @ np.array([first, second]), kappa)
        columns = np.zeros((self.signs.size, layout.new + 1), order="F")
        columns[:, 0] = 1.0
        columns[:, places] = np.outer(noise[:, 0], along) + np.outer(noise[:, 1], across)
        columns[:, 1] += self.signs
        sums.add(Active(columns, self.shares, delta), self.answer, coefficients, kappa)
        others = np.eye(places.size) - np.outer(along, along) - np.outer(across, across)
        tilt = float((self.shares * self.answer.f) @ noise[:, 1]) / second
        sums.curved[np.ix_(places, places)] += tilt * others

    def _plane(self, lin: Array, layout: Layout) -> tuple[Places, Array, Array, float, float]:
        """The model in the plane of its own and the labelling direction: places, unit vectors,
        coordinates.
        """
        places = np.concatenate([[1], layout.along, [layout.new]])
        model, along = lin[places], self._old / self._norm
        first = float(model @ along)
        across = model - first * along
        second = float(np.linalg.norm(across))
        return places, along, across / second, first, second

    def conditional(self, z: Array, layout: Layout) -> tuple[Array, float]:
        """Mean of the field given class and previous logit, and the spread of what is left."""
        lin, _ = coefficients_of(z, layout)
        *_, first, second = self._plane(lin, layout)
        mean = lin[0] + self.signs * lin[1] + first * self._root * self._noise[:, 0]
        return mean, float(self._root * second)

    def finish(self, z: Array, layout: Layout, lives: bool) -> None:
        """The answer of the step is the last; nothing else is kept."""

        slope = np.sqrt(z[layout.new]) * float(np.exp(-z[-1]))
        self._square = self.group.delta * float(self.shares @ self.answer.f**2) / slope**2
        self._lives = lives

    def cross(self, layout: Layout) -> Array:
        """No slopes in earlier steps."""
        return np.append(np.zeros(layout.past.size), self._square)

    def settle(self, layout: Layout, overlap: Array, norm: float) -> None:
        """Take the norm of the new direction."""
        self._square /= norm**2

    def gram(self, directions: int) -> Array:
        r"""$\alpha\Delta E[\varphi_j\varphi_k]$ of these rows, whose slopes are those of the last
        step alone.
        """
        result = np.zeros((directions, directions))
        if self._lives:
            result[-1, -1] = self._square
        return result


def coefficients_of(z: Array, layout: Layout) -> tuple[Array, Array]:
    """Coefficients of the columns in the field, and those of the past slopes alone."""
    lin = z[:-1].copy()
    lin[layout.new] = np.sqrt(z[layout.new])
    coefficients = np.zeros(lin.size)
    coefficients[layout.past] = z[layout.past]
    return lin, coefficients


def field_of(path: Path, t: int) -> Array:
    """Coefficients of the columns of a row in its logit under the model of step t, before it is
    used.
    """
    field = np.zeros(2 + 2 * len(path.live))
    field[0], field[1] = path.bias[t], path.m[t]
    field[2::2] = path.loadings[t, path.live]
    return field
