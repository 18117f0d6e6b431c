r"""One seed of self-training without matrices and without vectors of N entries.

The only results of a step that the next one needs are $m$, $v = q - m^2$ and $B$: the next batch is
fresh and depends on the weights only through their coordinates along $e_1 = v/\sqrt N$ and the
orthogonal direction $e_2$. Two columns of a batch are drawn to label it; the fit
(`frame/frame_fit.py`) draws more as needed. If weights are requested, for a histogram, they are
drawn afterwards, from their exact law given the coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...labelers import SoftLabels
from ...losses import Logistic, Squared
from ...protocol import PseudoLabels
from ..frame.frame_fit import FULL, SETTLED, FitStart, Law, fit_frame
from ..frame.normals import fill_normals, fill_signs
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
from ..labels import (
    Labelled,
    Model,
    given_labels,
    label_quality,
    label_shares,
    pseudo_targets,
)
from ..random_streams import COLUMNS, LABELS, LENGTHS, LOGITS, WEIGHTS, generator, stream
from ..run_plan import RunPlan
from ..seed_record import Mask, SeedOptions
from ..seed_run import gaussian_rule

SIGNS = 2**31
"""The random stream of the classes; streams 0, 1, ... are those of the columns."""

MOST = 2000
"""Largest number of directions of a fit."""

SINGLE = 32
"""Largest number of columns in single precision; a fit that needs more restarts in double
precision.
"""

CHUNK = 1 << 16


def supports(plan: RunPlan) -> bool:
    """Return whether this engine supports the losses and the protocol: two classes, labelled
    samples in fit 0, then one fresh batch per fit, labelled by the fit before.
    """
    protocol = plan.protocol

    def known(t: int) -> bool:
        fit = protocol.fits[t]
        first, *others = [(protocol.groups[use.group], use) for use in fit.uses]
        labels = first[1].labels
        alike = all(
            group.law == first[0].law
            and group.proportions == first[0].proportions
            and group.label_noise == first[0].label_noise
            and use.labels == labels
            for group, use in others
        )
        teacher = -1 if labels is None else labels.teacher
        plain = all(use.weight == 1 and use.given == 0 for use in fit.uses)
        plain &= labels is None or not labels.agree
        return type(fit.loss) in (Logistic, Squared) and alike and plain and teacher == t - 1

    once = protocol.every_sample_once and protocol.classes == 2 and protocol.length == 1
    return once and all(map(known, range(len(protocol.fits))))


class FrameEngine:
    """Samples and models of one seed; `room` is the initial number of columns."""

    probes_wait = False

    def __init__(self, plan: RunPlan, options: SeedOptions, seed: int, room: int = SINGLE):
        self.plan, self.seed, self.tolerance = plan, seed, options.tolerance
        self.columns = _Room(max(map(plan.rows, range(len(plan.protocol.fits)))), room)
        self.histogram = _Weights(plan.features) if options.keep_weights else None
        self.points: list[tuple[Array, float]] = [(np.zeros(2), 0.0)]

    def model(self, t: int) -> Model:
        state, bias = self.points[t + 1]
        return Model(float(np.linalg.norm(state)), bias)

    def label(self, t: int) -> Labelled:
        self.batch = batch = RevealedRows(self.plan, t, self.seed, self.columns, *self.points[-1])
        shares = label_shares(batch.targets, None, np.array(batch.step.loss.classes))
        quality = {**batch.quality, "label_shares": shares}
        return Labelled(batch.targets, batch.selected, batch.classes, False, quality)

    def fit(self, t: int) -> None:
        copied = self.plan.protocol.fits[t].bias_of
        state, bias = self.points[-1]
        bias = bias if copied is None else self.points[copied + 1][1]
        self.point, bias, self.error = self.batch.fit(state, bias, copied is None, self.tolerance)
        across = float(self.point[1:] @ self.point[1:])
        self.points.append((np.array([self.point[0], np.sqrt(across)]), bias))

    def skip(self, t: int) -> None:
        """Do nothing: no fit after t uses the samples of fit t."""

    def measured(self, t: int) -> dict[str, Any]:
        point, batch = self.point, self.batch
        return {
            "m": float(point[0]),
            "v": float(point[1:] @ point[1:]),
            "bias": self.points[-1][1],
            "overlap": float(self.points[t][0] @ point[:2]) if t else np.nan,
            "train_loss": total_loss(batch.loss, batch.logits, batch.targets) / batch.targets.size,
            "directions": point.size,
            "fit_error": self.error,
        }

    def rule(self, t: int) -> dict[str, Any]:
        q = float(self.point[0]) ** 2 + float(self.point[1:] @ self.point[1:])
        delta = float(self.plan.protocol.test.law.covariance)
        return gaussian_rule(float(self.point[0]), self.points[-1][1], np.full(2, delta * q))

    def probe(self, t: int) -> Callable[[int, np.random.Generator], float]:
        return self.batch.probe

    def weights(self, t: int) -> Array:
        assert self.histogram is not None
        return self.histogram.draw(self.point, generator(self.seed, t, WEIGHTS))

    def logits(self, t: int) -> Array:
        random = generator(self.seed, t, LOGITS)
        return self.batch.all_logits(self.point, self.points[-1][1], random)

    def forget(self, t: int) -> None:
        """Do nothing: the arrays of columns are reused."""


class _Room:
    """Buffers for the columns of the frame (x) and of the revealed residuals (u), reused by every
    step.
    """

    def __init__(self, rows: int, room: int):
        self.x = np.empty((room, rows), np.float32)
        self.u = np.empty((room, rows), np.float32)

    @property
    def usable(self) -> int:
        """The number of columns a fit may fill: few in single precision, because many would magnify
        rounding errors.
        """
        return min(len(self.x), SINGLE) if self.x.dtype == np.float32 else len(self.x)

    def grow(self, filled: int, revealed: int, rows: int, fitting: bool) -> None:
        """Enlarge the buffers by half, with their contents; in double precision if a fit needs
        it.
        """
        shape = (len(self.x) + len(self.x) // 2 + 2, self.x.shape[1])
        precise = self.x.dtype == np.float64 or (fitting and self.usable == SINGLE)
        x, u = (np.empty(shape, np.float64 if precise else np.float32) for _ in range(2))
        x[:filled, :rows] = self.x[:filled, :rows]
        u[:revealed, :rows] = self.u[:revealed, :rows]
        self.x, self.u = x, u


class RevealedRows:
    """The samples of fit t: they are drawn, labelled and selected, then fitted and probed."""

    def __init__(self, plan: RunPlan, t: int, seed: int, columns: _Room, state: Array, bias: float):
        self.step = step = plan.protocol.fits[t]
        labels, group = step.uses[0].labels, plan.protocol.groups[step.uses[0].group]
        self.t, self.columns, self.features = t, columns, plan.features
        self.rows, self.ridge = plan.rows(t), plan.ridge(t)
        self.loss = LOGISTIC if type(step.loss) is Logistic else SQUARED
        self.scale = float(np.sqrt(group.law.covariances[0]))
        self.key = stream(seed, t, COLUMNS).generate_state(1, np.uint64)[0]
        self.lengths_seed = stream(seed, t, LENGTHS)
        self.frame, self.revealed = 1 if t == 0 else 2, 0
        signs = np.empty(self.rows, np.float32)
        fill_signs(self.key, SIGNS, group.proportions[1], signs)
        x = columns.x
        for j in range(self.frame):
            column = x[j, : self.rows]
            fill_normals(self.key, j, 0, column)
            column *= np.float32(self.scale)
        x[0, : self.rows] += signs
        self.classes = (signs > 0).astype(np.int8)
        self.selected: Mask = np.ones(self.rows, dtype=bool)
        self.quality: dict[str, Any] = {}
        self.rejected = np.empty((2, 0))
        if labels is None:
            random = generator(seed, t, LABELS)
            given = given_labels(self.classes, group.label_noise, random)
            self.targets = np.array(step.loss.classes)[given]
        else:
            self.targets = self._label(labels, state, bias)
        count = self.targets.size
        self.logits, self._base, self._change = np.empty(count), np.empty(count), np.empty(count)

    def _label(self, labels: PseudoLabels, state: Array, bias: float) -> Array:
        """Return the targets of the selected samples, and compact the columns to these samples."""
        x = self.columns.x
        logits = np.empty(self.rows)
        for here in _chunks(self.rows):
            logits[here] = state[0] * x[0, here].astype(float) + state[1] * x[1, here] + bias
        if labels.threshold > 0 or not logits.all():
            self.selected = np.abs(logits) > labels.threshold * float(np.hypot(state[0], state[1]))
        self.quality = label_quality(logits, self.selected, self.classes)
        if not self.selected.all():
            self.rejected = x[:2, : self.rows][:, ~self.selected].astype(float)
            logits = logits[self.selected]
            x[:2, : logits.size] = x[:2, : self.rows][:, self.selected]
        if type(labels.labeler) is SoftLabels and np.isfinite(labels.sharpness):
            soft_targets(self.loss, labels.sharpness, logits)
        else:
            for here in _chunks(logits.size):
                logits[here] = pseudo_targets(labels, logits[here], self.step.loss, self.t)
        return logits

    def fit(
        self, state: Array, bias: float, train_bias: bool, tolerance: float
    ) -> tuple[Array, float, float]:
        """Return the coordinates of the minimiser in the frame, its bias, and their relative error.
        Weights smaller than their rounding error are set to zero, with a relative error of 1.
        """
        start = self.frame
        while True:
            columns = self.columns
            room = columns.usable
            point = np.zeros(room)
            if self.t:
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
                with np.errstate(over="ignore"):  # diverging weights
                    norm = float(np.linalg.norm(point[:frame]))
                reason = "the fit did not settle"
                if self.ridge == 0:
                    reason += ": without ridge the minimum may not exist"
                raise ConvergenceError(self.t, reason, {"norm": norm, "bias": found}, error)
            if room > MOST:
                raise ConvergenceError(
                    self.t,
                    f"the fit needs more than {MOST} directions: the ridge is too small",
                    {"bias": found},
                    error,
                )
            columns.grow(start, 0, self.targets.size, fitting=True)

    def probe(self, probes: int, random: np.random.Generator) -> float:
        """Return the mean of `probes` estimates of the susceptibility."""
        return float(np.mean([self._probe(random) for _ in range(probes)]))

    def _probe(self, random: np.random.Generator) -> float:
        features, count = self.features, self.targets.size
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
        """Return the logits of all samples; those of rejected samples are drawn here, because they
        were not needed before.
        """
        if self.selected.all():
            return self.logits.copy()
        logits = np.empty(self.rows)
        logits[self.selected] = self.logits
        spread = self.scale * float(np.linalg.norm(point[2:]))
        unseen = random.standard_normal(self.rejected.shape[1])
        logits[~self.selected] = point[:2] @ self.rejected + spread * unseen + bias
        return logits

    def _law(self) -> Law:
        """Return the law of the part of the matrix that is not drawn yet.

        For a given seed it does not depend on the size of the buffers.
        """
        free = self.features - np.arange(len(self.columns.x) + 1)
        random = np.random.Generator(np.random.Philox(self.lengths_seed))
        lengths = np.sqrt(np.where(free > 0, random.chisquare(np.maximum(free, 1)), 0.0))
        return Law(self.ridge, self.scale, lengths, self.key)


class _Weights:
    """Weight vectors, drawn from their law given their coordinates in the frames of the steps."""

    def __init__(self, features: int):
        self.center = np.full(features, features**-0.5)
        self.across = np.zeros(features)

    def draw(self, point: Array, random: np.random.Generator) -> Array:
        r"""Return $w_t = a v + b w_{t-1} + s \hat g$ with $\hat g$ Gaussian, orthogonal to both and
        normalised.
        """
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
