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
from ..fitted_to import Model, fitted_to
from ..linear.susceptibility import susceptibility
from ..plan import RunPlan
from ..pseudo_labels import (
    check_selection,
    majority_positive,
    one_class,
    vanished,
)
from ..random.streams import PROBES, TEST, generator
from ..seed_record import ASKED_NOTHING, SeedOptions, SeedRecord
from .step_fit import fit_step

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
    models = [Model(np.zeros(plan.features), 0.0)]
    for step in plan.steps:
        if options.stopped():
            return False
        weights, bias = models[-1]
        pool.draw(step)
        sample = fitted_to(plan, step.t, pool.samples, models[1:], clusters.length, _stacked)
        rows, targets, selected = sample.rows, sample.targets, sample.selected
        trained, norm = plan.protocol.fits[step.t].bias_of is None, float(np.linalg.norm(weights))
        faded = step.t > 0 and vanished(norm, bias, trained)
        if not sample.mixed:
            if not faded:
                check_selection(step, selected, norm**2, bias)
            if faded or (trained and one_class(targets[selected], step.loss)):
                record.collapse(step.t, majority_positive(targets[selected], step.loss, bias))
                break
        found = fit_step(step, rows, trained, weights, bias, options.tolerance)
        m = float(mean @ found.weights)
        off = found.weights - m / length**2 * mean
        measured = source.measure(found.weights, found.bias)
        train = step.loss.value(targets, found.logits[: targets.size])[selected]
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
            **sample.quality,
            **dict(zip(SHAPED, (*measured.variances, *measured.errors, measured.auc), strict=True)),
        )
        if options.probes:
            random, matrix = generator(seed, step.t, PROBES), Stored(rows.design)
            chi = susceptibility(matrix, found.curvature, step.ridge, options.probes, random)
            record.put(step.t, chi=chi)
        models.append(Model(found.weights, found.bias))
        written = found.weights * np.sqrt(plan.features)
        record.keep(options, written, found.logits[: targets.size], selected, sample.positive)
        pool.forget(step.t)
    return True


def _stacked(designs: list[Array]) -> Array:
    return designs[0] if len(designs) == 1 else np.vstack(designs)


def _sampled(plan: RunPlan, errors: Any, rows: int, random: np.random.Generator) -> float:
    """Share of errors on `rows` fresh test points."""
    positive = int(random.binomial(rows, plan.test.rho))
    wrong = random.binomial(positive, errors[1]) + random.binomial(rows - positive, errors[0])
    return float(wrong) / rows
