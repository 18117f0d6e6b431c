r"""Self-training of K classes of unequal proportions: which class is lost, and what saves it.

The class means form a simplex. `WAYS` are three ways to train: naive; with the heuristics of the
self-training paper (bias fixed, labels annealed); and with these after a first fit that weights the
classes equally. `best_bias` gives the last class vectors their best biases: the error that remains
is due to their directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...arrays import Array
from ...mixture.clusters import Clusters
from ...problem import Problem
from ...protocol import Fit, Protocol, SampleGroup, Use, protocol_of
from ...recipe import Recipe
from ...sweeps import Computation, Output
from ...theory.causal.classes import ClassTrajectory, largest_score
from ...theory.solve import solve
from .outputs import outputs
from .tuned import one_system

WAYS = ("naive", "heuristics", "weighted")
NAIVE = Recipe(lambda_l=0.2, lambda_u=0.02)
HELPED = NAIVE.replace(fix_bias=True, annealing=0.15)
TOLERANCE = 1e-3
OTHERS = 1e-9
"""Proportion of each other class in a sample group that represents a single class; proportions must
be positive."""


def setting(classes: int, steps: int = 0) -> Problem:
    """Return the problem of three classes, or of any other number (the figure uses ten)."""
    if classes == 3:
        clusters = Clusters.from_gram(1.5 * (np.eye(3) - 1 / 3), 0.5)
        return Problem(1.0, 3.0, (0.7, 0.2, 0.1), steps=steps, clusters=clusters)
    shares = 0.75 ** np.arange(classes)
    clusters = Clusters.simplex(classes, distance=2.5, delta=0.5)
    proportions = tuple((shares / shares.sum()).tolist())
    return Problem(2.0, 4.0, proportions, steps=steps, clusters=clusters)


def protocol(classes: int, way: str, steps: int) -> Protocol:
    """Return one of the `WAYS` to train as a protocol.

    "weighted" splits the labelled samples into one group per class, with equal total weights.
    """
    problem = setting(classes, steps)
    shares, clusters = problem.rho, problem.test_clusters
    plain = protocol_of(problem, NAIVE if way == "naive" else HELPED)
    if way != "weighted":
        return plain
    single = np.where(np.eye(classes) > 0, 1 - (classes - 1) * OTHERS, OTHERS)
    groups = [
        SampleGroup(f"class {k}", problem.alpha_l * share, tuple(single[k].tolist()), clusters)
        for k, share in enumerate(shares)
    ]
    first = Fit(
        plain.fits[0].ridge,
        plain.fits[0].loss,
        tuple(Use(k, 1 / (classes * share)) for k, share in enumerate(shares)),
    )
    later = [
        fit._replace(uses=tuple(use._replace(group=use.group + classes - 1) for use in fit.uses))
        for fit in plain.fits[1:]
    ]
    return Protocol((*groups, *plain.groups[1:]), (first, *later), test=(shares, clusters))


def rare_class(classes: int, way: str, steps: int) -> dict[str, Any]:
    """Return the run in the large-system limit."""
    run = solve(protocol(classes, way, steps), tolerance=TOLERANCE)
    error, recall = best_bias(run)
    return {
        "t": run.t,
        "class": np.arange(classes),
        "error": run.error,
        "recall": np.diagonal(run.confusion, axis1=1, axis2=2),
        "shares": run.label_shares,
        "best_error": error,
        "best_recall": recall,
    }


def rare_class_run(classes: int, way: str, steps: int, features: int, seed: int) -> dict[str, Any]:
    """Simulate one finite system."""
    runs = one_system(protocol(classes, way, steps), None, features, seed)
    recall = np.diagonal(runs.confusion[0], axis1=1, axis2=2)
    made = {"t": np.arange(steps + 1), "class": np.arange(classes)}
    return {**made, "error": runs.error[0], "recall": recall}


def best_bias(run: ClassTrajectory) -> tuple[float, Array]:
    """Return the error of the last class vectors with their best biases, and the recalls."""
    shares, covariances = np.array(run.proportions), run.covariances[-1]
    scale = float(np.sqrt(np.trace(covariances[0])))

    def recalls(x: Array) -> Array:
        bias = scale * np.append(x, -x.sum())
        each = zip(run.m[-1].T, covariances, strict=True)
        return np.array([largest_score(m + bias, c)[k] for k, (m, c) in enumerate(each)])

    start: Array = run.bias[-1][:-1] / scale

    def error(x: Array) -> float:
        return float(1 - shares @ recalls(x))

    found = minimize(error, start, method="Nelder-Mead")
    return float(found.fun), recalls(found.x)


_OF_RUN = {
    **outputs("t", "t", error=r"\epsilon_g^{(t)}"),
    "class": Output("k", ("class",)),
    **outputs("", "t", "class", recall="recall"),
}
RARE_CLASS = Computation(
    rare_class,
    {
        **_OF_RUN,
        **outputs("", "t", "class", shares="proportions of the pseudo-labels"),
        **outputs("", best_error=r"\epsilon_g^{(T)}, best biases"),
        **outputs("", "class", best_recall="recall, best biases"),
    },
    seconds=lambda steps, **_: 0.7 * steps,
)
RARE_CLASS_RUN = Computation(
    rare_class_run, _OF_RUN, seconds=lambda features, steps, **_: 1e-3 * features * steps
)
