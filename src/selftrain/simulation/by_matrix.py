"""One seed of self-training with explicit weights, on dense or revealed matrices.

The algorithm as it is written in `eq: loss labeled` and `eq: update of ST`, one line of code
a line of mathematics: this is the reference that the fast engine (`by_frame.py`) is checked
against, the path for losses of the user's own, and the one that knows the variants (labelled
data kept, one batch reused).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import ConvergenceError
from .designs import Clusters, Design, Stacked, Stored
from .fit import Fit, FitError, fit
from .labels import (
    check_selection,
    label_quality,
    majority_positive,
    one_class,
    targets_of,
    vanished,
)
from .record import Mask, Record, sample_error
from .revealed import RevealedGaussian
from .stages import Plan, Stage
from .streams import PROBES, TEST, generator
from .susceptibility import susceptibility

Noise = Callable[[int, int, np.random.Generator], Design]


def dense_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    """Standard normal entries, all of them drawn and stored."""
    return Stored(random.standard_normal((rows, columns)))


def revealed_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    """Standard normal entries, drawn only as far as products ask."""
    return RevealedGaussian(rows, columns, random)


class Batch(NamedTuple):
    """Rows of a mixture: the design and the classes (+1 or -1) behind it."""

    design: Design
    signs: Array


def run_steps(
    plan: Plan,
    record: Record,
    noise: Noise,
    probes: int = 0,
    keep_weights: bool = False,
    keep_logits: bool = False,
    tolerance: float = 1e-6,
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Run all steps of one seed and enter them into its record; False if `stopped` said so on the way."""
    seed, center = record.seed, np.full(plan.features, plan.features**-0.5)
    labeled: Batch | None = None
    reused: Batch | None = None
    weights, bias = np.zeros(plan.features), 0.0
    # Probes ask a revealed matrix more than the fit did: if a later fit asks it too, they wait.
    asked_again = noise is revealed_noise and (plan.keep_labeled or plan.reuse_batch)
    probed: list[tuple[Stage, Design, Array]] = []
    for stage in plan.stages:
        if stopped():
            return False
        batch = reused or draw(stage, center, noise, generator(seed, stage.step))
        if stage.step == 0:
            targets = np.where(batch.signs > 0, plan.loss.classes[1], plan.loss.classes[0])
            selected = np.ones(stage.rows, dtype=bool)
            trained, quality = True, {}
        else:
            logits = batch.design.times(weights) + bias
            targets = targets_of(plan.recipe.label_function, logits, stage, plan.loss)
            selected = np.abs(logits) > stage.threshold * np.linalg.norm(weights)
            trained = not plan.recipe.fix_bias
            quality = label_quality(logits, selected, batch.signs > 0)
        kept = labeled if plan.keep_labeled and stage.step > 0 else None
        faded = stage.step > 0 and vanished(float(np.linalg.norm(weights)), bias, trained)
        if kept is None and not faded:
            check_selection(stage, selected, float(weights @ weights), bias)
        if kept is None and (faded or (trained and one_class(targets[selected], plan.loss))):
            positive = majority_positive(targets[selected], plan.loss, bias)
            record.collapse(stage.step, positive)
            break
        found = _fit(plan, stage, batch, targets, selected, kept, trained, weights, bias, tolerance)
        if float(np.linalg.norm(found.weights)) * tolerance < found.blur:
            found = replace(found, weights=np.zeros(plan.features))  # lost in rounding
        after = measure(found, weights if stage.step else None, center)
        record.put(stage.step, **after, directions=found.products, **quality)
        train = plan.loss.value(targets, found.logits[: stage.rows])[selected]
        record.put(stage.step, train_loss=float(train.mean()) if train.size else float("nan"))
        q = after["m"] ** 2 + after["v"]
        random = generator(seed, stage.step, TEST)
        wrong = sample_error(after["m"], q, found.bias, plan.test, stage.rows, random)
        record.put(stage.step, test_error=wrong)
        if probes:
            design = batch.design if kept is None else Stacked(batch.design, kept.design)
            probed.append((stage, design, found.curvature))
        if not asked_again:
            _probe(record, probed, probes)
        weights, bias = found.weights, found.bias
        if keep_weights:
            record.weights.append(weights * np.sqrt(plan.features))
        if keep_logits:
            record.logits.append(found.logits[: stage.rows])
            record.selected.append(selected)
            record.classes.append(batch.signs > 0)
        if stage.step == 0 and plan.keep_labeled:
            labeled = batch
        if stage.step > 0 and plan.reuse_batch:
            reused = batch
        del batch, kept  # a dense matrix goes before the next one is drawn
    _probe(record, probed, probes)
    return True


def _probe(record: Record, probed: list[tuple[Stage, Design, Array]], probes: int) -> None:
    """Measure the susceptibility of the steps in the list, and empty it."""
    while probed:
        stage, design, curvature = probed.pop(0)
        random = generator(record.seed, stage.step, PROBES)
        chi = susceptibility(design, curvature, stage.ridge, probes, random)
        record.put(stage.step, chi=chi)


def draw(stage: Stage, center: Array, noise: Noise, random: np.random.Generator) -> Batch:
    """A batch of the mixture of this stage."""
    signs = np.where(random.random(stage.rows) < stage.rho, 1.0, -1.0)
    entries = noise(stage.rows, center.size, random)
    return Batch(Clusters(entries, signs, center, stage.delta), signs)


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


def _fit(
    plan: Plan,
    stage: Stage,
    batch: Batch,
    targets: Array,
    selected: Mask,
    kept: Batch | None,
    trained: bool,
    weights: Array,
    bias: float,
    tolerance: float,
) -> Fit:
    """The fit of this stage, on the batch and on the labelled rows if they are kept."""
    design, rows = batch.design, selected.astype(float)
    if kept is not None:
        truth = np.where(kept.signs > 0, plan.loss.classes[1], plan.loss.classes[0])
        design = Stacked(design, kept.design)
        targets = np.append(targets, truth)
        rows = np.append(rows, np.ones(truth.size))
    try:
        return fit(
            design,
            targets,
            plan.loss,
            stage.ridge,
            rows=rows,
            fit_bias=trained,
            weights=weights,
            bias=bias,
            tolerance=0.01 * tolerance,
        )
    except FitError as error:
        state = {"bias": bias, "norm": float(np.linalg.norm(weights))}
        raise ConvergenceError(stage.step, str(error), state, float("nan")) from None
