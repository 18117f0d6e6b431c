"""The engine with weights as vectors and samples as design matrices: dense, revealed, or real.

It implements `eq: loss labeled` and `eq: update of ST` literally, for any protocol, any loss and
any labeler. The fast engine (`matrix_free.py`) is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...losses import Logistic, Squared, check_derivatives, check_within
from ...protocol import Protocol, PseudoLabels
from ..designs.design import Stacked
from ..designs.revealed import RevealedGaussian
from ..designs.sample_sources import GaussianSource, Samples, SampleSource, TableSource
from ..labels import (
    Labelled,
    Model,
    class_targets,
    confidence,
    confidence_unit,
    label_quality,
    label_shares,
    predicted,
    pseudo_targets,
)
from ..linear.class_losses import class_loss, fit_classes
from ..linear.fit import Fit, FitError, fit, susceptibility
from ..run_plan import RunPlan
from ..seed_record import Mask

CLOSER = 0.01
"""Tolerance of the weights of a fit, relative to the tolerance of q, m and B."""

CHECKED = 200
"""Number of logits of a fit at which a user-defined loss is checked."""


class ExplicitEngine:
    """Samples and models of one run.

    Arguments:
        features: N; ridges are multiplied by it.
        tolerance: relative accuracy of q, m and B.

    Attributes:
        models: the fits so far, by their index.
    """

    def __init__(self, protocol: Protocol, source: SampleSource, features: int, tolerance: float):
        self.protocol, self.source, self.features = protocol, source, features
        self.tolerance = CLOSER * tolerance
        self.models: dict[int, Fit] = {}
        self._groups: dict[int, Samples] = {}

    def model(self, t: int) -> Model:
        return Model(float(np.linalg.norm(self.models[t].weights)), self.models[t].bias)

    @property
    def last(self) -> Fit:
        """The last fit so far."""
        return self.models[max(self.models)]

    def skip(self, t: int) -> None:
        self._groups |= self.source.draw(t)

    def label(self, t: int) -> Labelled:
        self._groups |= self.source.draw(t)
        uses = self.protocol.fits[t].uses
        made = [(use.group, use.weight, use.labels) for use in uses if use.labels is not None]
        kept = [use for use in uses if use.labels is None or use.given > 0]
        # Samples with given and pseudo-labels are fitted twice, once with each label.
        given = [(use.group, use.weight if use.labels is None else use.given, None) for use in kept]
        entries = [(self._groups[group], weight, labels) for group, weight, labels in made + given]
        parts = [part for part, _, _ in entries]
        labelled = [self._labels(t, part, labels) for part, _, labels in entries]
        targets, selected, logits = (np.concatenate(one) for one in zip(*labelled, strict=True))
        sizes = [len(part.classes) for part in parts]
        weights = np.repeat([weight for _, weight, _ in entries], sizes) * selected
        if parts[0].weights is not None:
            weights *= np.concatenate([np.asarray(part.weights) for part in parts])
        design = parts[0].design if len(parts) == 1 else Stacked(*(part.design for part in parts))
        self._design, self._goals, self._weights = design, targets, weights
        # The batch comes first: samples with pseudo-labels, or all samples if there are none.
        count = sum(sizes[: len(made)]) or len(targets)
        self._targets, self._selected = targets[:count], selected[:count]
        truth = np.concatenate([part.classes for part in parts])[:count]
        owned = {group for group, _, _ in made} or {group for group, _, _ in given}
        mine = np.repeat([group in owned for group, _, _ in made + given], sizes)
        codes = class_targets(self.protocol.fits[t].loss, self.protocol.classes)
        quality: dict[str, Any] = {"label_shares": label_shares(targets, weights * mine, codes)}
        if made:
            quality |= label_quality(logits, self._selected, truth)
        mixed = bool(made and given)
        return Labelled(targets[:count][self._selected], self._selected, truth, mixed, quality)

    def _labels(
        self, t: int, part: Samples, labels: PseudoLabels | None
    ) -> tuple[Array, Mask, Array]:
        """Return targets, the mask of selected samples, and the logits that labels come from."""
        loss, classes = self.protocol.fits[t].loss, self.protocol.classes
        if labels is None:
            everything = np.ones(len(part.given), dtype=bool)
            nothing = np.zeros((0, classes) if classes > 2 else 0)
            return class_targets(loss, classes)[part.given], everything, nothing
        teacher = self.models[labels.teacher]
        logits = part.design.times(teacher.weights) + teacher.bias
        unit = confidence_unit(teacher.weights) * self.protocol.length
        selected = confidence(logits) > labels.threshold * unit
        if labels.agree:
            selected &= predicted(logits) == part.given
        return pseudo_targets(labels, logits, loss, t), selected, logits

    def fit(self, t: int) -> None:
        step, classes = self.protocol.fits[t], self.protocol.classes
        shape = () if classes == 2 else (classes,)
        weights = np.zeros((self._design.shape[1], *shape))
        bias: Any = np.zeros(shape) if shape else 0.0
        if self.models:
            weights, bias = self.last.weights, self.last.bias
        if step.bias_of is not None:
            bias = self.models[step.bias_of].bias
        users_own = type(step.loss) not in (Logistic, Squared)
        try:
            found = (fit if classes == 2 else fit_classes)(
                self._design,
                self._goals,
                step.loss,
                step.ridge * self.features,
                rows=self._weights,
                fit_bias=step.bias_of is None,
                weights=weights,
                bias=bias,
                tolerance=self.tolerance,
            )
        except FitError as error:
            if users_own and np.isfinite(error.reach):
                check_within(step.loss, 2.0 * error.reach)  # an inconsistent loss is clearer
            state = {"norm": float(np.linalg.norm(weights))}
            if classes == 2:
                state["bias"] = bias
            raise ConvergenceError(t, str(error), state, float("nan")) from None
        if users_own:
            some = slice(None, None, max(1, found.logits.size // CHECKED))
            check_derivatives(step.loss, self._goals[some], found.logits[some])
        self.models[t] = found

    def logits(self, t: int) -> Array:
        """Return the logits of the batch after fit t."""
        return self.models[t].logits[: len(self._targets)]

    def forget(self, t: int) -> None:
        """Drop the samples that no fit after t uses."""
        del self._design
        used = self.protocol.uses
        self._groups = {one: part for one, part in self._groups.items() if max(used[one]) > t}


class MeasuredEngine(ExplicitEngine):
    """The engine of a simulation, whose fits are measured."""

    def __init__(self, plan: RunPlan, source: GaussianSource | TableSource, tolerance: float):
        super().__init__(plan.protocol, source, plan.features, tolerance)
        self.tested = source
        # Probes reveal more of a matrix; if a later fit uses the matrix, they must wait for it.
        revealed = getattr(source, "noise", None) is RevealedGaussian
        self.probes_wait = revealed and not plan.protocol.every_sample_once

    def measured(self, t: int) -> dict[str, Any]:
        found, before = self.models[t], self.models.get(t - 1)
        w, means = found.weights, self.tested.means
        m: Any
        if w.ndim == 1:
            mean = means[1]
            m = float(mean @ w)
            off = w - m / float(mean @ mean) * mean
        else:
            m = w.T @ means.T
            off = w - np.linalg.pinv(means) @ (means @ w)
        return {
            "m": m,
            "v": float(np.vdot(off, off)),
            "bias": found.bias,
            "overlap": float(np.vdot(before.weights, w)) if before is not None else np.nan,
            "train_loss": self._train_loss(t),
            "directions": found.products,
            "fit_error": found.error,
        }

    def _train_loss(self, t: int) -> float:
        """Return the mean loss of the selected samples of the batch."""
        loss, logits = self.protocol.fits[t].loss, self.logits(t)[self._selected]
        targets, classes = self._targets[self._selected], self.protocol.classes
        if not len(targets):
            return np.nan
        if classes == 2:
            return float(loss.value(targets, logits).mean())
        alive = np.isfinite(self.models[t].bias)
        inner = class_loss(loss, int(alive.sum()))
        return float(inner.value(targets[:, alive], logits[:, alive] @ inner.basis).mean())

    def rule(self, t: int) -> dict[str, Any]:
        return self.tested.test(self.models[t].weights, self.models[t].bias)

    def probe(self, t: int) -> Callable[[int, np.random.Generator], float]:
        ridge = self.protocol.fits[t].ridge * self.features
        return partial(susceptibility, self._design, self.models[t].curvature, ridge)

    def weights(self, t: int) -> Array:
        return np.asarray(self.models[t].weights * np.sqrt(self.features))
