r"""One seed of self-training without matrices and without vectors of N entries.

From one step to the next only $m$, $v = q - m^2$ and $B$ pass: the next batch is fresh, so all it
can know of the weights is their coordinates along $e_1 = v/\sqrt N$ and $e_2$. A batch needs two
columns to be labelled, the fit (`frame/fit.py`) reveals as many more as it asks for. Weights, if a
histogram is wanted, are drawn afterwards with exactly the law they have given the coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...errors import ConvergenceError
from ...labelers import SoftLabels
from ...losses import Logistic, Squared
from ..frame.fit import FULL, SETTLED, FitStart, Law, fit_frame
from ..frame.passes import (
    LOGISTIC,
    SQUARED,
    BatchRows,
    Columns,
    Filled,
    curvatures,
    residuals,
    soft_targets,
    total_loss,
)
from ..frame.probe import probe_frame
from ..plan import RunPlan, StepPlan
from ..pseudo_labels import (
    check_selection,
    label_quality,
    majority_positive,
    one_class,
    targets_of,
    vanished,
)
from ..random.normals import fill_normals, fill_signs
from ..random.streams import COLUMNS, LENGTHS, LOGITS, PROBES, TEST, WEIGHTS, generator, stream
from ..seed_record import ASKED_NOTHING, Mask, SeedOptions, SeedRecord, sample_error

SIGNS = 2**31
"""The stream of the classes; streams 0, 1, ... are the columns."""

MOST = 2000
"""Directions that a fit may take."""

SINGLE = 32
"""Columns in single precision; a fit that needs more starts again in double precision."""

CHUNK = 1 << 16


def supports(plan: RunPlan) -> bool:
    """Whether this engine knows the loss and the variant."""
    known = all(type(step.loss) in (Logistic, Squared) for step in plan.steps)
    return known and not plan.returns


def run_steps(
    plan: RunPlan, record: SeedRecord, options: SeedOptions = ASKED_NOTHING, room: int = SINGLE
) -> bool:
    """Run all steps of one seed and enter them into its record; False if `stopped` asked for it on
    the way.
    """
    seed = record.seed
    columns = _Room(max(step.rows for step in plan.steps), room)
    histogram = _Weights(plan.features) if options.keep_weights else None
    state = np.zeros(2)
    bias = 0.0
    for step in plan.steps:
        if options.stopped():
            return False
        loss = LOGISTIC if type(step.loss) is Logistic else SQUARED
        batch = _RevealedRows(plan, step, seed, loss, columns, state, bias)
        train_bias = step.t == 0 or not plan.recipe.fix_bias
        faded = step.t > 0 and vanished(float(np.linalg.norm(state)), bias, train_bias)
        if not faded:
            check_selection(step, batch.selected, float(state @ state), bias)
        if faded or (train_bias and one_class(batch.targets, step.loss)):
            record.collapse(step.t, majority_positive(batch.targets, step.loss, bias))
            break
        point, bias, error = batch.fit(state, bias, train_bias, options.tolerance)
        across = float(point[1:] @ point[1:])
        m, before, state = float(point[0]), state, np.array([point[0], np.sqrt(across)])
        record.put(step.t, m=m, v=across, bias=bias, directions=point.size, fit_error=error)
        record.put(step.t, **batch.quality)
        if step.t:
            record.put(step.t, overlap=float(before @ point[:2]))
        mean = total_loss(loss, batch.logits, batch.targets) / batch.targets.size
        random = generator(seed, step.t, TEST)
        wrong = sample_error(m, m**2 + across, bias, plan.test, step.rows, random)
        record.put(step.t, train_loss=mean, test_error=wrong)
        if options.keep_logits:
            random = generator(seed, step.t, LOGITS)
            record.logits.append(batch.all_logits(point, bias, random))
            record.selected.append(batch.selected)
            record.classes.append(batch.positive)
        if histogram is not None:
            random = generator(seed, step.t, WEIGHTS)
            record.weights.append(histogram.draw(point, random))
        if options.probes:
            random = generator(seed, step.t, PROBES)
            chi = np.mean([batch.probe(random) for _ in range(options.probes)])
            record.put(step.t, chi=float(chi))
    return True


class _Room:
    """Room for the columns of the frame and of the revealed residuals, used again by every step."""

    def __init__(self, rows: int, room: int):
        self.x = np.empty((room, rows), np.float32)
        self.u = np.empty((room, rows), np.float32)

    @property
    def usable(self) -> int:
        """How many columns a fit may fill: few in single precision, whose rounding many would
        magnify.
        """
        return min(len(self.x), SINGLE) if self.x.dtype == np.float32 else len(self.x)

    def grow(self, filled: int, revealed: int, rows: int, fitting: bool) -> None:
        """Half as much room again, in double precision if a fit needs it; what is filled is
        kept.
        """
        room = len(self.x) + len(self.x) // 2 + 2
        precise = self.x.dtype == np.float64 or (fitting and self.usable == SINGLE)
        self.x = _grown(self.x, filled, rows, room, precise)
        self.u = _grown(self.u, revealed, rows, room, precise)


def _grown(columns: NDArray[Any], kept: int, rows: int, room: int, precise: bool) -> NDArray[Any]:
    larger = np.empty((room, columns.shape[1]), np.float64 if precise else np.float32)
    larger[:kept, :rows] = columns[:kept, :rows]
    return larger


class _RevealedRows:
    """The rows of one step: drawn, labelled, selected; then fitted and probed."""

    def __init__(
        self,
        plan: RunPlan,
        step: StepPlan,
        seed: int,
        loss: int,
        columns: _Room,
        state: Array,
        bias: float,
    ):
        self.plan, self.step, self.loss, self.columns = plan, step, loss, columns
        self.key = stream(seed, step.t, COLUMNS).generate_state(1, np.uint64)[0]
        self.lengths_seed = stream(seed, step.t, LENGTHS)
        self.frame = 1 if step.t == 0 else 2
        self.revealed = 0
        signs = np.empty(step.rows, np.float32)
        fill_signs(self.key, SIGNS, step.rho, signs)
        x = columns.x
        for j in range(self.frame):
            column = x[j, : step.rows]
            fill_normals(self.key, j, 0, column)
            column *= np.float32(np.sqrt(step.delta))
        x[0, : step.rows] += signs
        self.positive: Mask = signs > 0
        self.selected: Mask = np.ones(step.rows, dtype=bool)
        self.quality: dict[str, float] = {}
        self.rejected = np.empty((2, 0))
        if step.t == 0:
            negative, positive = step.loss.classes
            self.targets = np.where(self.positive, positive, negative)
        else:
            self.targets = self._label(state, bias)
        count = self.targets.size
        self.logits, self._base, self._change = np.empty(count), np.empty(count), np.empty(count)

    def _label(self, state: Array, bias: float) -> Array:
        """Targets of the selected rows; the columns are packed to these."""
        step, x = self.step, self.columns.x
        logits = np.empty(step.rows)
        for here in _chunks(step.rows):
            logits[here] = state[0] * x[0, here].astype(float) + state[1] * x[1, here] + bias
        if step.threshold > 0 or not logits.all():
            self.selected = np.abs(logits) > step.threshold * float(np.hypot(state[0], state[1]))
        self.quality = label_quality(logits, self.selected, self.positive)
        if not self.selected.all():
            self.rejected = x[:2, : step.rows][:, ~self.selected].astype(float)
            logits = logits[self.selected]
            x[:2, : logits.size] = x[:2, : step.rows][:, self.selected]
        labeler = self.plan.recipe.label_function
        if type(labeler) is SoftLabels and np.isfinite(step.sharpness):
            soft_targets(self.loss, step.sharpness, logits)
        else:
            for here in _chunks(logits.size):
                logits[here] = targets_of(labeler, logits[here], step, step.loss)
        return logits

    def fit(
        self, state: Array, bias: float, train_bias: bool, tolerance: float
    ) -> tuple[Array, float, float]:
        """Coordinates of the minimiser in the frame, its bias, and the relative error of both;
        weights smaller than what rounding leaves of them are zero, and their error is 1.
        """
        step, start = self.step, self.frame
        while True:
            columns = self.columns
            room = columns.usable
            point = np.zeros(room)
            if step.t:
                point[:2] = state
            ended, frame, revealed, found, error, blur = fit_frame(
                self.loss,
                Columns(columns.x[:room], columns.u[:room]),
                start,
                BatchRows(self.logits, self.targets, self._base, self._change),
                FitStart(point, bias, train_bias),
                self._law(),
                tolerance,
            )
            if ended == SETTLED:
                self.frame, self.revealed = frame, revealed
                norm = float(np.linalg.norm(point))
                if norm <= blur:
                    return np.zeros(frame), found, 1.0
                return point[:frame].copy(), found, max(error, blur / norm)
            if ended != FULL:
                with np.errstate(over="ignore"):  # weights that run away
                    norm = float(np.linalg.norm(point[:frame]))
                reason = "the fit did not settle"
                if step.ridge == 0:
                    reason += ": without ridge the minimum may not exist"
                raise ConvergenceError(step.t, reason, {"norm": norm, "bias": found}, error)
            if room > MOST:
                raise ConvergenceError(
                    step.t,
                    f"the fit needs more than {MOST} directions: the ridge is too small",
                    {"bias": found},
                    error,
                )
            columns.grow(start, 0, self.targets.size, fitting=True)

    def probe(self, random: np.random.Generator) -> float:
        r"""One estimate of $\chi$: a random probe through the inverse Hessian at the minimiser."""
        features, count = self.plan.features, self.targets.size
        coordinates = np.append(random.standard_normal(self.frame), 0.0)
        outside = features - self.frame
        coordinates[-1] = np.sqrt(random.chisquare(outside)) if outside > 0 else 0.0
        coordinates *= np.sqrt(features) / np.linalg.norm(coordinates)
        slope, curvature = np.empty(count), np.empty(count)
        residuals(self.loss, self.logits, self.targets, slope)
        curvatures(self.loss, slope, self.targets, curvature)
        while True:
            ended, form = probe_frame(
                Columns(self.columns.x, self.columns.u),
                Filled(self.frame, self.revealed),
                BatchRows(slope, curvature, self._base, self._change),
                coordinates,
                self._law(),
                1e-4,
            )
            if ended == SETTLED:
                return float(form)
            self.columns.grow(self.frame, self.revealed, count, fitting=False)

    def all_logits(self, point: Array, bias: float, random: np.random.Generator) -> Array:
        """Logits of all rows; those of rejected rows, which nothing has asked, are drawn now."""
        if self.selected.all():
            return self.logits.copy()
        logits = np.empty(self.step.rows)
        logits[self.selected] = self.logits
        spread = np.sqrt(self.step.delta * float(point[2:] @ point[2:]))
        unseen = random.standard_normal(self.rejected.shape[1])
        logits[~self.selected] = point[:2] @ self.rejected + spread * unseen + bias
        return logits

    def _law(self) -> Law:
        """What the rest of the batch is drawn from; the lengths are the same for any room."""
        free = self.plan.features - np.arange(len(self.columns.x) + 1)
        random = np.random.Generator(np.random.Philox(self.lengths_seed))
        lengths = np.sqrt(np.where(free > 0, random.chisquare(np.maximum(free, 1)), 0.0))
        return Law(self.step.ridge, float(np.sqrt(self.step.delta)), lengths, self.key)


class _Weights:
    """Weight vectors with the law they have given their coordinates in the frames of the steps."""

    def __init__(self, features: int):
        self.center = np.full(features, features**-0.5)
        self.across = np.zeros(features)

    def draw(self, point: Array, random: np.random.Generator) -> Array:
        r"""$w_t = a v + b w_{t-1} + s \hat g$ with $\hat g$ Gaussian, off both, normalised."""
        fresh = random.standard_normal(self.center.size)
        for known in (self.center, self.across):
            fresh -= (known @ fresh) * known
        fresh /= max(float(np.linalg.norm(fresh)), 1e-300)
        seen = 2 if self.across.any() else 1
        rest = float(np.linalg.norm(point[seen:]))
        off = rest * fresh + (point[1] * self.across if seen == 2 else 0.0)
        self.across = off / max(float(np.linalg.norm(off)), 1e-300)
        return np.asarray((point[0] * self.center + off) * np.sqrt(self.center.size))


def _chunks(rows: int) -> list[slice]:
    return [slice(first, min(first + CHUNK, rows)) for first in range(0, rows, CHUNK)]
