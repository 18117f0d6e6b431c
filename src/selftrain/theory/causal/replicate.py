r"""All fits on one replicate, in causal order: each fit is solved given those before."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...protocol import Fit
from ..ending import Ending
from ..geometry.modes import FIRST, HAT_M
from ..tolerances import COLLAPSED_MASS, ONLY_BIAS
from .draws import PointSource
from .newton import System, solve_step, start_at
from .samples import FittedSamples, Samples
from .setting import Setting
from .step import CausalStep
from .unknowns import Hats, Layout
from .weights import WeightHistory

Counts = NDArray[np.int64]

MEASURED = (
    "fraction_selected",
    "pseudo_label_accuracy",
    "selected_label_accuracy",
    "train_loss",
    "kept_loss",
)


class Replicate:
    r"""All fits of a protocol on one replicate; arrays over t = 0..T, NaN where not solved.

    Arguments:
        setting: the protocol and its coordinates.
        source: source of the points.
        near: `moves` of another replicate, or of a run of a similar recipe, for starts.
        systems: Jacobians of another replicate of the same size, for the first Newton steps.
        keep_samples: whether to store the samples of every fit.

    Attributes:
        history: the weights.
        bias: bias of every fit, (T+1, d).
        hats: the conjugates of every fit.
        gains: $\mathrm{tr}\,G_t/N$.
        moves: difference of the solution of each fit from its plain start, from which another
            replicate can start.
        systems: the last Jacobian of each fit (more than two classes only), for the same purpose.
        measured: rows of `MEASURED`.
        shares: proportion of each class among the labels of a fit, (T+1, K).
        collapsed_at: the first fit that has no label of some class, or None.
        evaluations: evaluations of the equations of each fit.
        samples: the samples of every fit, if `keep_samples`.
        points: number of points of the largest group, for each class.
    """

    def __init__(
        self, setting: Setting, source: PointSource, near: dict[int, Array] | None = None,
        systems: dict[int, System] | None = None, keep_samples: bool = False,
    ) -> None:  # fmt: skip
        self._setting, self._source, self._keep_samples = setting, source, keep_samples
        self._near, self._near_systems = near or {}, systems or {}
        fits, d = setting.fits, setting.protocol.components
        noises: dict[int, int] = {}
        for fit in setting.protocol.fits[: setting.last + 1]:
            for a in self._sources(fit):
                noises[a] = noises.get(a, 0) + 1
        self.history = WeightHistory(setting.space, fits, d, noises)
        self.bias = np.full((fits, d), np.nan)
        self.hats: list[Hats] = []
        self.gains = np.full(fits, np.nan)
        self.moves: dict[int, Array] = {}
        self.systems: dict[int, System] = {}
        self.measured = np.full((len(MEASURED), fits), np.nan)
        self.shares = np.full((fits, d + 1), np.nan)
        self.collapsed_at: int | None = None
        self.evaluations: Counts = np.zeros(fits, dtype=np.int64)
        self.samples: list[list[FittedSamples]] = []
        self._samples = Samples(setting, source, keep_samples)

    @property
    def points(self) -> int:
        """Number of points of the largest group, for each class (0: exact moments)."""
        return self._samples.points

    def solve(self) -> Replicate:
        """Solve all fits; return the replicate itself."""
        setting = self._setting
        for t in range(setting.begin):
            layout = self._layout(setting.protocol.fits[t])
            self._take(t, layout, layout.pack(*self._known_unknowns(t, layout)))
        for t in range(setting.begin, setting.last + 1):
            if t in setting.lost:
                self._skip(t)
            elif not self._fit(t, setting.protocol.fits[t]):
                self.collapsed_at = t
                break
            if setting.bar is not None:
                setting.bar.advance(expected=self._source.work)
        self._samples.clear()
        return self

    def _sources(self, fit: Fit) -> list[int]:
        """Return the indices of the covariances of the samples of a fit."""
        laws = (self._setting.protocol.groups[use.group].law for use in fit.uses)
        return sorted({a for law in laws for a in self._setting.space.sets[law].sources})

    def _layout(self, fit: Fit) -> Layout:
        groups = [self._setting.protocol.groups[use.group] for use in fit.uses]
        laws = {group.law: len(group.proportions) for group in groups}
        return self.history.layout(laws, self._sources(fit))

    def _known_unknowns(self, t: int, layout: Layout) -> tuple[Array, Hats]:
        r"""Return the bias and the conjugates of a fit that the exact engine has solved, in the
        bases of this replicate. Its unknowns are $\hat m$, B, and by groups $\gamma\hat Q - \hat
        R$, $\ln\hat Q$, $\ln\hat\chi$.
        """
        exact, law = self._setting.exact, next(iter(layout.laws))
        assert exact is not None
        assert exact.unknowns is not None
        assert exact.gammas is not None
        tilt, stiff, fresh = exact.unknowns[t, FIRST:].reshape(3, -1)
        q = np.exp(stiff)
        back = np.zeros_like(q) if t == 0 else tilt - float(exact.gammas[t]) * q
        hats = np.array([q, back, np.exp(fresh)])
        if not law.pair:  # one covariance for both classes
            hats = hats.sum(axis=1, keepdims=True)
        along, slopes = {}, {}
        for propagation, (a, (r, k)) in zip(hats[1], layout.sources.items(), strict=True):
            row = self.history.coordinates(a, t - 1)[:, :r] if t else np.zeros((1, r))
            along[a], slopes[a] = propagation * row, np.zeros((1, k))
        squares = [
            {a: np.full((1, 1), value) for a, value in zip(layout.sources, values, strict=True)}
            for values in hats[::2]
        ]
        means = {law: 0.5 * float(exact.unknowns[t, HAT_M]) * np.array([[-1.0, 1.0]])}
        return np.array([exact.bias[t]]), Hats(means, squares[0], along, slopes, squares[1])

    def _fit(self, t: int, fit: Fit) -> bool:
        """Solve fit t and update all samples; return False if its labels have collapsed."""
        if self._faded(t, fit):
            return False
        samples = self._samples
        samples.bring(t, self.history, self.bias)
        self.measured[:3, t] = samples.label_quality(fit)
        if not self._source.exact:  # soft labels of the squared loss are not probabilities
            self.shares[t] = samples.label_shares(fit)
            if self._class_lost(t, fit):
                return False
        layout = self._layout(fit)
        fixed = None if fit.bias_of is None else self.bias[fit.bias_of]
        idle = {}
        if self._source.exact:
            idle = {a: samples.idle(a, count) for a, (_, count) in layout.sources.items()}
        cells = samples.used_by(fit)
        stage = CausalStep(t, cells, self.history, layout, fit.ridge, fixed, idle)
        plain = self._plain_start(stage)
        near = self._near_systems.get(t)
        if near is not None and near.size != layout.size:
            near = None
        found = solve_step(stage, [*self._shifted(stage, plain), plain], near)
        if layout.components > 1 and found.system is not None:  # then Jacobians dominate the cost
            self.systems[t] = found.system
        self.moves[t] = layout.move(plain, found.z)
        self.evaluations[t] = found.evaluations
        self._take(t, layout, found.z)
        return True

    def _skip(self, t: int) -> None:
        """Leave out fit t. No later fit depends on it: fits do so only by labels and biases."""
        self.history.skip()
        if self._keep_samples:
            self.samples.append([])

    def _plain_start(self, stage: CausalStep) -> Array:
        """Return the start of Newton's method without a similar run: from the exact fit if it is
        known, else from the fit before.
        """
        t = stage.t
        if t < self._setting.known:
            return stage.layout.pack(*self._known_unknowns(t, stage.layout))
        if t == 0:
            return start_at(stage, np.zeros(stage.layout.components))
        before = int(np.flatnonzero(np.isfinite(self.gains))[-1])
        return start_at(stage, self.bias[before], before)

    def _shifted(self, stage: CausalStep, plain: Array) -> list[Array]:
        """Return a list of the plain start shifted by the move of a similar run; the list is empty
        if that has other unknowns.

        The moves of late fits are small, and replicates agree on them far better than on the
        coordinates themselves, whose directions are mostly noise of the replicate by then.
        """
        move = self._near.get(stage.t)
        if move is None or move.size != plain.size:
            return []
        start = stage.layout.moved(plain, move)
        if stage.bias is not None:
            start[stage.layout.bias] = stage.bias
        return [start]

    def _take(self, t: int, layout: Layout, z: Array) -> None:
        """Store the solution of fit t, and compute its logits for all samples, used or not."""
        history, samples, fit = self.history, self._samples, self._setting.protocol.fits[t]
        self.bias[t], hats = layout.unpack(z)
        trial = history.trial(fit.ridge, hats)
        if t >= self._setting.begin:
            watched = samples.laws
            means = {law: history.means(law, trial.w) + self.bias[t, :, None] for law in watched}
            sources = {a for law in watched for a in self._setting.space.sets[law].sources}
            fields = {a: history.see(a, trial, hats)[0] for a in sources}
            samples.follow(t, fields, means)
            split = {a: samples.split_slopes(a, history.functions(a)) for a in layout.sources}
            hats = hats._replace(
                slopes={a: slopes for a, (slopes, _) in split.items()},
                fresh={a: square for a, (_, square) in split.items()},
            )
            self.measured[3:, t] = samples.losses(fit)
            if self._keep_samples:
                self.samples.append(samples.fitted(t))
        factors = history.enter(trial, hats.fresh, hats.slopes)
        q = history.square(t)
        if not (math.isfinite(q) and q > 0):
            ending = Ending.FADED if q == 0 else Ending.OVERFLOW
            m = float(history.means(self._setting.test, trial.w)[0, -1])
            raise ending.error(t, {"m": m, "bias": float(self.bias[t, 0])})
        samples.finish(t, history, hats.slopes, factors)
        self.hats.append(hats)
        self.gains[t] = self._setting.space.mean_gain(trial.gain, history.components)

    def _faded(self, t: int, fit: Fit) -> bool:
        """Return whether all labels of fit t, whose bias is trained, are of one class because they
        come from fits with negligible weights beside their bias.
        """
        if t == 0 or fit.bias_of is not None or not _only_pseudo_labels(fit):
            return False
        teachers = {use.labels.teacher for use in fit.uses if use.labels is not None}
        length = self._setting.protocol.length
        norms = {r: math.sqrt(self.history.square(r)) * length for r in teachers}
        return all(norms[r] < ONLY_BIAS * np.abs(self.bias[r]).max() for r in teachers)

    def _class_lost(self, t: int, fit: Fit) -> bool:
        """Return whether a class is missing among the labels of a fit with a trained bias; raise if
        the fit has no sample.
        """
        if t == 0 or not _only_pseudo_labels(fit):
            return False
        if self.shares[t].sum() == 0:
            bias = float(np.abs(self.bias[t - 1]).max())
            raise Ending.EMPTY.error(t, {"q": self.history.square(t - 1), "bias": bias})
        return fit.bias_of is None and float(self.shares[t].min()) < COLLAPSED_MASS


def _only_pseudo_labels(fit: Fit) -> bool:
    return all(use.labels is not None and use.given == 0 for use in fit.uses)
