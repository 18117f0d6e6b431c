r"""An ensemble next to the theory: z-scores of means, distances of distributions.

The mean of a quantity over n seeds minus the theory, in units of its standard error, follows Student's t with
n - 1 degrees of freedom as long as n times the $O(1/N)$ shift of the mean is small. Distributions of weights and logits
are compared pooled over seeds, with errors from the differences between seeds: m and B fluctuate
at the same order as the sampling noise, so a Kolmogorov-Smirnov level would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..arrays import Array
from ..errors import InvalidInput
from ..theory.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd

    from .ensemble import Ensemble

COMPARED = (
    "q",
    "m",
    "bias",
    "overlap",
    "chi",
    "error",
    "test_error",
    "cosine",
    "fraction_selected",
    "pseudo_label_accuracy",
    "selected_label_accuracy",
    "train_loss",
)

SHARES = (
    "test_error",
    "fraction_selected",
    "pseudo_label_accuracy",
    "selected_label_accuracy",
)

LEVELS = np.linspace(0.02, 0.98, 25)
"""Where distribution functions are compared."""


@dataclass(frozen=True)
class Gap:
    """A pooled distribution against its law.

    Attributes:
        what: "weights" or "logits"; `t`: the step.
        selected: the points the threshold keeps (True), rejects (False), or all (None).
        distance: largest difference of the distribution functions.
        z: largest difference in units of its error between seeds.
        points: how many numbers were pooled.
    """

    what: str
    t: int
    selected: bool | None
    distance: float
    z: float
    points: int


@dataclass(frozen=True)
class Comparison:
    """How far a theory is from the runs.

    Attributes:
        theory: the trajectory compared with, solved anew if M/N differs from alpha by rounding.
        z: (mean over seeds - theory) / standard error, by name, over t (NaN where there is none, with fewer
            than two seeds for instance).
        seeds: how many seeds have a state at each step.
        gaps: distances of distributions, if vectors were kept.
        note: why the theory does not describe these runs, or what to bear in mind; empty if nothing.
        applies: whether the theory is meant to describe them.
    """

    theory: Trajectory
    z: dict[str, Array]
    seeds: NDArray[np.int_]
    gaps: tuple[Gap, ...]
    note: str
    applies: bool

    @property
    def scores(self) -> Array:
        """All z-scores in one array, those of distributions included."""
        parts = [np.ravel(values) for values in self.z.values()]
        every = np.concatenate([*parts, [gap.z for gap in self.gaps]])
        return np.asarray(every[np.isfinite(every)])

    @property
    def worst(self) -> tuple[str, int, float] | None:
        """Name, step and z-score of the largest deviation of a mean; None if there is no score."""
        scores = [
            (key, step, float(values[step]))
            for key, values in self.z.items()
            for step in np.flatnonzero(np.isfinite(values)).tolist()
        ]
        return max(scores, key=lambda score: abs(score[2]), default=None)

    def limit(self, level: float = 1e-4) -> float:
        """|z| that all scores together exceed with probability at most `level`, by Student's t.

        Each gap is a maximum over 25 points of a distribution function and counts 25 times.
        """
        tests = sum(np.isfinite(values).sum() for values in self.z.values())
        tests += LEVELS.size * len(self.gaps)
        freedom = max(int(np.max(self.seeds)) - 1, 1)
        return float(stats.t.isf(level / (2 * max(int(tests), 1)), freedom))

    def consistent(self, level: float = 1e-4) -> bool | None:
        """Whether no score is beyond the family-wise limit.

        None where that cannot be told: the theory is not about these runs (`applies`), or there is no score.
        """
        if not self.applies or self.scores.size == 0:
            return None
        return bool(np.abs(self.scores).max() <= self.limit(level))

    def to_frame(self) -> pd.DataFrame:
        """z-scores, one row a step."""
        import pandas as pd

        return pd.DataFrame(self.z, index=pd.Index(np.arange(self.seeds.size), name="t"))

    def __str__(self) -> str:
        if self.worst is None:
            lines = ["nothing to compare: no mean has an error, which takes two seeds or more"]
        else:
            name, step, z = self.worst
            lines = [
                f"largest |z| of {self.scores.size}: {abs(z):.2f} ({name} at t = {step}); "
                f"family-wise limit at 1e-4: {self.limit():.2f}"
            ]
        if self.gaps:
            far = max(self.gaps, key=lambda gap: abs(gap.z))
            lines.append(
                f"distributions: largest distance {max(gap.distance for gap in self.gaps):.2e}, "
                f"largest |z| {far.z:.2f} ({far.what} at t = {far.t})"
            )
        return "\n".join([*lines, self.note] if self.note else lines)


def compare(ensemble: Ensemble, trajectory: Trajectory) -> Comparison:
    """z-scores of all means and distances of all distributions that were kept.

    >>> from selftrain import Problem, Recipe, simulate, solve
    >>> problem, recipe = Problem(1.0, 2.0, 0.4, 0.5, steps=2), Recipe()
    >>> simulate(problem, recipe, features=1000, seeds=8).compare(solve(problem, recipe)).consistent()
    True
    """
    theory = _as_drawn(ensemble, trajectory)
    z = {name: _scores(ensemble, theory, name) for name in COMPARED}
    gaps = tuple(_gaps(ensemble, theory)) if ensemble.vectors and not theory.problem.shaped else ()
    note, applies = _note(ensemble)
    return Comparison(theory, z, ensemble.count("m"), gaps, note, applies)


def _as_drawn(ensemble: Ensemble, trajectory: Trajectory) -> Trajectory:
    """The theory at the numbers of rows that were drawn."""
    if not isinstance(trajectory, Trajectory):
        raise InvalidInput("trajectory", trajectory, "a Trajectory, from selftrain.solve")
    same = trajectory.recipe == ensemble.recipe and trajectory.problem == ensemble.problem
    if not same:
        raise InvalidInput("trajectory", trajectory, "one of the same problem and recipe is needed")
    meant = np.append(ensemble.problem.alpha_l, ensemble.problem.unlabeled.alpha)
    if np.allclose(meant, ensemble.alpha, rtol=1e-12, atol=0):
        return trajectory
    from ..theory.solve import solve

    drawn = ensemble.problem.replace(
        alpha_l=float(ensemble.alpha[0]), alpha_u=tuple(ensemble.alpha[1:].tolist())
    )
    return solve(drawn, ensemble.recipe, tolerance=trajectory.stats.tolerance)


def _scores(ensemble: Ensemble, theory: Trajectory, name: str) -> Array:
    expected = np.asarray(getattr(theory, "error" if name == "test_error" else name))
    difference = ensemble.mean(name) - expected
    error, count = ensemble.sem(name), ensemble.count(name)
    exact = np.abs(difference) <= 1e-12 * np.maximum(np.abs(expected), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if name in SHARES:  # known no better than by one of all the points
            error = np.maximum(error, 1.0 / (count * ensemble.alpha * ensemble.features))
        z = np.where(exact, 0.0, difference / error)
    return np.asarray(np.where(count > 1, z, np.nan))


def _gaps(ensemble: Ensemble, theory: Trajectory) -> Iterable[Gap]:
    for t in range(theory.good_steps):
        weights = [seed.weights[t] for seed in ensemble.vectors if len(seed.weights) > t]
        if len(weights) > 1:
            at = np.quantile(np.concatenate(weights), LEVELS)
            yield _gap("weights", t, None, weights, at, theory.weights.cdf(at, t))
        rows = [seed for seed in ensemble.vectors if len(seed.logits) > t]
        if not rows:
            continue
        law = theory.logits(t)
        for kept in (True, False):
            logits = [seed.logits[t][seed.selected[t] == kept] for seed in rows]
            if len(logits) > 1 and min(part.size for part in logits) > 0:
                at = np.quantile(np.concatenate(logits), LEVELS)
                yield _gap("logits", t, kept, logits, at, law.cdf(at, selected=kept))


def _gap(
    what: str, t: int, selected: bool | None, samples: list[Array], at: Array, law: Array
) -> Gap:
    shares = np.array(
        [np.searchsorted(np.sort(one), at, side="right") / one.size for one in samples]
    )
    pooled = shares.mean(axis=0)
    difference = pooled - law
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / (shares.std(axis=0, ddof=1) / np.sqrt(len(samples)))
    far = int(np.nanargmax(np.abs(z))) if np.isfinite(z).any() else 0
    size = int(sum(one.size for one in samples))
    return Gap(what, t, selected, float(np.abs(difference).max()), float(z[far]), size)


def _note(ensemble: Ensemble) -> tuple[str, bool]:
    if ensemble.method == "rows":
        return "real rows: what the scores show is how far they are from Gaussian clusters", True
    ended = {
        "collapsed": int((ensemble.collapsed_at >= 0).sum()),
        "failed": len(ensemble.failures),
    }
    parts = [f"{count} {how}" for how, count in ended.items() if count]
    if parts:
        return (
            f"of {len(ensemble.seeds)} seeds {' and '.join(parts)}: from there on means are over "
            "the others, which are not a fair sample",
            True,
        )
    return "", True
