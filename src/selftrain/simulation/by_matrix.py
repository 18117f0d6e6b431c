"""One seed of self-training with explicit weights, on dense or revealed matrices.

The algorithm as it is written in `eq: loss labeled` and `eq: update of ST`, one line of code
a line of mathematics: this is the reference that the fast engine (`by_frame.py`) is checked
against, the path for losses of the user's own, and the one that knows the variants (labelled
data kept, one batch reused).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import ConvergenceError
from ..losses import Array
from .designs import Clusters, Design, Stacked, Stored
from .fit import Fit, FitError, fit
from .record import Mask, Record, majority_positive, one_class, sample_error, vanished
from .revealed import RevealedGaussian
from .stages import Plan, Stage
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


def run_seed(
    plan: Plan,
    seed: int,
    noise: Noise,
    probes: int = 0,
    keep_weights: bool = False,
    keep_logits: bool = False,
    tolerance: float = 1e-6,
    stopped: Callable[[], bool] = lambda: False,
) -> Record | None:
    """Run all steps of one seed; None if `stopped` said so on the way."""
    center = np.full(plan.features, plan.features**-0.5)
    record = Record(seed, len(plan.stages) - 1)
    labeled: Batch | None = None
    reused: Batch | None = None
    weights, bias = np.zeros(plan.features), 0.0
    for stage in plan.stages:
        if stopped():
            return None
        random = generator(seed, stage.step)
        batch = reused or draw(stage, center, noise, random)
        if stage.step == 0:
            targets = np.where(batch.signs > 0, plan.loss.classes[1], plan.loss.classes[0])
            selected = np.ones(stage.rows, dtype=bool)
            trained = True
        else:
            logits = batch.design.times(weights) + bias
            targets = plan.recipe.label_function.target(logits, stage.sharpness, plan.loss)
            selected = np.abs(logits) > stage.threshold * np.linalg.norm(weights)
            trained = not plan.recipe.fix_bias
            record.put(stage.step, **label_quality(logits, selected, batch.signs > 0))
        kept = labeled if plan.keep_labeled and stage.step > 0 else None
        faded = stage.step > 0 and vanished(float(np.linalg.norm(weights)), bias, trained)
        if kept is None and (faded or (trained and one_class(targets[selected], plan.loss))):
            positive = majority_positive(targets[selected], plan.loss, bias)
            record.collapse(stage.step, positive)
            break
        found = _fit(plan, stage, batch, targets, selected, kept, trained, weights, bias, tolerance)
        after = measure(found, weights if stage.step else None, center)
        record.put(stage.step, **after, directions=found.products)
        train = plan.loss.value(targets, found.logits[: stage.rows])[selected]
        record.put(stage.step, train_loss=float(train.mean()) if train.size else float("nan"))
        if probes:
            design = batch.design if kept is None else Stacked(batch.design, kept.design)
            chi = susceptibility(design, found.curvature, stage.ridge, probes, random)
            record.put(stage.step, chi=chi)
        q = after["m"] ** 2 + after["v"]
        wrong = sample_error(after["m"], q, found.bias, plan.test, stage.rows, random)
        record.put(stage.step, test_error=wrong)
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
    return record


def generator(seed: int, step: int) -> np.random.Generator:
    """The random numbers of one step of one seed, independent of all others."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(step,))))


def draw(stage: Stage, center: Array, noise: Noise, random: np.random.Generator) -> Batch:
    """A batch of the mixture of this stage."""
    signs = np.where(random.random(stage.rows) < stage.rho, 1.0, -1.0)
    entries = noise(stage.rows, center.size, random)
    return Batch(Clusters(entries, signs, center, stage.delta), signs)


def label_quality(logits: Array, selected: Mask, positive: Mask) -> dict[str, float]:
    """How many points are selected, and how often the labelling model has the class right."""
    correct = (logits > 0) == positive
    return {
        "fraction_selected": float(selected.mean()),
        "pseudo_label_accuracy": float(correct.mean()),
        "selected_label_accuracy": float(correct[selected].mean()) if selected.any() else np.nan,
    }


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
