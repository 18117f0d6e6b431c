r"""Comparison of an ensemble with the theory: z-scores, relative deviations, distances of
distributions, and a verdict.

The verdict has three values, each with 95 % confidence. The runs *agree* with the theory to x %:
no deviation is larger than x %, and x is below the limit `within`. They *differ*: some deviation is
larger than the limit. They *cannot tell*: the confidence interval of a deviation contains the
limit. Then more seeds shorten the interval, and more features reduce a finite-size deviation.
Whether a deviation is statistically significant is another question: a significant deviation may
be below the limit, or not yet known to be below or above it. This is reported with each verdict
(`finite_size`). `deviation.py` has the statistics.

A deviation is relative to a scale: the theory's value; for the bias $\sqrt{q + B^2}$, because B may
be zero, and likewise for the entries of m and B of K classes; one for proportions of samples, so
that a deviation of 1 % is one sample in a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import InvalidInput
from ..fields import number
from ..losses import Squared
from ..observables import entries
from ..theory.causal.classes import ClassTrajectory
from ..theory.trajectory import Trajectory
from .deviation import Deviation, Gap, deviation, gaps
from .ensemble import Ensemble
from .run_plan import drawn_sizes
from .seed_record import seed_mean, seed_sem

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("fraction_selected", "pseudo_label_accuracy", "selected_label_accuracy")
COMPARED = ("q", "m", "bias", "overlap", "chi", "error", "test_error", "cosine", *LABELS,
            "train_loss")  # fmt: skip
COMPARED_CLASSES = ("q", "m", "bias", "overlap", "chi", "error", "class_errors", "label_shares",
                    "test_error", *LABELS, "train_loss")  # fmt: skip
"""Quantities that are compared for more than two classes."""

SHARES = ("class_errors", "label_shares", "test_error", *LABELS)
"""Quantities that are proportions of samples."""

WITHIN = 0.1
"""Runs and theory agree if every deviation is below this, with confidence."""

ROW = "{:32} {:>16} {:>10} {:>10} {:>10} {:>10}"
COLUMNS = ("deviation of", "largest, at t", "all steps", "chance", "detectable", "at most")

EXACT = 1e-12
"""Numbers that differ by less than this, relative to the larger of theory and one, are equal."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing simulated runs with the theory.

    Attributes:
        theory: the trajectory compared with. It is solved again at the numbers of samples that were
            drawn, if rounding made M/N differ from alpha.
        z: (mean over seeds - theory) / standard error, by name, over t; NaN if undefined, for
            instance with fewer than two seeds.
        deviations: size and significance of the deviations, by name, from the steps at which every
            seed has a value.
        seeds: number of seeds that have a state at each step.
        gaps: distances of distributions, if vectors were stored.
        within: the relative deviation below which runs and theory agree.
        complete: whether all seeds and the theory have an error at every step, except for fits of a
            protocol that neither has because labels collapsed.
        note: a caveat for the reader; may be empty.
    """

    theory: Any
    z: dict[str, Array]
    deviations: dict[str, Deviation]
    seeds: NDArray[np.int_]
    gaps: tuple[Gap, ...]
    within: float
    complete: bool
    note: str

    @property
    def scores(self) -> Array:
        """All z-scores in one array, those of distributions included."""
        parts = [np.ravel(values) for values in self.z.values()]
        every = np.concatenate([*parts, [gap.z for gap in self.gaps]])
        return np.asarray(every[np.isfinite(every)])

    @property
    def worst(self) -> tuple[str, int, float] | None:
        """Name, step and value of the z-score that is largest in size; None if there is none."""
        scores = [
            (key, step, float(values[step]))
            for key, values in self.z.items()
            for step in np.flatnonzero(np.isfinite(values)).tolist()
        ]
        return max(scores, key=lambda score: abs(score[2]), default=None)

    @property
    def judged(self) -> dict[str, Deviation]:
        """All deviations by the name of the quantity, distributions included."""
        return {**self.deviations, **{str(gap): gap.deviation for gap in self.gaps}}

    def consistent(self) -> bool | None:
        """Return True if runs and theory agree, False if they differ, None if the runs cannot
        tell.
        """
        found = self.judged.values()
        if any(one.at_least > self.within for one in found):
            return False
        sure = self.complete and all(one.at_most < self.within for one in found)
        return True if found and sure else None

    @property
    def verdict(self) -> str:
        """The verdict in words: "agree to x %", "differ" or "cannot tell", and why."""
        if not self.judged:
            return "cannot tell: no mean has an error, which takes two seeds or more"
        if self.consistent() is False:
            name, one = max(self.judged.items(), key=lambda entry: entry[1].at_least)
            at_least = max(one.at_least, self.within)
            return f"differ: {name} by {percent(one.largest)}, at least by {percent(at_least)}"
        name, one = max(self.judged.items(), key=lambda entry: entry[1].at_most)
        if self.consistent():
            return (
                f"agree to {percent(one.at_most)}, every quantity at every step (confidence 95 %)"
            )
        if not self.complete:
            return "cannot tell: some seeds, or the theory, end before the last step"
        limit = (
            f"up to {percent(one.at_most)}, and agreement means less than {percent(self.within)}"
        )
        if one.real:
            off = f"{name} is {percent(one.largest)} off, which is not chance"
            return (
                f"cannot tell: more seeds or features; {off}, but may be more or less than the"
                f" {percent(self.within)} that divide agreement from difference (at most"
                f" {percent(one.at_most)})"
            )
        return f"cannot tell: more seeds or features; {name} may be off by {limit}"

    @property
    def finite_size(self) -> str:
        """A sentence on statistically significant deviations, compared with 1/N; may be empty."""
        found = [
            f"{name} {percent(one.largest)} = {one.times_features:.3g}/N"
            for name, one in self.judged.items()
            if one.real
        ]
        if not found:
            return ""
        return (
            f"more than chance: {', '.join(found)}; if finite size is the cause, twice the features"
            " halve it"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the z-scores as a DataFrame, one row per step."""
        import pandas as pd

        return pd.DataFrame(self.z, index=pd.Index(np.arange(self.seeds.size), name="t"))

    def __str__(self) -> str:
        lines = [ROW.format(*COLUMNS)] if self.judged else []
        lines += [
            ROW.format(
                name,
                f"{percent(one.largest)} at {one.at}",
                *map(percent, (one.pooled, one.by_chance, one.detectable, one.at_most)),
            )
            for name, one in self.judged.items()
        ]
        if self.worst is not None:
            name, step, z = self.worst
            lines.append(f"largest |z| of {self.scores.size}: {abs(z):.2f} ({name} at t = {step})")
        return "\n".join([*lines, *filter(None, (self.finite_size, self.note)), self.verdict])


def percent(value: float) -> str:
    """Return a relative number as a percentage with two digits.

    >>> percent(2.2178), percent(-0.00123)
    ('220 %', '-0.12 %')
    """
    return f"{float(f'{100 * value:.2g}'):g} %"


def compare(ensemble: Ensemble, trajectory: Any, within: float = WITHIN) -> Comparison:
    """Compare an ensemble with the theory: z-scores and relative deviations of all means, distances
    of all distributions that were stored, and a verdict. The entries of vectors and matrices
    (K classes) are compared separately.

    Arguments:
        within: the relative deviation below which runs and theory agree.

    >>> from selftrain import Problem, Recipe, simulate, solve
    >>> problem, recipe = Problem(1.0, 2.0, 0.4, 0.5, steps=2), Recipe()
    >>> ensemble = simulate(problem, recipe, features=4000, seeds=8)
    >>> ensemble.compare(solve(problem, recipe)).consistent()
    True
    """
    must = "must be strictly between 0 and 1"
    within = number("within", within, lambda value: 0 < value < 1, must)
    theory = _as_drawn(ensemble, trajectory)
    pairs = list(_pairs(ensemble, theory))
    known = [pair for pair in pairs if np.isfinite(pair.seen).any()]
    laws = gaps(ensemble, theory, len(known)) if isinstance(theory, Trajectory) else ()
    tests = len(known) + len(laws)
    found = {pair.name: _deviation(ensemble, pair, tests) for pair in known}
    return Comparison(
        theory,
        {pair.name: _scores(pair) for pair in pairs},
        {name: one for name, one in found.items() if one is not None},
        ensemble.count(),
        laws,
        within,
        complete=_complete(ensemble, theory),
        note=_note(ensemble),
    )


class _Pair(NamedTuple):
    """A quantity of runs and theory.

    Attributes:
        seen: values of the runs, (seeds, steps + 1).
        expected: values of the theory.
        resolution: smallest difference of two values (1/n for a proportion of n samples).
        unit: scale of deviations.
    """

    name: str
    seen: Array
    expected: Array
    resolution: Array
    unit: Array


def _pairs(ensemble: Ensemble, theory: Any) -> Iterator[_Pair]:
    """Yield the quantities that are compared."""
    for name in COMPARED if ensemble.classes == 2 else COMPARED_CLASSES:
        told = expected(theory, name, ensemble.classes)
        losses = {type(fit.loss) for fit in ensemble.protocol.fits}
        if told is None or (name == "label_shares" and Squared in losses):
            continue  # soft labels of the squared loss are not probabilities
        seen = ensemble.components(name).items()
        for (key, runs), one in zip(seen, entries(name, told, 1).values(), strict=True):
            resolution, unit = np.zeros(one.size), np.abs(one)
            if name in SHARES:
                count = np.maximum(np.isfinite(runs).sum(axis=0), 1)
                resolution = 1.0 / (count * ensemble.alpha * ensemble.features)
                unit = np.ones(one.size)
            elif name == "bias" or told.ndim > 1:  # an entry may be zero
                unit = np.hypot(one, np.sqrt(expected(theory, "q", ensemble.classes)))
            yield _Pair(key, runs, one, resolution, unit)


def expected(theory: Any, name: str, classes: int) -> Any:
    """Return a quantity of the theory in the units of an ensemble; None if the theory does not have
    it.

    The theory of a protocol with two classes is in two scores, which are minus and plus half the
    logit; they are converted.
    """
    if name == "test_error":
        name = "error"
    if isinstance(theory, Trajectory):
        return np.asarray(getattr(theory, name))
    if name == "overlap":
        before = np.append(np.nan, np.diagonal(theory.overlaps, -1))
        return before if classes > 2 else 2 * before
    found = getattr(theory, name, None)
    if found is None or classes > 2:
        return found
    if name == "m":
        return 2 * found[:, 1, 1]
    if name == "bias":
        return 2 * found[:, 1]
    return 2 * found if name == "q" else found


def _as_drawn(ensemble: Ensemble, trajectory: Any) -> Any:
    """Return the theory at the numbers of samples that were drawn; raise if it is not the theory of
    this ensemble.
    """
    from ..theory.solve import solve

    if not isinstance(trajectory, (Trajectory, ClassTrajectory)):
        raise InvalidInput("trajectory", trajectory, "must be a Trajectory, from selftrain.solve")
    protocol, features = ensemble.protocol, ensemble.features
    same = trajectory.recipe == ensemble.recipe and trajectory.problem == ensemble.problem
    if not same or (ensemble.problem is None and trajectory.protocol != protocol):
        raise InvalidInput("trajectory", trajectory, "must be of the same problem and recipe")
    drawn = (drawn_sizes(protocol, features) / features).tolist()
    if np.allclose(drawn, [group.alpha for group in protocol.groups], rtol=1e-12, atol=0):
        return trajectory
    tolerance = trajectory.stats.tolerance
    if ensemble.problem is None:
        pairs = zip(protocol.groups, drawn, strict=True)
        groups = tuple(replace(group, alpha=alpha) for group, alpha in pairs)
        return solve(replace(protocol, groups=groups), tolerance=tolerance)
    unlabeled = [
        sum(drawn[use.group] for use in fit.uses if not protocol.groups[use.group].labeled)
        for fit in protocol.fits[1:]
    ]
    problem = ensemble.problem.replace(alpha_l=drawn[0])
    if any(unlabeled):
        problem = problem.replace(alpha_u=tuple(unlabeled))
    return solve(problem, ensemble.recipe, tolerance=tolerance)


def _scores(pair: _Pair) -> Array:
    """Return the z-scores of a quantity."""
    off = seed_mean(pair.seen) - pair.expected
    exact = np.abs(off) <= EXACT * np.maximum(np.abs(pair.expected), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(exact, 0.0, off / np.fmax(seed_sem(pair.seen), pair.resolution))
    return np.asarray(np.where(np.isfinite(pair.seen).sum(axis=0) > 1, z, np.nan))


def _deviation(ensemble: Ensemble, pair: _Pair, tests: int) -> Deviation | None:
    """Return the deviations of a quantity; None if no step can be tested. `tests` is the number of
    quantities tested together.
    """
    off = pair.seen - pair.expected
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.abs(off) <= EXACT * np.abs(pair.expected)
        relative = np.where(exact, 0.0, off / pair.unit)
    return deviation(relative, ensemble.features, tests, pair.resolution)


def _complete(ensemble: Ensemble, theory: Any) -> bool:
    """Return whether all seeds and the theory have an error at every step.

    In a protocol, the theory has none for a collapsed fit and those that depend on it. If all seeds
    lost the same fits, nothing is missing.
    """
    known = np.isfinite(ensemble.error - theory.error).all(axis=0)
    if ensemble.problem is None and theory.failure is None and not ensemble.failures:
        known |= np.isnan(theory.q) & (ensemble.count() == 0)
    return bool(known.all())


def _note(ensemble: Ensemble) -> str:
    if ensemble.method == "rows":
        return "real rows: the deviations show how far they are from Gaussian clusters"
    ended = {
        "collapsed": int((ensemble.collapsed_at >= 0).sum()),
        "failed": len(ensemble.failures),
    }
    parts = [f"{count} {how}" for how, count in ended.items() if count]
    if not parts:
        return ""
    found = f"of {len(ensemble.seeds)} seeds {' and '.join(parts)}"
    if set(ensemble.count().tolist()) <= {0, len(ensemble.seeds)}:
        return found
    return (
        f"{found}: from there on only what all seeds have is judged, and z-scores are of the"
        " others, which are not a fair sample"
    )
