"""One seed of self-training with explicit weights, on dense or revealed matrices.

The algorithm as it is written in `eq: loss labeled` and `eq: update of ST`, one line of code
a line of mathematics: this is the reference that the fast engine (`matrix_free.py`) is checked
against, the path for losses of the user's own, and the one that knows rows that are used again
(labelled rows kept, batches that return).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays import Array
from ..designs.design import ClusterRows, Design, Stacked, Stored
from ..designs.revealed import RevealedGaussian
from ..fitted_to import GroupSamples, Model, fitted_to
from ..linear.fit import Fit
from ..linear.susceptibility import susceptibility
from ..plan import RunPlan, StepPlan
from ..pseudo_labels import (
    check_selection,
    majority_positive,
    one_class,
    vanished,
)
from ..random.streams import PROBES, TEST, generator
from ..seed_record import ASKED_NOTHING, SeedOptions, SeedRecord, sample_error
from .step_fit import fit_step

Noise = Callable[[int, int, np.random.Generator], Design]


def dense_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    """Standard normal entries, all of them drawn and stored."""
    return Stored(random.standard_normal((rows, columns)))


def revealed_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    """Standard normal entries, drawn only as far as products ask."""
    return RevealedGaussian(rows, columns, random)


def run_steps(
    plan: RunPlan, noise: Noise, record: SeedRecord, options: SeedOptions = ASKED_NOTHING
) -> bool:
    """Run all steps of one seed and enter them into its record; False if `stopped` asked for it on
    the way.
    """
    seed, center = record.seed, np.full(plan.features, plan.features**-0.5)
    pool = _Pool(plan, noise, center, seed)
    models = [Model(np.zeros(plan.features), 0.0)]
    # Probes ask a revealed matrix more than the fit did: if a later fit asks it too, they wait.
    asked_again = noise is revealed_noise and plan.returns
    probed: list[tuple[StepPlan, Design, Array]] = []
    for step in plan.steps:
        if options.stopped():
            return False
        weights, bias = models[-1]
        pool.draw(step)
        sample = fitted_to(plan, step.t, pool.samples, models[1:], 1.0, _stacked)
        rows, targets, selected = sample.rows, sample.targets, sample.selected
        trained = plan.protocol.fits[step.t].bias_of is None
        faded = step.t > 0 and vanished(float(np.linalg.norm(weights)), bias, trained)
        if not sample.mixed:
            if not faded:
                check_selection(step, selected, float(weights @ weights), bias)
            if faded or (trained and one_class(targets[selected], step.loss)):
                record.collapse(step.t, majority_positive(targets[selected], step.loss, bias))
                break
        found = fit_step(step, rows, trained, weights, bias, options.tolerance)
        after = measure(found, weights if step.t else None, center)
        quality = sample.quality
        record.put(step.t, **after, directions=found.products, fit_error=found.error, **quality)
        train = step.loss.value(targets, found.logits[: targets.size])[selected]
        record.put(step.t, train_loss=float(train.mean()) if train.size else float("nan"))
        q = after["m"] ** 2 + after["v"]
        random = generator(seed, step.t, TEST)
        wrong = sample_error(after["m"], q, found.bias, plan.test, step.rows, random)
        record.put(step.t, test_error=wrong)
        if options.probes:
            probed.append((step, rows.design, found.curvature))
        if not asked_again:
            _probe(record, probed, options.probes)
        models.append(Model(found.weights, found.bias))
        written = found.weights * np.sqrt(plan.features)
        record.keep(options, written, found.logits[: targets.size], selected, sample.positive)
        del sample, rows  # a dense matrix goes before the next one is drawn
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
    """The samples of a seed: drawn at their first use, stored until their last."""

    def __init__(self, plan: RunPlan, noise: Noise, center: Array, seed: int):
        self._plan, self._noise, self._center, self._seed = plan, noise, center, seed
        self._groups: dict[int, GroupSamples] = {}

    def samples(self, group: int) -> GroupSamples:
        """The samples of a group."""
        return self._groups[group]

    def draw(self, step: StepPlan) -> None:
        """Draw the groups that a fit is the first to use."""
        random = generator(self._seed, step.t)
        for group in self._plan.new_groups(step.t):
            count = self._plan.size(group)
            self._groups[group] = draw(step, count, self._center, self._noise, random)

    def forget(self, t: int) -> None:
        """Drop the samples that no fit after t uses."""
        for group in [group for group in self._groups if self._plan.is_last_use(group, t)]:
            del self._groups[group]


def _stacked(designs: list[Design]) -> Design:
    return designs[0] if len(designs) == 1 else Stacked(*designs)


def draw(
    step: StepPlan, rows: int, center: Array, noise: Noise, random: np.random.Generator
) -> GroupSamples:
    """Samples of the mixture of this step."""
    signs = np.where(random.random(rows) < step.rho, 1.0, -1.0)
    entries = noise(rows, center.size, random)
    return GroupSamples(ClusterRows(entries, signs, center, step.delta), signs > 0)


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
