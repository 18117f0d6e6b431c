"""One seed of self-training on clusters with a shape, or on real rows: the algorithm as it is
written.

The threshold compares the logit with the norm of the labelling weights times half the distance of
the class means, as the theory does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array
from ..designs.design import Stored
from ..designs.shaped import Drawn, GaussianSource, Pool, SourceOfRows, TableSource
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
from ..seed_record import ASKED_NOTHING, Mask, SeedOptions, SeedRecord
from .step_fit import FitRows, fit_step

SHAPED = ("negative_variance", "positive_variance", "negative_error", "positive_error", "auc")
"""What a seed of a problem with clusters has besides the measured quantities of a sphere."""


def run_steps(
    plan: RunPlan, table: Drawn | None, record: SeedRecord, options: SeedOptions = ASKED_NOTHING
) -> bool:
    """Run all steps of one seed and enter them into its record; False if `stopped` asked for it on
    the way.
    """
    seed, clusters = record.seed, plan.problem.clusters
    assert clusters is not None
    source: SourceOfRows = (
        GaussianSource(plan, seed) if table is None else TableSource(plan, table, seed)
    )
    pool = Pool(plan, source)
    mean = plan.problem.test_clusters.mean
    length = float(np.linalg.norm(mean))
    for name in SHAPED:
        record.values[name] = np.full(record.steps + 1, np.nan)
    weights, bias = np.zeros(plan.features), 0.0
    for step in plan.steps:
        if options.stopped():
            return False
        batch, kept = pool.batch(step), pool.kept(step)
        selected, trained, quality = np.ones(step.rows, dtype=bool), True, {}
        targets = np.where(batch.positive, step.loss.classes[1], step.loss.classes[0])
        if step.t > 0:
            logits = batch.rows @ weights + bias
            targets = targets_of(plan.recipe.label_function, logits, step, step.loss)
            norm = float(np.linalg.norm(weights))
            selected = np.abs(logits) > step.threshold * norm * clusters.length
            trained = not plan.recipe.fix_bias
            quality = label_quality(logits, selected, batch.positive)
            faded = vanished(norm, bias, trained)
            if not faded and kept is None:
                check_selection(step, selected, norm**2, bias)
            if kept is None and (faded or (trained and one_class(targets[selected], step.loss))):
                record.collapse(step.t, majority_positive(targets[selected], step.loss, bias))
                break
        rows = _rows(plan, step, batch.rows, targets, selected, kept)
        found = fit_step(step, rows, trained, weights, bias, options.tolerance)
        m = float(mean @ found.weights)
        off = found.weights - m / length**2 * mean
        measured = source.measure(found.weights, found.bias)
        train = step.loss.value(targets, found.logits[: step.rows])[selected]
        record.put(
            step.t,
            m=m,
            v=float(off @ off),
            bias=found.bias,
            overlap=float(weights @ found.weights) if step.t else float("nan"),
            directions=found.products,
            fit_error=found.error,
            train_loss=float(train.mean()) if train.size else float("nan"),
            test_error=_sampled(plan, measured.errors, step.rows, generator(seed, step.t, TEST)),
            **quality,
            **dict(zip(SHAPED, (*measured.variances, *measured.errors, measured.auc), strict=True)),
        )
        if options.probes:
            random, matrix = generator(seed, step.t, PROBES), Stored(rows.design)
            chi = susceptibility(matrix, found.curvature, step.ridge, options.probes, random)
            record.put(step.t, chi=chi)
        weights, bias = found.weights, found.bias
        written = weights * np.sqrt(plan.features)
        record.keep(options, written, found.logits[: step.rows], selected, batch.positive)
    return True


def _rows(
    plan: RunPlan, step: StepPlan, rows: Array, targets: Array, selected: Mask, kept: Drawn | None
) -> FitRows:
    """The rows of a fit: the batch, then the labelled rows that are kept."""
    weights = selected.astype(float)
    if kept is None:
        return FitRows(rows, targets, weights)
    truth = np.where(kept.positive, step.loss.classes[1], step.loss.classes[0])
    again = np.full(truth.size, plan.kept[step.t])
    return FitRows(
        np.vstack([rows, kept.rows]), np.append(targets, truth), np.append(weights, again)
    )


def _sampled(plan: RunPlan, errors: Any, rows: int, random: np.random.Generator) -> float:
    """Share of errors on `rows` fresh test points."""
    positive = int(random.binomial(rows, plan.test.rho))
    wrong = random.binomial(positive, errors[1]) + random.binomial(rows - positive, errors[0])
    return float(wrong) / rows
