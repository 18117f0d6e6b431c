r"""The engine for any loss and any labeler, in plain numpy: the same equations, averages by
adaptive panels.

What `averages` gives as a function of the previous noise $g_1$ is integrated by 16-point panels
split at thresholds and jumps of the label and split until two parts agree with the whole. Step 0 is
in `supervised`, what labels do in `targets`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ....arrays import Array
from ....errors import ConvergenceError
from ....labelers import Labeler
from ....losses import Loss
from ....problem import Problem
from ....recipe import Recipe
from ...gradients.step_derivatives import FIELDS, LabelMoves, shifts
from ...quadrature.rules import PANEL_W, PANEL_X
from ...step.averages import COUNT, blank, named, position
from ...step.ending import Ending
from ...step.equations import (
    BIAS,
    ETA,
    LOG_CHI,
    LOG_R,
    A,
    Groups,
    assemble,
    blank_system,
    frame,
)
from ...step.given import Given
from ...step.prediction import predict
from ...step.solver import solve_stage
from ...step.stage import Evaluation, StageSolution, finite
from ...step.table import PREDICTED, START_NAMES, Record
from ...tolerances import COLLAPSED_MASS, EMPTY_SHARE
from ..engine import StepByStep, solve_first
from .averages import gather, gather_labels, gather_sharpness
from .large_ridge import at_large_ridge
from .noise import INNER, LABEL, MOST_AT_ONCE, SPLIT, Effort, Fields, noise_averages
from .supervised import GenericSupervised
from .targets import Targets

SHARP, MASS, COLUMNS = slice(COUNT, COUNT + 5), COUNT + 5, COUNT + 6
"""Columns of the integrals over a panel after the averages: derivatives in the sharpness, selected
mass.
"""

CONVERGED = (*(position(name) for name in ("f", "ff", "k", "gf", "sf")), MASS)
"""Integrals that enter the equations, and that the panels are refined for; the others only steer
Newton.
"""


class GenericStage:
    """One self-training step for any loss and labeler."""

    def __init__(
        self,
        loss: Loss,
        labeler: Labeler,
        step: int,
        old: Array,
        batch: Array,
        ridge: float,
        threshold: float,
        sharpness: float,
        fixed_bias: bool,
        guess: Array | None = None,
    ):
        self.loss, self.step, self.targets = loss, step, Targets(labeler, loss, sharpness)
        self.old, self.batch, self.ridge = old, batch, ridge
        self.threshold, self.sharpness, self.fixed_bias = threshold, sharpness, fixed_bias
        omega, mu, nu2, bias = (float(value) for value in old)
        alpha, rho, delta = (float(value) for value in batch)
        self.given = Given(
            omega, mu, nu2, bias, alpha, rho, delta, ridge, threshold, sharpness, fixed_bias
        )
        self.frame = frame(self.given, 0.0)
        self.guess = guess
        self.effort = Effort(step)

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        integrals, points = self._integrals(z, exponent)
        return self._at(z, ridge, integrals, points)

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z and in what the step is given."""
        integrals, points = self._integrals(z, exponent, with_labels=True)
        at = self._at(z, self.ridge, integrals, points)
        if at is None:
            raise ConvergenceError(self.step, "its averages are not finite", {}, math.nan)
        share, move = integrals[MASS], np.empty((5, FIELDS))
        label = LabelMoves(1.0, integrals[SHARP], self._edges(z, exponent, share))
        shifts(z, self.given, self.batch[0] * share, named(integrals), label, move)
        return at.jacobian, move

    def _at(self, z: Array, ridge: float, integrals: Array, points: int) -> Evaluation | None:
        alpha, _, delta = self.batch
        share, averages, system = integrals[MASS], blank(), blank_system()
        averages[0] = named(integrals)
        groups = Groups(np.array([alpha * share]), np.array([delta]), averages)
        assemble(z, groups, self.frame._replace(ridge=ridge), system)
        strength = math.exp(z[LOG_CHI]) * delta
        envelope = alpha * share * (averages[0].loss + 0.5 * strength * averages[0].ff)
        return finite(Evaluation(system.residual, system.jacobian, points, float(envelope)))

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage."""
        return solve_stage(self, exponent, tolerance)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a selected training point at the unknowns z."""
        return float(named(self._integrals(z, exponent)[0]).loss)

    def starts(self) -> Iterator[tuple[str, Array]]:
        if self.guess is not None:
            yield START_NAMES[PREDICTED], self.guess
        if self.ridge < 1.0:
            z = self.explicit(self.ridge)
            z[A] = self.given.omega * (1 - 0.1 * self.ridge)
            z[ETA] = 0.03 * self.ridge * self.given.omega
            z[LOG_R] = math.log(0.1 * min(self.ridge, 1.0) * self.given.omega)
            if not self.fixed_bias:
                z[BIAS] = self.old[3]
            yield "no update", z
        yield "explicit", self.explicit(self.ridge)

    def explicit(self, ridge: float) -> Array:
        _, _, delta = self.batch
        s, g, w, target, share = self._points(self._cuts(24.0))
        weight = self.batch[0] * share * w
        bias = float(self.old[3]) if self.fixed_bias else None
        z = at_large_ridge(self.loss, s, g, weight, target, np.full(s.size, delta), ridge, bias)
        slope = self.loss.slope(target, np.full(s.size, z[BIAS]))
        pull = self.old[1] * (weight @ (s * slope)) + math.sqrt(delta) * (weight @ (g * slope))
        z[A] = -math.exp(z[LOG_CHI]) * pull
        return z

    def label_mass(self) -> float:
        """Distance of the mean selected target from the nearer class, as a share; NaN if none is
        selected.
        """
        _, _, w, target, share = self._points(self._cuts(24.0))
        low, high = self.loss.classes
        if share < EMPTY_SHARE:
            return math.nan
        if target.min() < low or target.max() > high:
            return 0.5
        return float(min(w @ (target - low), w @ (high - target)) / (high - low))

    def _cuts(self, exponent: float) -> list[tuple[float, Array]]:
        """Ends of panels in g1 for the two classes: thresholds, jumps, and a coarse grid."""
        omega, mu, _, old_bias = self.old
        spread = math.sqrt(self.batch[2]) * omega
        jumps = [0.0, *self.targets.jumps]
        wide = 0.0 if math.isinf(self.sharpness) else self.sharpness * spread
        cuts = []
        for s in (1.0, -1.0):
            centre = s * mu * omega + old_bias
            inner = [(jump - centre) / spread for jump in jumps]
            edges = [(side * self.threshold * omega - centre) / spread for side in (-1.0, 1.0)]
            deep = max(0.0, min(-edges[0], edges[1])) if self.threshold > 0 else 0.0
            reach = math.sqrt(deep**2 + 2 * exponent) + min(wide, abs(centre) / spread)
            low, high = -reach, reach
            points = np.array([low, high, *np.linspace(low, high, 9)[1:-1], *inner, *edges])
            cuts.append((s, np.unique(np.clip(points, low, high))))
        return cuts

    def _points(self, cuts: list[tuple[float, Array]]) -> tuple[Array, Array, Array, Array, float]:
        """Selected points: class, g1, weight (sum one), target; and the selected fraction."""
        omega, mu, _, old_bias = self.old
        _, rho, delta = self.batch
        rows = []
        for s, edges in cuts:
            half = 0.5 * np.diff(edges)[:, None]
            g = (edges[:-1, None] + half * (1 + PANEL_X)).ravel()
            w = (half * PANEL_W).ravel() * (rho if s > 0 else 1 - rho)
            previous = s * mu * omega + old_bias + math.sqrt(delta) * omega * g
            keep = np.abs(previous) > self.threshold * omega
            rows.append(np.array([np.full(g.size, s), g, w, previous])[:, keep])
        s, g, w, previous = np.concatenate(rows, axis=1)
        if s.size == 0:
            return s, g, w, previous, 0.0
        w = w * np.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)
        share = float(w.sum())
        if share == 0.0:
            return s, g, w, previous, 0.0
        return s, g, w / share, self.targets.at(previous), share

    def _integrals(self, z: Array, exponent: float, with_labels: bool = False) -> tuple[Array, int]:
        """The averages over selected points at z, their share (`MASS`), and the points used.

        Panels are bisected until they agree with their halves.
        """
        tolerance = math.exp(-exponent)
        watched = [*CONVERGED, *(map(position, ("y", "fy", "ky")) if with_labels else ())]
        done, points = np.zeros(COLUMNS), 0
        pending = [
            (s, lo, hi) for s, edges in self._cuts(exponent) for lo, hi in itertools.pairwise(edges)
        ]
        whole, sizes = self._panels(z, pending, exponent, with_labels)
        scale = np.abs(whole).sum(axis=0) + 1e-300
        begun = self.effort.panels
        for _ in range(40):
            halves = [
                piece
                for s, lo, hi in pending
                for piece in ((s, lo, lo + SPLIT * (hi - lo)), (s, lo + SPLIT * (hi - lo), hi))
            ]
            split, _ = self._panels(z, halves, exponent, with_labels, sizes)
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
            pending = [piece for piece, keep in zip(halves, bad, strict=True) if keep]
            whole = split[bad]
        done[:MASS] /= done[MASS]
        return done, points

    def _panels(
        self,
        z: Array,
        panels: list[tuple[float, float, float]],
        exponent: float,
        with_labels: bool,
        sizes: Array | None = None,
    ) -> tuple[Array, Array]:
        """The integrals over each panel (class, from, to), zero where nothing is selected; the
        sizes of `noise_averages`.
        """
        omega, mu, _, old_bias = self.old
        _, rho, delta = self.batch
        table = np.array(panels)
        half = 0.5 * (table[:, 2] - table[:, 1])[:, None]
        g = (table[:, 1][:, None] + half * (1 + PANEL_X)).ravel()
        s = np.repeat(table[:, 0], 16)
        w = (half * PANEL_W).ravel() * np.where(s > 0, rho, 1 - rho)
        w = w * np.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)
        previous = s * mu * omega + old_bias + math.sqrt(delta) * omega * g
        w = np.where(np.abs(previous) > self.threshold * omega, w, 0.0)
        live = w > 0
        inner = np.zeros((INNER + LABEL * with_labels, g.size))
        if live.any():
            fields = self._fields(z, s[live], g[live], self.targets.at(previous[live]), w[live])
            inner[:, live], sizes = noise_averages(
                self.loss, fields, exponent, with_labels, sizes, effort=self.effort
            )
        by_logit, by_sharpness = np.zeros(g.size), np.zeros(g.size)
        if with_labels:
            by_logit[live], by_sharpness[live] = self.targets.slopes(previous[live])
        out = np.zeros((len(panels), COLUMNS))
        for i in range(len(panels)):
            part = slice(16 * i, 16 * i + 16)
            points = s[part], g[part]
            out[i, :COUNT] = gather(*points, w[part], inner[:, part])
            out[i, MASS] = w[part].sum()
            if with_labels:
                gather_labels(*points, w[part] * by_logit[part], inner[:, part], out[i])
                weight = w[part] * by_sharpness[part]
                out[i, SHARP] = gather_sharpness(*points, weight, inner[:, part])
        return out, np.ones(5) if sizes is None else sizes

    def _fields(self, z: Array, s: Array, g: Array, target: Array, weight: Array) -> Fields:
        """The fields at points (s, g1) with given targets."""
        _, mu, nu2, _ = self.old
        delta = float(self.batch[2])
        root = math.sqrt(delta)
        centre = s * (mu * z[A] + nu2 * z[ETA]) + z[BIAS] + root * z[A] * g
        noise = root * math.hypot(math.sqrt(nu2) * z[ETA], math.exp(z[LOG_R]))
        strength = math.exp(z[LOG_CHI]) * delta
        return Fields(target, centre, weight, noise, strength)

    def _edges(self, z: Array, exponent: float, share: float) -> Array:
        """Where the integrand jumps: at both thresholds, and where the label jumps among selected
        points.
        """
        omega, mu, _, old_bias = (float(value) for value in self.old)
        _, rho, delta = (float(value) for value in self.batch)
        limit = self.threshold * omega
        places = [(side * limit, side, 0.0) for side in (1.0, -1.0)]
        for jump, moves in zip(self.targets.jumps, self.targets.jump_slopes(), strict=True):
            if abs(jump) > limit:
                places.append((jump, 0.0, moves))
        rows = []
        for (logit, side, moves), s in itertools.product(places, (1.0, -1.0)):
            g = (logit - s * mu * omega - old_bias) / (math.sqrt(delta) * omega)
            near = 1e-9 * (abs(logit) + 1e-9 * omega)
            beside = np.array([logit - near, logit + near])
            fields = self._fields(
                z, np.full(2, s), np.full(2, g), self.targets.at(beside), np.ones(2)
            )
            f, ff, k = noise_averages(self.loss, fields, exponent, effort=self.effort)[0][:3]
            kept = np.array([side <= 0, side >= 0])  # which side of the edge is selected
            falls = [float((row * kept) @ [1.0, -1.0]) for row in (f, ff, k)]
            weight = (rho if s > 0 else 1 - rho) * math.exp(-0.5 * g * g) / math.sqrt(2 * math.pi)
            rows.append([s, g, weight / share, *falls, side * self.threshold, side * omega, moves])
        return np.array(rows)


class GenericEngine(StepByStep):
    """Solves one step after the other, in plain numpy."""

    def supervised(self, loss: Loss, groups: Array, ridge: float) -> GenericSupervised:
        r"""The supervised fit to groups of points; rows $\alpha, \rho, \Delta$."""
        return GenericSupervised(loss, groups, ridge)

    def self_training(self, problem: Problem, recipe: Recipe, t: int, old: Array) -> GenericStage:
        """Step t >= 1 from the state `old` of the step before."""
        batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
        i = t - 1
        return GenericStage(
            problem.loss_at(t),
            recipe.label_function,
            t,
            old,
            np.array([batches.alpha[i], batches.rho[i], batches.delta[i]]),
            float(values.lambda_u[i]),
            float(values.threshold[i]),
            float(values.sharpness[i]),
            recipe.fix_bias,
        )

    def run(self, record: Record, begin: int = 0) -> None:
        """Fill the record, from step `begin` on."""
        if begin == 0:
            solve_first(self, record)
        problem, recipe = record.problem, record.recipe
        _, near, reach = record.near_solution()
        for t in range(1, problem.steps + 1):
            if record.ends_at(t):
                return
            stage = self.self_training(problem, recipe, t, record.states[t - 1])
            mass = stage.label_mass()
            if math.isnan(mass):
                record.end(t, Ending.EMPTY)
            if not recipe.fix_bias and mass < COLLAPSED_MASS:
                record.end(t, Ending.COLLAPSED)
                return
            if t >= 4 or t <= reach:
                stage.guess = near[t].copy()
                if t >= 2:
                    old = record.states[t - 1]
                    predict(t, t - 1, record.unknowns, near, old, stage.guess)
            record.store(t, stage.solution(record.exponent, record.confirmable), stage.frame)
