"""The loop over the fits of a protocol, the same for all engines, and the measurements of a seed.

`run_fits` labels, checks and fits, one fit after the other (`eq: loss labeled`, `eq: update of
ST`). The engines differ in how they represent samples and weights: `engines/explicit.py` by
matrices and vectors (of synthetic data, of real data, and in the classifier),
`engines/matrix_free.py` without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr

from ..arrays import Array
from ..confusion import class_errors
from ..protocol import Protocol as TrainingProtocol
from .labels import (
    Labelled,
    Model,
    check_selection,
    class_targets,
    majority,
    one_class,
    vanished,
)
from .random_streams import PROBES, TEST, generator
from .run_plan import RunPlan
from .seed_record import SeedOptions, SeedRecord


class Engine(Protocol):
    """Samples and models of one run."""

    def label(self, t: int) -> Labelled:
        """Draw the new samples of fit t and label the batch."""

    def fit(self, t: int) -> None:
        """Fit the samples that `label` has prepared."""

    def skip(self, t: int) -> None:
        """Draw the new samples of fit t, which is not made; later fits may use them."""
        ...

    def model(self, t: int) -> Model:
        """Return the norm and the bias of fit t, which labels need."""


class Collapse(NamedTuple):
    """A fit t that is not made: its labels, or the predictions of the model that makes them, are of
    one class only.
    """

    t: int
    predicted: int


class Fitted(NamedTuple):
    """A completed fit t, and its batch."""

    t: int
    batch: Labelled


def run_fits(protocol: TrainingProtocol, engine: Engine) -> Iterator[Fitted | Collapse]:
    """Make all fits in order and yield each, or a `Collapse` in its place. Fits that take labels or
    a bias from a collapsed one are not made; no other fit depends on it.

    Raises:
        EmptySelection: the threshold rejects every sample of a batch.
        ConvergenceError: a fit has no minimum, or did not converge.
    """
    lost: set[int] = set()
    for t, fit in enumerate(protocol.fits):
        if t in lost:
            engine.skip(t)
            continue
        batch, trained = engine.label(t), fit.bias_of is None
        made = [use.labels for use in fit.uses if use.labels is not None]
        codes = class_targets(fit.loss, protocol.classes)
        if not batch.mixed:
            teachers = [engine.model(labels.teacher) for labels in made]
            faded = bool(made) and all(vanished(one, trained) for one in teachers)
            if made and not faded:
                check_selection(t, made[0], batch.selected, teachers[0])
            if faded or (trained and one_class(batch.targets, codes)):
                bias = teachers[0].bias if teachers else 0.0
                yield Collapse(t, majority(batch.targets, codes, bias))
                lost.update(protocol.taught_by(t))
                if lost.issuperset(range(t, len(protocol.fits))):
                    return
                continue
        engine.fit(t)
        yield Fitted(t, batch)


def gaussian_rule(m: float, bias: float, variances: Array) -> dict[str, Any]:
    """Return confusion matrix, AUC and logit variances of a linear rule on two Gaussian clusters.

    The logits of the classes have the means bias - m and bias + m.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.array([bias - m, -m - bias, 2 * m]) / np.sqrt([*variances, variances.sum()])
    below, above, auc = np.nan_to_num(ndtr(scores), nan=0.5)
    confusion = np.array([[1 - below, below], [above, 1 - above]])
    return {"logit_variances": variances, "confusion": confusion, "auc": float(auc)}


class SeedEngine(Engine, Protocol):
    """An engine whose fits can be measured."""

    probes_wait: bool
    """Whether probes of the susceptibility must be made after the last fit."""

    def measured(self, t: int) -> dict[str, Any]:
        """Return m, v, bias, overlap, train_loss, directions and fit_error of the last fit, t."""

    def rule(self, t: int) -> dict[str, Any]:
        """Return logit variances, confusion matrix and, for two classes, AUC on test samples."""

    def probe(self, t: int) -> Callable[[int, np.random.Generator], float]:
        """Return the estimator of the susceptibility of fit t, by random probes."""

    def weights(self, t: int) -> Array:
        """Return w of fit t, N entries."""

    def logits(self, t: int) -> Array:
        """Return the logits of the batch after fit t."""

    def forget(self, t: int) -> None:
        """Drop everything that no fit after t needs."""


def run_seed(plan: RunPlan, engine: SeedEngine, record: SeedRecord, options: SeedOptions) -> bool:
    """Run one seed and store its measurements in `record`; return False if it was stopped."""
    seed = record.seed
    waiting: list[tuple[int, Any]] = []

    def probe() -> None:
        while waiting:
            t, estimate = waiting.pop(0)
            record.put(t, chi=estimate(options.probes, generator(seed, t, PROBES)))

    for done in run_fits(plan.protocol, engine):
        t = done.t
        if isinstance(done, Collapse):
            record.collapse(plan.protocol.collapses_with(t), done.predicted)
            continue
        rule = engine.rule(t)
        record.put(t, **engine.measured(t), **done.batch.quality, **rule)
        shares = plan.protocol.test.proportions
        random = generator(seed, t, TEST)
        wrong = sampled_error(class_errors(rule["confusion"]), shares, plan.rows(t), random)
        record.put(t, test_error=wrong)
        if options.probes:
            waiting.append((t, engine.probe(t)))
        if not engine.probes_wait:
            probe()
        record.vectors.fill(t, options)
        if options.keep_weights:
            record.vectors.weights.append(engine.weights(t))
        if options.keep_logits:
            truth = done.batch.truth
            record.vectors.logits.append(engine.logits(t))
            record.vectors.selected.append(done.batch.selected)
            record.vectors.classes.append(truth == 1 if plan.protocol.classes == 2 else truth)
        engine.forget(t)
        if options.stopped() and t < plan.protocol.steps:
            return False
    probe()
    return True


def sampled_error(
    errors: Array, shares: tuple[float, ...], rows: int, random: np.random.Generator
) -> float:
    """Return the proportion of errors on `rows` fresh test samples, drawn from its law: given the
    weights, the number of errors in each class is binomial.
    """
    left, rest, wrong = rows, 1.0, 0
    for k in range(len(shares) - 1, 0, -1):
        count = int(random.binomial(left, min(shares[k] / rest, 1.0)))
        wrong += int(random.binomial(count, errors[k]))
        left, rest = left - count, rest - shares[k]
    return float(wrong + random.binomial(left, errors[0])) / rows
