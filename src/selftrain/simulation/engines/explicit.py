"""One seed of self-training with explicit weights, on dense or revealed matrices.

The algorithm as it is written in `eq: loss labeled` and `eq: update of ST`, one line of code
a line of mathematics: this is the reference that the fast engine (`matrix_free.py`) is checked
against, the path for losses of the user's own, and the one that knows rows that are used again
(labelled rows kept, batches that return).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ..designs.design import ClusterRows, Design, Stacked, Stored
from ..designs.revealed import RevealedGaussian
from ..linear.fit import Fit
from ..linear.susceptibility import susceptibility
from ..plan import RunPlan, StepPlan
from ..pseudo_labels import (
    check_selection,
    label_quality,
    majority_positive,
    one_class,
    targets_of,
    vanished,
)
from ..random.streams import PROBES, TEST, generator
from ..seed_record import ASKED_NOTHING, Mask, SeedOptions, SeedRecord, sample_error
from .step_fit import FitRows, fit_step

Noise = Callable[[int, int, np.random.Generator], Design]


def dense_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    """Standard normal entries, all of them drawn and stored."""
    return Stored(random.standard_normal((rows, columns)))


def revealed_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    """Standard normal entries, drawn only as far as products ask."""
    return RevealedGaussian(rows, columns, random)


class LabeledRows(NamedTuple):
    """Rows of a mixture: the design and the classes (+1 or -1) behind it."""

    design: Design
    signs: Array


def run_steps(
    plan: RunPlan, noise: Noise, record: SeedRecord, options: SeedOptions = ASKED_NOTHING
) -> bool:
    """Run all steps of one seed and enter them into its record; False if `stopped` asked for it on
    the way.
    """
    seed, center = record.seed, np.full(plan.features, plan.features**-0.5)
    pool = _Pool(plan, noise, center, seed)
    weights, bias = np.zeros(plan.features), 0.0
    # Probes ask a revealed matrix more than the fit did: if a later fit asks it too, they wait.
    asked_again = noise is revealed_noise and plan.returns
    probed: list[tuple[StepPlan, Design, Array]] = []
    for step in plan.steps:
        if options.stopped():
            return False
        batch = pool.batch(step)
        if step.t == 0:
            targets = np.where(batch.signs > 0, step.loss.classes[1], step.loss.classes[0])
            selected = np.ones(step.rows, dtype=bool)
            trained, quality = True, {}
        else:
            logits = batch.design.times(weights) + bias
            targets = targets_of(plan.recipe.label_function, logits, step, step.loss)
            selected = np.abs(logits) > step.threshold * np.linalg.norm(weights)
            trained = not plan.recipe.fix_bias
            quality = label_quality(logits, selected, batch.signs > 0)
        kept = pool.labeled if step.t > 0 and plan.kept[step.t] > 0 else None
        faded = step.t > 0 and vanished(float(np.linalg.norm(weights)), bias, trained)
        if kept is None and not faded:
            check_selection(step, selected, float(weights @ weights), bias)
        if kept is None and (faded or (trained and one_class(targets[selected], step.loss))):
            positive = majority_positive(targets[selected], step.loss, bias)
            record.collapse(step.t, positive)
            break
        rows = _rows(batch, targets, selected, kept, step, float(plan.kept[step.t]))
        found = fit_step(step, rows, trained, weights, bias, options.tolerance)
        after = measure(found, weights if step.t else None, center)
        record.put(step.t, **after, directions=found.products, fit_error=found.error, **quality)
        train = step.loss.value(targets, found.logits[: step.rows])[selected]
        record.put(step.t, train_loss=float(train.mean()) if train.size else float("nan"))
        q = after["m"] ** 2 + after["v"]
        random = generator(seed, step.t, TEST)
        wrong = sample_error(after["m"], q, found.bias, plan.test, step.rows, random)
        record.put(step.t, test_error=wrong)
        if options.probes:
            probed.append((step, rows.design, found.curvature))
        if not asked_again:
            _probe(record, probed, options.probes)
        weights, bias = found.weights, found.bias
        written = weights * np.sqrt(plan.features)
        record.keep(options, written, found.logits[: step.rows], selected, batch.signs > 0)
        del batch, kept, rows  # a dense matrix goes before the next one is drawn
        pool.forget(step.t)
    _probe(record, probed, options.probes)
    return True


def _probe(record: SeedRecord, probed: list[tuple[StepPlan, Design, Array]], probes: int) -> None:
    """Measure the susceptibility of the steps in the list, and empty it."""
    while probed:
        step, design, curvature = probed.pop(0)
        random = generator(record.seed, step.t, PROBES)
        chi = susceptibility(design, curvature, step.ridge, probes, random)
        record.put(step.t, chi=chi)


class _Pool:
    """The rows of a seed: drawn at their first use, kept until their last."""

    def __init__(self, plan: RunPlan, noise: Noise, center: Array, seed: int):
        self._plan, self._noise, self._center, self._seed = plan, noise, center, seed
        self._parts: dict[str, LabeledRows] = {}
        self.labeled: LabeledRows | None = None

    def batch(self, step: StepPlan) -> LabeledRows:
        """The rows of a step: the labelled ones at step 0, else all parts that it names."""
        random = generator(self._seed, step.t)
        if step.t == 0:
            drawn = draw(step, step.rows, self._center, self._noise, random)
            self.labeled = drawn if np.any(self._plan.kept[1:] > 0) else None
            return drawn
        names = self._plan.parts[step.t]
        for name in names:
            if name not in self._parts:
                rows = step.rows // len(names)
                self._parts[name] = draw(step, rows, self._center, self._noise, random)
        parts = [self._parts[name] for name in names]
        if len(parts) == 1:
            return parts[0]
        signs = np.concatenate([part.signs for part in parts])
        return LabeledRows(Stacked(*(part.design for part in parts)), signs)

    def forget(self, t: int) -> None:
        """Let go of rows that no step after t uses."""
        for name in self._plan.parts[t]:
            if self._plan.last_use(name) == t:
                del self._parts[name]
        if not np.any(self._plan.kept[t + 1 :] > 0):
            self.labeled = None


def draw(
    step: StepPlan, rows: int, center: Array, noise: Noise, random: np.random.Generator
) -> LabeledRows:
    """Rows of the mixture of this step."""
    signs = np.where(random.random(rows) < step.rho, 1.0, -1.0)
    entries = noise(rows, center.size, random)
    return LabeledRows(ClusterRows(entries, signs, center, step.delta), signs)


def measure(found: Fit, before: Array | None, center: Array) -> dict[str, float]:
    """m, v = q - m^2, B and R of a fit."""
    m = float(center @ found.weights)
    across = found.weights - m * center
    return {
        "m": m,
        "v": float(across @ across),
        "bias": found.bias,
        "overlap": float("nan") if before is None else float(before @ found.weights),
    }


def _rows(
    batch: LabeledRows,
    targets: Array,
    selected: Mask,
    kept: LabeledRows | None,
    step: StepPlan,
    weight: float,
) -> FitRows:
    """The rows of a fit: the batch, then the labelled rows with their weight, if they are kept."""
    chosen = selected.astype(float)
    if kept is None:
        return FitRows(batch.design, targets, chosen)
    truth = np.where(kept.signs > 0, step.loss.classes[1], step.loss.classes[0])
    return FitRows(
        Stacked(batch.design, kept.design),
        np.append(targets, truth),
        np.append(chosen, np.full(truth.size, weight)),
    )
