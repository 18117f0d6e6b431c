r"""Laws of a run with memory: weights over the steps, logits of rows that were trained on and of
new rows.

Weights are jointly Gaussian, $w_t = m_t + \sum_k \Lambda_{tk}\zeta_k$. The logit of a training row
is monotone in the noise of its last step, so given everything it has seen before its law is that of
a Gaussian number through the proximal map; the average over what it has seen is over a bank. A new
row has a Gaussian logit; the gap between the two is how far the rows have been fitted.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, roots_hermitenorm

from ...arrays import Array
from ...errors import InvalidInput
from ...rows import LABELED, RowGroup
from ..laws.logits import LogitSample
from ..laws.weights import WeightLaw, solved_step
from .bank import scrambled
from .process import Labels, Once, Path, Returning
from .sums import Layout

if TYPE_CHECKING:
    from ..trajectory import Trajectory

POINTS = 2**12
"""Rows of the bank of a law, for each class."""

_BLOCK = 256
_ROOT_2PI = math.sqrt(2 * math.pi)


class JointWeightLaw(WeightLaw):
    """The weights of all steps, jointly Gaussian; the methods are those of `WeightLaw`."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(trajectory)
        assert trajectory.memory is not None
        self._loadings = trajectory.memory.loadings

    @cached_property
    def covariance(self) -> Array:
        r"""$\Lambda\Lambda^\top$, shape (T+1, T+1)."""
        return np.asarray(self._loadings @ self._loadings.T)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Independent paths, shape (size, T+1)."""
        noise = np.random.default_rng(seed).standard_normal((size, self._loadings.shape[0]))
        good = self._trajectory.good_steps
        paths = np.full(noise.shape, np.nan)
        paths[:, :good] = (
            self._trajectory.m[:good] + noise[:, :good] @ self._loadings[:good, :good].T
        )
        return paths

    def _nodes(self, indices: list[int], size: int) -> tuple[list[Array], Array]:
        nodes, single = roots_hermitenorm(size)
        single = single / single.sum()
        steps = sorted(set(indices))
        grids = np.meshgrid(*[nodes] * len(steps), indexing="ij")
        shares = np.meshgrid(*[single] * len(steps), indexing="ij")
        noise = np.stack([grid.ravel() for grid in grids])
        part = self._loadings[steps]
        factor = np.linalg.cholesky(part @ part.T)
        found = dict(zip(steps, self._trajectory.m[steps][:, None] + factor @ noise, strict=True))
        return [found[t] for t in indices], np.prod([share.ravel() for share in shares], axis=0)


class _Seen(NamedTuple):
    """Rows before the noise of the last step: class, share, previous logit, target, weight, mean of
    the field.
    """

    signs: Array
    shares: Array
    previous: Array
    target: Array
    weight: Array
    center: Array
    spread: float


class RowLogitLaw:
    """The law of (class, previous logit, trained logit) of the rows that step t has been fitted to.

    Arguments:
        rows: None: the unlabelled rows of step t (the labelled ones at t = 0); "labeled": the
            labelled rows, if step t uses them; "new": rows that no step has seen.

    `y` = 0 or 1 restricts to a class, `selected` to rows that the threshold keeps or rejects, as in
    `LogitLaw`.

    >>> from selftrain import Problem, Recipe, solve
    >>> problem = Problem(0.5, 2.0, 0.4, 0.75**2, steps=2, loss="squared", batches="reused")
    >>> run = solve(problem, Recipe())
    >>> seen, new = run.logits(2), run.logits(2, rows="new")
    >>> bool(seen.cdf(0.0, y=1) != new.cdf(0.0, y=1))
    True
    """

    def __init__(self, trajectory: Trajectory, t: int = -1, rows: str | None = None) -> None:
        self.t = solved_step(trajectory, t)
        self.rows = rows
        problem, recipe = trajectory.problem, trajectory.recipe
        assert trajectory.memory is not None
        self._loss = problem.loss_function
        values = (trajectory.bias, trajectory.m, trajectory.chi)
        self._path = trajectory.memory.path(*values, self.t)
        self._recipe, self._steps = recipe, problem.steps
        groups = self._groups(problem.row_groups)
        self._strength = float(trajectory.chi[self.t]) * groups[0].delta
        self._parts = [self._seen(group, seed) for seed, group in enumerate(groups)]

    def __repr__(self) -> str:
        return f"RowLogitLaw(t={self.t}, rows={self.rows!r})"

    @property
    def selected_probability(self) -> float:
        """Share of the rows that the threshold keeps."""
        total = sum(float(part.shares.sum()) for part in self._parts)
        kept = sum(float(part.shares @ (part.weight > 0)) for part in self._parts)
        return kept / total

    def cdf(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """P(logit <= u), in the shape of u."""
        far = np.clip(np.asarray(u, dtype=float), -1e9, 1e9)
        return np.clip(self._law(far, y, selected, density=False), 0.0, 1.0)

    def density(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """Density of the logit at u, in the shape of u."""
        return self._law(np.asarray(u, dtype=float), y, selected, density=True)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> LogitSample:
        """Rows drawn from the bank, with fresh noise in the last step."""
        from ..quadrature.prox import proximal

        rng = np.random.default_rng(seed)
        signs, shares, previous, target, weight, center = (
            np.concatenate([getattr(part, name) for part in self._parts])
            for name in _Seen._fields[:6]
        )
        spread = np.concatenate([np.full(part.signs.size, part.spread) for part in self._parts])
        at = rng.choice(signs.size, size, p=shares / shares.sum())
        field = center[at] + spread[at] * rng.standard_normal(size)
        u = proximal(self._loss, target[at], field, self._strength * weight[at])
        return LogitSample((signs[at] > 0).astype(int), previous[at], u, weight[at] > 0)

    def _groups(self, groups: tuple[RowGroup, ...]) -> list[RowGroup]:
        """The groups of rows this law is about; new rows are like those of the step."""
        used = [group for group in groups if group.weights[self.t] > 0]
        plain = [group for group in used if not group.labeled or self.t == 0]
        if self.rows is None:
            return plain
        if self.rows == LABELED and used[0].labeled:
            return used[:1]
        if self.rows == "new":
            return plain[:1]
        accepted = 'None, "new", or "labeled" in a step that uses the labelled rows is accepted'
        raise InvalidInput("rows", self.rows, accepted)

    def _seen(self, group: RowGroup, seed: int) -> _Seen:
        """Follow the rows of a group up to the noise of step t."""
        path, t = self._path, self.t
        draw = scrambled(POINTS, np.random.SeedSequence(seed))
        if self.rows == "new":
            signs = np.array([1.0, -1.0])
            shares = np.array([group.rho, 1 - group.rho])
            none = np.zeros(2)
            center = signs * path.m[t] + path.bias[t]
            return _Seen(
                signs, shares, none + np.nan, none, none, center, math.sqrt(group.delta * path.q(t))
            )
        first = group.steps[0]
        before = Path(**{**vars(path), "live": [k for k in path.live if k < first]})
        if group.steps == (t,) and t > 0:
            once = Once(group, self._loss, before, draw)
            once.set_targets(t, self._labels(t))
            center, spread = once.conditional(*self._unknowns(t))
            return _Seen(
                once.signs, once.shares, once.logits, once.target, once.weight, center, spread
            )
        upto = group._replace(weights=(*group.weights[: t + 1],))
        rows = Returning(upto, self._loss, before, draw)
        previous = np.full(rows.signs.size, np.nan)
        for step in range(first, t + 1):
            rows.set_targets(step, self._labels(step))
            z, layout = self._unknowns(step)
            if step > first or first > 0:
                previous = rows.logits
            if step == t:
                center, spread = rows.conditional(z, layout)
                return _Seen(
                    rows.signs, rows.shares, previous, rows.target, rows.weight, center, spread
                )
            rows.begin(step, layout)
            rows.finish(z, layout, step in path.live)
            if (
                step in path.live
            ):  # the reaction along the new direction is part of the row from now on
                rows.settle(layout, np.zeros(layout.past.size), 1.0)
        raise AssertionError("the step is among those of the group")

    def _labels(self, t: int) -> Labels | None:
        if t == 0:
            return None
        values = self._recipe.at_steps(self._steps)
        edge = float(values.threshold[t - 1]) * math.sqrt(self._path.q(t - 1))
        return Labels(self._recipe.label_function, edge, float(values.sharpness[t - 1]))

    def _unknowns(self, t: int) -> tuple[Array, Layout]:
        """The unknowns of step t as `sums` orders them, from the path."""
        path = self._path
        live = [k for k in path.live if k < t]
        layout = Layout.of(len(live))
        z = np.zeros(layout.size)
        z[0], z[1], z[-1] = path.bias[t], path.m[t], math.log(path.kappa[t])
        z[layout.along] = path.loadings[t, live]
        z[layout.past] = path.kappa[t] * path.slopes[t, live]
        z[layout.new] = path.loadings[t, t] ** 2
        return z, layout

    def _law(self, u: Array, y: int | None, selected: bool | None, *, density: bool) -> Array:
        if y not in (None, 0, 1):
            raise InvalidInput("y", y, "0, 1, or None for both classes is accepted")
        points = u.ravel()
        result, total = np.zeros(points.shape), 0.0
        for part in self._parts:
            chosen: NDArray[np.bool_] = np.full(part.signs.size, True)
            if y is not None:
                chosen &= (part.signs > 0) == (y == 1)
            if selected is not None:
                chosen &= (part.weight > 0) == selected
            share = part.shares[chosen]
            total += float(share.sum())
            for begin in range(0, points.size, _BLOCK):
                here = slice(begin, begin + _BLOCK)
                result[here] += share @ self._profile(part, chosen, points[None, here], density)
        if total == 0:
            raise InvalidInput("selected", selected, f"step {self.t} has no such row")
        return (result / total).reshape(u.shape)

    def _profile(self, part: _Seen, chosen: NDArray[np.bool_], u: Array, density: bool) -> Array:
        target, center = part.target[chosen, None], part.center[chosen, None]
        strength = self._strength * part.weight[chosen, None]
        pull = np.where(strength > 0, strength * self._loss.slope(target, u), 0.0)
        z = (u + pull - center) / part.spread
        if not density:
            return np.asarray(ndtr(z))
        stretch = 1.0 + strength * self._loss.curvature(target, u)
        return np.asarray(stretch * np.exp(-0.5 * z * z) / (_ROOT_2PI * part.spread))
