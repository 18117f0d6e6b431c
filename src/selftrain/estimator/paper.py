"""The paper's self-training, unmodified (`eq: update of ST`), on a user's samples.

Step 0 fits the labelled samples. Every later step takes a batch of unlabelled samples that no step
has used, labels it by the logits of the previous model, rejects samples below the threshold and
fits the rest: the protocol of `solve`, run by the engine of `simulate`. The ridge is per column, as
in `solve`.

Columns are neither centred nor scaled. The theory has clusters at plus and minus a mean; so with a
fixed bias, users should first subtract a midpoint that is far from 0. With a trained bias the
offset of a column is arbitrary; one of the samples is then subtracted from all, because an offset
that is large against the spread would cost the fit its precision.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ..arrays import Array
from ..errors import StageError
from ..problem import Problem
from ..protocol import protocol_of
from ..recipe import Recipe
from ..simulation.designs.design import Stored
from ..simulation.designs.sample_sources import Samples
from ..simulation.engines.explicit import ExplicitEngine
from ..simulation.linear.fit import Fit
from ..simulation.seed_run import Collapse, run_fits
from .blocks import is_dask, is_sparse
from .training import Fitted

STEPS = 8
"""Default number of batches: half of the 16 steps of the reference problem, because users' samples
are few.
"""


class UserSamples:
    """A user's samples as the data source of a run: the labelled ones, then one batch per step.

    Arguments:
        matrix, classes, weights: of all samples; the class is -1 if unlabelled.
        groups: indices of the samples of every step.
        fix_bias: whether the bias is fixed, so that samples must not be shifted.
    """

    def __init__(
        self, matrix: Any, classes: Array, weights: Array, groups: list[Any], fix_bias: bool
    ):
        self.matrix, self.classes, self.weights, self.groups = matrix, classes, weights, groups
        self.origin = _origin(_taken(matrix, groups[0]), fix_bias)

    def draw(self, t: int) -> dict[int, Samples]:
        chosen = self.groups[t]
        rows = _from(self.origin, _taken(self.matrix, chosen))
        known = (self.classes[chosen] > 0).astype(np.int64)
        return {t: Samples(Stored(rows), known, known, self.weights[chosen])}


def follow_recipe(
    matrix: Any,
    classes: Array,
    weights: Array,
    recipe: Recipe,
    steps: int,
    random: np.random.RandomState,
) -> Fitted:
    """Run a recipe on one two-class problem.

    Arguments:
        classes: 0 or 1; -1 if unlabelled.
        steps: number of batches into which the unlabelled samples are divided.
    """
    groups = [np.flatnonzero(classes >= 0), *_dealt(np.flatnonzero(classes < 0), steps, random)]
    # The numbers in `Problem` are not used: sizes and clusters are those of the samples, and the
    # protocol only says which step fits which batch.
    protocol = protocol_of(Problem(1.0, 1.0, 0.5, 1.0, steps), recipe)
    protocol = replace(
        protocol, groups=protocol.groups[: len(groups)], fits=protocol.fits[: len(groups)]
    )
    source = UserSamples(matrix, classes, weights, groups, recipe.fix_bias)
    engine = ExplicitEngine(protocol, source, matrix.shape[1], tolerance=1e-6)
    history = []
    try:
        for done in run_fits(protocol, engine):
            if isinstance(done, Collapse):
                warnings.warn(
                    f"all labels of step {done.t} are of one class; the model of step {done.t - 1} "
                    "is used",
                    UserWarning,
                    stacklevel=6,
                )
                break
            selected = float(done.batch.selected.mean())
            history.append(_entry(done.t, engine.last, source.origin, selected))
            engine.forget(done.t)
    except StageError as error:
        if not engine.models:
            raise
        state = {**error.state, "bias": _bias(engine.last, source.origin)}
        raise type(error)(error.step, error.reason, state, error.residual) from None
    return _fitted(matrix, weights, engine.last, source.origin, history)


def _origin(rows: Any, fix_bias: bool) -> Array | None:
    """Return the sample to subtract from all samples; None to leave them as they are.

    A shift would change the meaning of a fixed bias, and would make sparse samples dense.
    """
    return None if fix_bias or is_sparse(rows) else np.asarray(rows[0], dtype=float)


def _from(origin: Array | None, rows: Any) -> Any:
    return rows if origin is None else rows - origin


def _bias(model: Fit, origin: Array | None) -> float:
    """Return the bias in the user's units."""
    return float(model.bias if origin is None else model.bias - origin @ model.weights)


def _dealt(rows: Any, steps: int, random: np.random.RandomState) -> list[Any]:
    """Return batches of equal size, in random order, without the samples that do not fill one."""
    if len(rows) == 0 or steps == 0:
        return []
    size = max(1, len(rows) // steps)
    mixed = random.permutation(rows)
    return [np.sort(mixed[k * size : (k + 1) * size]) for k in range(min(steps, len(rows)))]


def _taken(matrix: Any, rows: Any) -> Any:
    found = matrix[rows]
    return np.asarray(found.compute()) if is_dask(found) else found


def _entry(t: int, model: Fit, origin: Array | None, selected: float) -> dict[str, Any]:
    """Return those quantities of a step of `solve` that samples show; q is the squared norm of the
    weights.
    """
    square = float(model.weights @ model.weights)
    return {"step": t, "q": square, "bias": _bias(model, origin), "selected": selected}


def _fitted(
    matrix: Any, weights: Array, model: Fit, origin: Array | None, history: list[dict[str, Any]]
) -> Fitted:
    """Return the last model; its share is the mean predicted probability of the positive class."""
    bias = _bias(model, origin)
    logits = np.asarray(matrix @ model.weights) + bias
    share = float(np.clip(np.average(expit(logits), weights=weights), 1e-6, 1 - 1e-6))
    return Fitted(model.weights, bias, share, float(logit(share)), history)
