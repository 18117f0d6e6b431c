"""Fits with weights as vectors and samples as design matrices: dense, revealed, real.

The algorithm as it is written in `eq: loss labeled` and `eq: update of ST`, for any protocol, any
loss and any labeler: this is the reference that the fast engine (`matrix_free.py`) is checked
against.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...losses import Logistic, Squared, check_derivatives, check_within
from ...protocol import Fit as ProtocolFit
from ...protocol import Protocol, Use
from ..designs.design import Design, Stacked, as_design
from ..designs.revealed import RevealedGaussian
from ..designs.sources import Samples, SampleSource, TestedSource
from ..labels import Labelled, label_quality, pseudo_targets
from ..linear.fit import Fit, FitError, fit
from ..linear.susceptibility import susceptibility
from ..plan import RunPlan
from ..run import Measured
from ..seed_record import Mask

CLOSER = 0.01
"""The fit is more accurate than its q, m and B have to be, by this factor."""

CHECKED = 200
"""Logits of a fit at which a loss of the user's own is checked."""


class FitSamples(NamedTuple):
    """The samples of a fit: design, targets, weights; those of the batch come first."""

    design: Design
    targets: Array
    weights: Array


class ExplicitEngine:
    """Samples and models of one run.

    Arguments:
        protocol: which fit uses which samples.
        source: of the samples.
        features: N; a ridge is multiplied by it.
        tolerance: relative accuracy of q, m and B.

    Attributes:
        models: the fits so far.
    """

    def __init__(self, protocol: Protocol, source: SampleSource, features: int, tolerance: float):
        self.protocol, self.source, self.features = protocol, source, features
        self.tolerance = CLOSER * tolerance
        self.models: list[Fit] = []
        self._groups: dict[int, Samples] = {}

    def model(self, t: int) -> tuple[float, float]:
        return float(np.linalg.norm(self.models[t].weights)), self.models[t].bias

    def label(self, t: int) -> Labelled:
        self._groups |= self.source.draw(t)
        step = self.protocol.fits[t]
        made = [use for use in step.uses if use.labels is not None]
        uses = [*made, *(use for use in step.uses if use.labels is None)]
        parts = [self._groups[use.group] for use in uses]
        labels = [self._labels(t, use, part) for use, part in zip(uses, parts, strict=True)]
        targets, selected, logits = (np.concatenate(column) for column in zip(*labels, strict=True))
        each = [
            np.full(part.positive.size, use.weight) for use, part in zip(uses, parts, strict=True)
        ]
        weights = np.concatenate(each) * selected
        if any(part.weights is not None for part in parts):
            weights *= np.concatenate([part.weights for part in parts])
        designs = [as_design(part.design) for part in parts]
        self._samples = FitSamples(
            designs[0] if len(designs) == 1 else Stacked(*designs), targets, weights
        )
        count = sum(part.positive.size for part in parts[: len(made)]) or targets.size
        self._targets, self._selected = targets[:count], selected[:count]
        truth = np.concatenate([part.positive for part in parts])[:count]
        quality = label_quality(logits, self._selected, truth) if made else {}
        mixed = 0 < len(made) < len(uses)
        return Labelled(targets[:count][self._selected], self._selected, truth, mixed, quality)

    def _labels(self, t: int, use: Use, part: Samples) -> tuple[Array, Mask, Array]:
        """Return targets, selected samples, and the logits that made the labels."""
        loss, labels = self.protocol.fits[t].loss, use.labels
        if labels is None:
            negative, positive = loss.classes
            everything = np.ones(part.positive.size, dtype=bool)
            return np.where(part.positive, positive, negative), everything, np.zeros(0)
        teacher = self.models[labels.teacher]
        logits = as_design(part.design).times(teacher.weights) + teacher.bias
        unit = float(np.linalg.norm(teacher.weights)) * self.protocol.groups[0].law.length
        targets = pseudo_targets(labels, logits, loss, t)
        return targets, np.abs(logits) > labels.threshold * unit, logits

    def fit(self, t: int) -> None:
        step = self.protocol.fits[t]
        weights, bias = np.zeros(self._samples.design.shape[1]), 0.0
        if self.models:
            weights, bias = self.models[-1].weights, self.models[-1].bias
        if step.bias_of is not None:
            bias = self.models[step.bias_of].bias
        ridge = step.ridge * self.features
        self.models.append(_fit(t, step, self._samples, ridge, weights, bias, self.tolerance))

    def logits(self, t: int) -> Array:
        """Return the logits of the batch after fit t."""
        return self.models[t].logits[: self._targets.size]

    def forget(self, t: int) -> None:
        """Drop the samples that no fit after t uses."""
        del self._samples
        used = self.protocol.uses
        self._groups = {one: part for one, part in self._groups.items() if max(used[one]) > t}


class SeedEngine(ExplicitEngine):
    """An engine of the simulation, whose fits are measured.

    Arguments:
        plan: of the run.
        source: of the samples.
        tolerance: relative accuracy of q, m and B.
    """

    def __init__(self, plan: RunPlan, source: TestedSource, tolerance: float):
        super().__init__(plan.protocol, source, plan.features, tolerance)
        self.tested = source
        # Probes ask a revealed matrix more than the fit did: if a later fit asks it too, they wait.
        revealed = getattr(source, "noise", None) is RevealedGaussian
        self.probes_wait = revealed and not plan.protocol.every_sample_once

    def measured(self, t: int) -> dict[str, float]:
        found, mean, loss = self.models[t], self.tested.mean, self.protocol.fits[t].loss
        m = float(mean @ found.weights)
        off = found.weights - m / float(mean @ mean) * mean
        train = loss.value(self._targets, self.logits(t))[self._selected]
        return {
            "m": m,
            "v": float(off @ off),
            "bias": found.bias,
            "overlap": float(self.models[t - 1].weights @ found.weights) if t else np.nan,
            "train_loss": float(train.mean()) if train.size else np.nan,
            "directions": found.products,
            "fit_error": found.error,
        }

    def rule(self, t: int) -> Measured:
        return self.tested.test(self.models[t].weights, self.models[t].bias)

    def probe(self, t: int) -> Callable[[int, np.random.Generator], float]:
        ridge = self.protocol.fits[t].ridge * self.features
        return partial(susceptibility, self._samples.design, self.models[t].curvature, ridge)

    def weights(self, t: int) -> Array:
        return np.asarray(self.models[t].weights * np.sqrt(self.features))


def _fit(
    t: int,
    step: ProtocolFit,
    samples: FitSamples,
    ridge: float,
    weights: Array,
    bias: float,
    tolerance: float,
) -> Fit:
    """Return the minimiser on these samples, from the weights and the bias of an earlier fit; its
    failure is an error of this step.
    """
    users_own = type(step.loss) not in (Logistic, Squared)
    try:
        found = fit(
            samples.design,
            samples.targets,
            step.loss,
            ridge,
            rows=samples.weights,
            fit_bias=step.bias_of is None,
            weights=weights,
            bias=bias,
            tolerance=tolerance,
        )
    except FitError as error:
        if users_own and np.isfinite(error.reach):
            check_within(step.loss, 2.0 * error.reach)  # a contradiction is the better reason
        state = {"bias": bias, "norm": float(np.linalg.norm(weights))}
        raise ConvergenceError(t, str(error), state, float("nan")) from None
    if users_own:
        some = slice(None, None, max(1, found.logits.size // CHECKED))
        check_derivatives(step.loss, samples.targets[some], found.logits[some])
    return found
