"""The exact engine, for two classes and samples that are used once: one step after the other, with
averages by quadrature.

`step.march` solves the run in compiled code if it supports the losses and covariances. Other steps,
and those that do not converge there, are solved by `step.robust`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput, StageError
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.progress import Progress, ProgressOption
from .averages.batch import Labelling
from .ending import Ending
from .fading import DEGREES, Fading, is_homogeneous, shift, unscaled
from .geometry.modes import BIAS, FIRST, HAT_M, Noise
from .geometry.space import threads_of
from .stats import START_NAMES, STATE, SolverStats
from .step.equations import HISTORY, Demands
from .step.march import (
    ACCURACY,
    CHI,
    EVALUATIONS,
    NODES,
    OLD_BIAS,
    OVERLAP,
    START,
    Table,
    before_step,
    march,
)
from .step.prediction import predict, steps_alike
from .step.robust import Solution, StepEquations, solve_step
from .step_inputs import StepInputs
from .tolerances import (
    COLLAPSED_MASS,
    LEVELS,
    REFINED,
    confirmable,
    exponent_of,
    last_step_of,
)
from .trajectory import Trajectory

MARCHED = 200_000
"""Work of compiled code between two reports of progress: steps times (modes + 20)."""


def solve_exact(
    problem: Problem,
    recipe: Recipe,
    tolerance: float,
    on_failure: str = "raise",
    warm_start: Trajectory | None = None,
    progress: ProgressOption = None,
) -> Trajectory:
    """Solve a problem in which every sample is used once; arguments as for `solve`."""
    if recipe.lambda_l == 0 and math.isinf(problem.sample_clusters[0].separation):
        accepted = "must be > 0: the means differ in a direction in which the noise has no variance"
        raise InvalidInput("lambda_l", recipe.lambda_l, accepted)
    run = Run(problem, recipe, tolerance, warm_start)
    with threads_of(run.space), Progress(problem.steps + 1, "steps", progress, often=True) as bar:
        try:
            run.solve(bar)
        except StageError as error:
            if on_failure == "raise":
                raise
            run.failure = error
    return run.trajectory()


class Run:
    """A run while it is being solved.

    Attributes:
        table: results of every step; step t, and the weights it starts from, are in units of
            $2^{-e_t}$ with `exponents` $e_t$ (`theory.fading`).
        near: unknowns of a similar run (`warm`) and their gamma, one row per step; NaN if unknown.
        since: the first step that has the units of the current one: predictions use no earlier one.
        done: number of steps solved so far.
    """

    def __init__(
        self, problem: Problem, recipe: Recipe, tolerance: float, warm: Trajectory | None = None
    ):
        self.problem, self.recipe, self.tolerance = problem, recipe, tolerance
        self.exponent, self.demanded = exponent_of(tolerance), confirmable(tolerance)
        self.enough = last_step_of(self.demanded)
        self.inputs = StepInputs(problem, recipe)
        self.space = self.inputs.space
        size, blank = problem.steps + 1, self.space.no_weights()
        counts = np.zeros((size, 3), dtype=np.int64)
        counts[:, START] = -1
        self.table = Table(
            np.full((size, FIRST + 3 * self.space.groups + 1), np.nan),
            np.full((size + 1, *blank.mean.shape), np.nan),
            np.full((size + 1, *blank.variance.shape), np.nan),
            np.full((size, 4), np.nan),
            counts,
        )
        self.table.means[0], self.table.spreads[0] = blank
        self.exponents = np.zeros(size, dtype=np.int64)
        self.near = np.full_like(self.table.unknowns, np.nan)
        if warm is not None and warm.unknowns is not None:
            self._begin_near(warm)
        self.since, self.done = 1, 0
        self.collapsed_at: int | None = None
        self.failure: StageError | None = None

    def _begin_near(self, warm: Trajectory) -> None:
        """Set `near` from a similar run, up to the first step whose weights were rescaled."""
        good = warm.good_steps
        if warm.fading is not None:
            good = min(good, int(np.argmax(warm.fading.exponents > 0)))
        if warm.unknowns.shape[1] == self.near.shape[1] - 1:
            self.near[:good, :-1], self.near[:good, -1] = warm.unknowns[:good], warm.gammas[:good]

    def solve(self, bar: Progress) -> None:
        """Solve all steps and fill the table; a collapse ends it early, a failure raises."""
        t, exponent = 0, self.exponent
        finest = exponent + LEVELS * REFINED
        while t <= self.problem.steps:
            if self.inputs.samples is not None and not (t == self.since > 1):
                t, ending = self._march(t, exponent, self.inputs.samples)
                self.done = t
                bar.reach(t)
                if ending == Ending.SOLVED:
                    continue
                if ending == Ending.COLLAPSED:
                    self.collapsed_at = t
                    return
                if ending == Ending.EMPTY:
                    raise self._error(t, ending)
            old, bias = self._before(t)
            if old is None:
                self.collapsed_at = t
                return
            equations = self.inputs.equations(t, old, bias)
            mass = equations.label_mass() if t > 0 else 0.5
            if math.isnan(mass):
                raise self._error(t, Ending.EMPTY)
            if not self.recipe.fix_bias and mass < COLLAPSED_MASS:
                self.collapsed_at = t
                return
            guess = self._guess(t, equations.labels)
            solution = solve_step(equations, exponent, self.demanded, guess)
            exponent = min(solution.exponent, finest)  # the next step will need this rule too
            self._store(t, equations, solution, bias)
            t = self.done = t + 1
            bar.reach(t)

    def _march(self, t: int, exponent: float, samples: Noise) -> tuple[int, Ending]:
        """Solve steps from t on in compiled code; return the first step that is not solved, and how
        it ended.
        """
        piece = 1 + MARCHED // (20 + samples.mean.shape[1])
        demands = Demands(
            exponent, self.enough, self.demanded, self.recipe.fix_bias, self.since,
            bool(self.exponents[t] > 0),
        )  # fmt: skip
        done, ending = march(
            (t, min(self.problem.steps + 1, t + piece)), samples, self.inputs.schedule, self.near,
            demands, self.table, self.inputs.work,
        )  # fmt: skip
        return done, Ending(ending)

    def _before(self, t: int) -> tuple[Any, float]:
        """Return the weights and the bias that step t starts from, rescaled if they would underflow
        (`theory.fading`); None for the weights if they are negligible beside the bias. Raise if
        they overflow or underflow.
        """
        mean, spread = self.table.means[t], self.table.spreads[t]
        law: Any = self.space.law(mean, spread)
        if t == 0:
            return law, 0.0
        bias = float(self.table.numbers[t - 1, OLD_BIAS])
        logits = math.sqrt(max(self.space.projections(law, self.inputs.sets[t])[1:]))
        faded = bool(self.exponents[t] > 0)
        ending = Ending(before_step(logits, bias, self.recipe.fix_bias, faded))
        if ending == Ending.COLLAPSED:
            return None, bias
        if ending == Ending.SOLVED:
            return law, bias
        homogeneous = is_homogeneous(self.problem, self.recipe)
        power = shift(logits, int(self.exponents[t])) if homogeneous else 0
        if power == 0:
            raise self._error(t, ending)
        self.exponents[t:] += power
        self.since = t
        self.near[:] = np.nan  # the similar run has other units
        return self.space.law(mean * 2.0**power, spread * 4.0**power), bias * 2.0**power

    def _guess(self, t: int, labels: Labelling) -> Array | None:
        """Return the unknowns of step t, predicted from the steps before and from a similar run;
        None if there is neither.
        """
        unknowns, near = self.table.unknowns, self.near
        known = steps_alike(t, self.since, labels.gamma, unknowns, near)
        if known == 0 and math.isnan(near[t, -1]):
            return None
        x = np.empty(unknowns.shape[1] - 1)
        predict(t, known, unknowns, near, labels, self.inputs.work.rows[HISTORY:], x)
        return x

    def _store(self, t: int, equations: StepEquations, solution: Solution, bias: float) -> None:
        """Write the solution of step t to the table; `bias` is that of step t - 1."""
        table, x, gamma = self.table, solution.x.copy(), equations.labels.gamma
        if self.inputs.balanced[t] and bias == 0.0:
            x[BIAS] = 0.0
        law, out = equations.algebra.advance(x, equations.ridge, gamma)
        table.means[t + 1], table.spreads[t + 1] = law
        table.unknowns[t] = np.append(x, gamma)
        table.numbers[t] = gamma * bias + x[BIAS], out[1], out[0], solution.accuracy
        start = START_NAMES.index(solution.start)
        table.counts[t] = solution.evaluations, solution.nodes, start

    def _error(self, t: int, ending: Ending) -> StageError:
        """Return the exception for step t that failed with `ending`; it has the state of step
        t - 1.
        """
        threshold = None
        if ending == Ending.EMPTY:
            threshold = float(self.recipe.at_steps(self.problem.steps).threshold[t - 1])
        exponent = self.exponents[t - 1 : t]
        state = {
            name: float(unscaled(name, column[t - 1 : t], exponent)[0])
            for name, column in self._columns().items()
            if name in STATE
        }
        return ending.error(t, state, threshold=threshold)

    def _columns(self) -> dict[str, Array]:
        """Return the quantities of a `Trajectory` over the steps, in the units of each."""
        good, table, size = slice(self.done), self.table, self.problem.steps + 1
        m, v, off_best, variances = (
            np.full(shape, np.nan) for shape in (size, size, size, (size, 2))
        )
        after = slice(1, self.done + 1)
        seen = self.space.observed(table.means[after], table.spreads[after], self.inputs.test)
        m[good], v[good], off_best[good], variances[good] = seen
        gamma, groups = table.unknowns[:, -1:], self.space.groups
        hat_t, log_q, log_chi = (
            table.unknowns[:, FIRST + k * groups : FIRST + (k + 1) * groups] for k in range(3)
        )
        scales, hat_q = self.inputs.scales, np.exp(log_q)
        sums = (hat_q, np.exp(log_chi), gamma * hat_q - hat_t)
        q_hat, chi_hat, r_hat = ((scales * hat).sum(axis=1) for hat in sums)
        overlap = table.numbers[:, OVERLAP].copy()
        overlap[0] = r_hat[0] = np.nan
        values = (
            m, v, table.numbers[:, OLD_BIAS].copy(), table.numbers[:, CHI].copy(), overlap, q_hat,
            chi_hat, table.unknowns[:, HAT_M].copy(), r_hat,
        )  # fmt: skip
        named = dict(zip(STATE, values, strict=True))
        return named | {"off_best": off_best, "logit_variances": variances}

    def trajectory(self) -> Trajectory:
        """Return the finished result."""
        table, done = self.table, self.done
        for array in (table.unknowns, table.means[1:], table.spreads[1:], table.numbers):
            array[done:] = np.nan
        table.counts[done:] = 0, 0, -1
        columns, fading = self._columns(), None
        if self.exponents.any():
            scaled = {name: column for name, column in columns.items() if name in DEGREES}
            fading = Fading(self.exponents, scaled)
            columns = {name: unscaled(name, x, self.exponents) for name, x in columns.items()}
        names = ("", *START_NAMES)
        stats = SolverStats(
            self.tolerance, table.counts[:, EVALUATIONS].copy(), table.counts[:, NODES].copy(),
            table.numbers[:, ACCURACY].copy(),
            tuple(names[1 + start] for start in table.counts[:, START].tolist()),
        )  # fmt: skip
        quantities: dict[str, Any] = columns
        return Trajectory(
            self.problem, self.recipe, **quantities, stats=stats, collapsed_at=self.collapsed_at,
            failure=self.failure, fading=fading, space=self.space,
            unknowns=table.unknowns[:, :-1], gammas=table.unknowns[:, -1],
            weight_means=table.means[1:], weight_spreads=table.spreads[1:],
        )  # fmt: skip
