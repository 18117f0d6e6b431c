r"""`gradient`: the derivatives of a result of a run in all its parameters.

Every step defines its unknowns z by equations $F(z; \theta) = 0$, where $\theta$ are the old state,
the batch and the recipe of the step. With L a function of the states and $g = \partial L/\partial
z$, the implicit-function theorem gives $dL/d\theta = -F_\theta^T F_z^{-T} g$. The derivative in the
old state is propagated to the step before, so one pass from the last step to the first gives the
derivatives in all hyperparameters of all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput, NoGradient, nearest
from ...fields import whole
from ...labelers import HardLabels
from ...observables import SYMBOLS
from ...runtime.progress import Progress, ProgressOption, checked_progress
from ..trajectory import Trajectory
from . import pulls
from .quantities import Results, results
from .reverse_pass import reverse_pass

__all__ = ["Gradient", "gradient"]

ILL_CONDITIONED = 1e11
"""Largest condition number of a step; beyond it rounding errors of the averages dominate the
derivatives.
"""

FADED = 1e-180
"""Smallest q; the powers of a smaller one underflow."""

SCALE_FREE = ("error", "cosine", "one_minus_cosine")
"""Quantities that have a derivative however small the weights are."""


@dataclass(frozen=True, eq=False, repr=False)
class Gradient(Mapping[str, "float | Array"]):
    r"""Derivatives of one result of a run, by the name of the parameter.

    `gradient["lambda_u"]` is an array over steps 1..T, even if the recipe has one value for all
    steps: entry t is the derivative in the value of step t alone. The same holds for `threshold`,
    `sharpness`, `alpha_u`, `rho_u`, `delta_u`. For `lambda_l`, `annealing`, `alpha_l`, `rho`,
    `delta`, `label_noise` it is a number (for `annealing` an array if the recipe has one value per
    step). If the problem does not set `rho_u`, the derivative in `rho` includes its effect on the
    batches; likewise for `delta`.

    Attributes:
        of: name of the result that was differentiated.
        at: its step (None for a function of the whole run).
        value: its value.
        condition: condition number of each step: how much it magnifies errors of its averages.
    """

    of: str
    at: int | None
    value: float
    condition: Array
    _entries: dict[str, float | Array]
    _missing: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float | Array:
        if name in self._missing:
            raise NoGradient(f"no derivative in {name}: {self._missing[name]}")
        if name not in self._entries:
            known = (*self._entries, *self._missing)
            raise InvalidInput("gradient", name, f"unknown name; {nearest(str(name), known)}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the derivative of that name, or `default` if there is none."""
        return self._entries.get(name, default)

    def total(self, name: str) -> float:
        """Return the derivative in a common change of all steps: the sum of `gradient[name]`."""
        return float(np.sum(self[name]))

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        where = "" if self.at is None else f" at t={self.at}"
        sums = ", ".join(f"{name}={np.sum(value):.6g}" for name, value in self.items())
        return f"Gradient({self.of}{where} = {self.value:.6g}; sums over steps: {sums})"


def gradient(
    trajectory: Trajectory,
    of: str | Callable[[Trajectory], float] = "error",
    at: int = -1,
    progress: ProgressOption = None,
) -> Gradient:
    r"""Return the derivatives of a result of a run in every entry of its recipe and its problem.

    Arguments:
        trajectory: a result of `solve` for two classes, in which every sample is used once.
        of: a recorded quantity ("error", "cosine", "m", ...), or a function of the trajectory that
            returns a number; such a function is differentiated by central differences in the states
            of the run.
        at: the step of the quantity; counts from the end if negative.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    The derivative in the threshold at $\Gamma = 0$ is the one from above. `NoGradient` is raised
    for the derivative of a step whose labels have collapsed, in the sharpness of hard labels, and
    through an ill-conditioned step.

    >>> from selftrain import Problem, Recipe, solve
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
    >>> slope = gradient(solve(problem, Recipe(lambda_l=0.05, lambda_u=0.05)))
    >>> round(slope["lambda_l"], 6), slope["lambda_u"].shape
    (0.000996, (16,))
    """
    if not isinstance(trajectory, Trajectory):
        accepted = "must be a result of selftrain.solve for two classes and fresh batches"
        raise InvalidInput("trajectory", trajectory, accepted)
    trajectory.problem.needs_fresh_batches("the gradient")
    checked_progress(progress)
    name, step = _quantity(trajectory, of, at)
    last = trajectory.good_steps - 1 if step is None else step
    wanted = results(trajectory, of, step)
    if of == "error" and not wanted.wanted.columns.any():
        raise NoGradient(
            f"the error of step {step} is that of one class: no state near it has another"
        )
    with Progress(last + 1, "steps", progress, often=True) as bar:
        slopes = reverse_pass(trajectory, wanted.wanted, last, bar)
    condition = slopes[:, pulls.CONDITION].copy()
    _check(slopes, condition)
    entries, missing = _entries(trajectory, slopes, wanted)
    return Gradient(name, step, wanted.value, condition, entries, missing)


def _quantity(trajectory: Trajectory, of: Any, at: Any) -> tuple[str, int | None]:
    """Return name and step of the quantity to differentiate; raise if it has no derivative."""
    end = trajectory.good_steps
    total = trajectory.problem.steps + 1
    why = "the run failed" if trajectory.failure is not None else "the labels collapsed"
    if callable(of):
        if trajectory.fading is not None:
            raise NoGradient("the weights of the run have faded: no function of it is smooth")
        if end < total:
            raise NoGradient(f"{why} at step {end}: a function of the run has no derivative there")
        if at != -1:
            raise InvalidInput(
                "at", at, "must not be given: a function of the whole run is taken at no step"
            )
        return getattr(of, "__name__", "function"), None
    if not isinstance(of, str) or of not in SYMBOLS:
        accepted = f"must be a function or a recorded quantity; {nearest(str(of), SYMBOLS)}"
        raise InvalidInput("of", of, accepted)
    accepted = f"must be a step from 0 to {total - 1}, or a negative one from the end"
    step = whole("at", at, lambda n: -total <= n < total, accepted) % total
    if step >= end:
        raise NoGradient(f"{why} at step {end}: nothing has a derivative from there on")
    if not math.isfinite(getattr(trajectory, of)[step]):
        raise NoGradient(f"{of} does not exist at step {step}")
    if of not in SCALE_FREE and not trajectory.q[step] > FADED:
        raise NoGradient(f"the weights of step {step} have faded: q = {trajectory.q[step]:.1e}")
    return of, step


def _check(slopes: Array, condition: Array) -> None:
    worst = int(np.argmax(np.where(np.isnan(condition), math.inf, condition)))
    if not condition[worst] < ILL_CONDITIONED:
        raise NoGradient(
            f"the equations of step {worst} are ill-conditioned: they magnify errors by"
            f" {condition[worst]:.1e}"
        )
    if not np.isfinite(slopes).all():
        step = int(np.argmin(np.isfinite(slopes).all(axis=1)))
        raise NoGradient(f"the derivatives of step {step} overflow")


def _entries(
    run: Trajectory, slopes: Array, wanted: Results
) -> tuple[dict[str, float | Array], dict[str, str]]:
    """Return the derivatives by the names of the fields of problem and recipe, and the reasons why
    others do not exist.
    """
    problem, recipe = run.problem, run.recipe
    steps, last = problem.steps, len(slopes) - 1
    groups, part = run.space.groups, slice(last + 1)
    alpha = np.append(problem.alpha_l, problem.unlabeled.alpha)[part]
    rho = np.append(problem.rho, problem.unlabeled.rho)[part]
    weights = slopes[:, pulls.BY_GROUP + 4 * groups :]
    by_alpha, by_rho = weights.sum(axis=1) / alpha, slopes[:, pulls.POSITIVE]
    if groups == 2:
        by_rho = weights[:, 1] / rho - weights[:, 0] / (1.0 - rho)
    norms = np.zeros(last + 1)  # in the units of the step that starts from these weights
    norms[1:] = np.sqrt(run.scaled_q[:last]) * run.unit_changes[1 : last + 1]
    by_threshold = slopes[:, pulls.LIMIT] * norms * problem.sample_clusters[0].length
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}

    def enter(first: str, others: str, slope: Array) -> None:
        found[first], found[others] = slope[0], np.append(slope[1:], np.zeros(steps - last))

    enter("lambda_l", "lambda_u", slopes[:, pulls.RIDGE])
    if np.ndim(problem.label_noise):
        missing["label_noise"] = "it is a matrix of probabilities"
    else:
        found["label_noise"] = slopes[0, pulls.SHARPNESS] / (1.0 - problem.wrong_labels[0])
    enter("", "threshold", by_threshold)
    enter("alpha_l", "alpha_u", by_alpha)
    enter("rho", "rho_u", by_rho)
    if problem.clusters is None:
        delta = np.append(problem.delta, problem.unlabeled.delta)[part]
        enter("delta", "delta_u", slopes[:, pulls.SCALE] / delta)
    else:
        missing |= dict.fromkeys(("delta", "delta_u"), "clusters have covariances in its place")
    hard = np.isinf(recipe.at_steps(steps).sharpness)
    hard |= isinstance(recipe.label_function, HardLabels)
    if hard.any():
        reason = f"the labels are hard at step {int(np.argmax(hard)) + 1}"
        missing |= {"sharpness": reason, "annealing": reason}
    else:
        enter("", "sharpness", slopes[:, pulls.SHARPNESS])
        t, by_gamma = np.arange(1, steps + 1), found["sharpness"]
        by_step = by_gamma * np.broadcast_to(recipe.sharpness, steps) * t
        found["annealing"] = by_step if isinstance(recipe.annealing, tuple) else by_step.sum()
        found["sharpness"] = by_gamma * (1.0 + np.broadcast_to(recipe.annealing, steps) * t)
    del found[""]  # step 0 has neither threshold nor sharpness
    for name, extra in wanted.direct.items():
        if name in found:
            found[name] = found[name] + (extra if np.ndim(found[name]) else np.sum(extra))
    for name, follower in (("rho", "rho_u"), ("delta", "delta_u")):
        if name in found and getattr(problem, follower) is None:
            found[name] = found[name] + np.sum(found[follower])
    return {name: x if np.ndim(x) else float(x) for name, x in found.items()}, missing
