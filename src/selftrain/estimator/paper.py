"""The paper's self-training to the letter (`eq: update of ST`), on a user's rows.

Step 0 fits the labelled rows. Every later step takes a batch of unlabelled rows that no step has
used, labels it by the logits of the model before, leaves out rows below the threshold and fits the
rest; labelled rows do not come back. Columns stay as they are: the theory has clusters at plus and
minus a mean, so with a fixed bias a midpoint far from 0 should be taken off first. A trained bias
makes the offset of a column arbitrary; rows are then measured from a point among them, for an
offset that is large against the spread would take the digits of the fit. The ridge is per column,
as in `solve`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit

from ..arrays import Array
from ..errors import EmptySelection
from ..losses import Logistic
from ..recipe import Recipe
from ..simulation.linear.fit import Fit, fit
from ..simulation.pseudo_labels import one_class
from .rows import is_dask, is_sparse
from .training import Fitted

STEPS = 8
"""Batches when the user does not say: half of the 16 steps of the reference problem, for rows are
few.
"""


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
        classes: 0 or 1, -1 for a row without label.
        steps: batches that the unlabelled rows are dealt into.
    """
    loss, columns = Logistic(), matrix.shape[1]
    known = np.flatnonzero(classes >= 0)
    batches = _dealt(np.flatnonzero(classes < 0), steps, random)
    values = recipe.at_steps(steps)
    labeled = _taken(matrix, known)
    origin = _origin(labeled, recipe.fix_bias)
    model = fit(
        _from(origin, labeled),
        classes[known].astype(float),
        loss,
        recipe.lambda_l * columns,
        rows=weights[known],
    )
    history = [_entry(0, model, origin, 1.0)]
    for t, batch in enumerate(batches, start=1):
        rows = _from(origin, _taken(matrix, batch))
        logits = np.asarray(rows @ model.weights) + model.bias
        size = float(np.linalg.norm(model.weights))
        selected = np.abs(logits) > values.threshold[t - 1] * size
        if not selected.any():
            reason = f"the threshold {values.threshold[t - 1]:g} rejects every row of the batch"
            raise EmptySelection(
                t, reason, {"q": size**2, "bias": _bias(model, origin)}, float("nan")
            )
        targets = recipe.label_function.target(logits, float(values.sharpness[t - 1]), loss)
        if one_class(targets[selected], loss) and not recipe.fix_bias:
            warnings.warn(
                f"all labels of step {t} are of one class; the model of step {t - 1} is kept",
                UserWarning,
                stacklevel=6,
            )
            break
        model = fit(
            rows,
            targets,
            loss,
            float(values.lambda_u[t - 1]) * columns,
            rows=selected * weights[batch],
            fit_bias=not recipe.fix_bias,
            weights=model.weights,
            bias=model.bias,
        )
        history.append(_entry(t, model, origin, float(selected.mean())))
    return _fitted(matrix, known, weights, model, origin, history)


def _origin(rows: Any, fix_bias: bool) -> Array | None:
    """The point that rows are measured from; None to take them as they are.

    A bias that is fixed belongs to the origin of the user, and sparse rows would become dense.
    """
    return None if fix_bias or is_sparse(rows) else np.asarray(rows[0], dtype=float)


def _from(origin: Array | None, rows: Any) -> Any:
    return rows if origin is None else rows - origin


def _bias(model: Fit, origin: Array | None) -> float:
    """The bias in the user's units."""
    return float(model.bias if origin is None else model.bias - origin @ model.weights)


def _dealt(rows: Any, steps: int, random: np.random.RandomState) -> list[Any]:
    """Batches of equal size, in random order; rows that do not fill a batch are left out."""
    if len(rows) == 0 or steps == 0:
        return []
    size = max(1, len(rows) // steps)
    mixed = random.permutation(rows)
    return [np.sort(mixed[k * size : (k + 1) * size]) for k in range(min(steps, len(rows)))]


def _taken(matrix: Any, rows: Any) -> Any:
    found = matrix[rows]
    return np.asarray(found.compute()) if is_dask(found) else found


def _entry(t: int, model: Fit, origin: Array | None, selected: float) -> dict[str, Any]:
    """What `solve` reports of a step, as far as rows show it; q is the squared norm of the
    weights.
    """
    square = float(model.weights @ model.weights)
    return {"step": t, "q": square, "bias": _bias(model, origin), "selected": selected}


def _fitted(
    matrix: Any,
    known: Any,
    weights: Array,
    model: Fit,
    origin: Array | None,
    history: list[dict[str, Any]],
) -> Fitted:
    """The last model; the share of the positive class is what it gives all rows on average."""
    bias = _bias(model, origin)
    logits = np.asarray(matrix @ model.weights) + bias
    share = float(np.clip(np.average(expit(logits), weights=weights), 1e-6, 1 - 1e-6))
    even = float(np.log(share / (1 - share)))
    return Fitted(model.weights, bias, share, 1.0, 0.0, even, logits[known], history)
