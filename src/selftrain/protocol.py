r"""What is fitted to what: a `Problem` and a `Recipe` written out as groups of samples and fits.

Fit t minimises $\sum_g k_g(t) \sum_{\mu\in g} l(y_\mu^{(t)}, u_\mu) + \lambda_t |w|^2/2$. A
`Protocol` lists the groups g, and for every fit its loss, its ridge, its uses of groups (weight
$k_g(t)$, labels $y^{(t)}$ given or made by an earlier fit) and where its bias comes from. This
module is the only one that knows what "fresh", "reused", "kept" or a pool is; theory and simulation
read the protocol.

The labelled samples are one group, with weight 1 in fit 0 and `keep_labeled` later. `batches` names
the unlabelled samples of each step: "fresh" (samples of its own), "reused" (the same ones in every
step), or a name per step. A name that returns means the same samples; names joined by "+" are parts
of a pool, which share the `alpha_u` of the step equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import Array
from .errors import InvalidInput
from .fields import expand
from .mixture.clusters import Clusters

if TYPE_CHECKING:
    from .labelers import Labeler
    from .losses import Loss
    from .problem import Problem
    from .recipe import Recipe

__all__ = [
    "LABELED",
    "BatchNames",
    "Fit",
    "Protocol",
    "PseudoLabels",
    "SampleGroup",
    "Use",
    "batch_names",
    "every_sample_once",
    "new_samples",
    "parts_of",
    "protocol_of",
    "sample_groups",
]

BatchNames = str | tuple[str, ...]

LABELED = "labeled"
"""The name of the labelled samples."""


class SampleGroup(NamedTuple):
    r"""Samples that are always used together.

    Attributes:
        name: its name; `LABELED` for the labelled samples.
        alpha: samples per feature.
        proportions: share of every class, of sum one; with two classes (negative, positive).
        law: the clusters that samples come from; a sphere has one mode.
    """

    name: str
    alpha: float
    proportions: tuple[float, ...]
    law: Clusters

    @property
    def labeled(self) -> bool:
        """Whether these are the labelled samples."""
        return self.name == LABELED


class PseudoLabels(NamedTuple):
    r"""Labels that an earlier fit makes from a sample's own logit.

    Attributes:
        teacher: the fit r < t whose logit $u^{(r)}$ is used.
        sharpness: $\gamma$; infinite for hard labels.
        threshold: $\Gamma$: samples with $|u^{(r)}| \le \Gamma|w^{(r)}|$ are rejected (in units of
            the distance of the class means).
        labeler: makes the label of a logit.
    """

    teacher: int
    sharpness: float
    threshold: float
    labeler: Labeler

    @property
    def jumps(self) -> bool:
        """Whether label or selection is a discontinuous function of the logit."""
        return self.threshold > 0 or bool(self.labeler.jumps(self.sharpness))


class Use(NamedTuple):
    """A group in a fit: its index, its weight in the loss, its labels (None: the given ones)."""

    group: int
    weight: float
    labels: PseudoLabels | None = None


class Fit(NamedTuple):
    """One fit: ridge, loss, samples, and the earlier fit whose bias it copies (None: trained)."""

    ridge: float
    loss: Loss
    uses: tuple[Use, ...]
    bias_of: int | None = None


@dataclass(frozen=True)
class Protocol:
    """Groups of samples, and the fits t = 0..T to them, in order.

    >>> from selftrain import Problem, Recipe
    >>> problem = Problem(0.5, 2.0, 0.4, 0.5, steps=2, batches="reused", keep_labeled=0.3)
    >>> protocol = protocol_of(problem, Recipe(fix_bias=True))
    >>> [group.name for group in protocol.groups], protocol.every_sample_once
    (['labeled', 'batch'], False)
    >>> kept, reused = protocol.fits[2].uses
    >>> (kept.group, kept.weight, kept.labels), (reused.group, reused.labels.teacher)
    ((0, 0.3, None), (1, 1))
    """

    groups: tuple[SampleGroup, ...]
    fits: tuple[Fit, ...]

    def __post_init__(self) -> None:
        for t, fit in enumerate(self.fits):
            teachers = [use.labels.teacher for use in fit.uses if use.labels is not None]
            if fit.bias_of is not None:
                teachers.append(fit.bias_of)
            for teacher in teachers:
                if not 0 <= teacher < t:
                    accepted = f"fit {t} can take labels and bias from fits before it only"
                    raise InvalidInput("teacher", teacher, accepted)

    @property
    def steps(self) -> int:
        """The number T of fits after fit 0."""
        return len(self.fits) - 1

    @cached_property
    def uses(self) -> tuple[dict[int, Use], ...]:
        """For each group, the fits that use it and how."""
        found: tuple[dict[int, Use], ...] = tuple({} for _ in self.groups)
        for t, fit in enumerate(self.fits):
            for use in fit.uses:
                found[use.group][t] = use
        return found

    @property
    def every_sample_once(self) -> bool:
        """Whether no sample is used by two fits, so that every step depends on the one before."""
        return all(len(used) < 2 for used in self.uses)

    @property
    def first_reuse(self) -> int | None:
        """The first fit that uses samples of an earlier one; None if there is none."""
        seconds = [sorted(used)[1] for used in self.uses if len(used) > 1]
        return min(seconds, default=None)

    @property
    def jumps(self) -> bool:
        """Whether labels or selection of some fit are discontinuous."""
        labels = (use.labels for fit in self.fits for use in fit.uses)
        return any(made is not None and made.jumps for made in labels)


def protocol_of(problem: Problem, recipe: Recipe) -> Protocol:
    """Write a problem and a recipe out as a protocol."""
    groups, steps = sample_groups(problem), problem.steps
    place = {group.name: index for index, group in enumerate(groups)}
    values, labeler = recipe.at_steps(steps), recipe.label_function
    kept = expand("keep_labeled", problem.keep_labeled, steps)
    fits = [Fit(recipe.lambda_l, problem.loss_at(0), (Use(0, 1.0),))]
    for t, parts in enumerate(parts_of(problem.batches, steps), start=1):
        ridge, threshold, sharpness = (float(column[t - 1]) for column in values)
        labels = PseudoLabels(t - 1, sharpness, threshold, labeler)
        uses = [Use(0, float(kept[t - 1]))] if kept[t - 1] > 0 else []
        uses += [Use(place[part], 1.0, labels) for part in parts]
        bias_of = 0 if recipe.fix_bias else None
        fits.append(Fit(ridge, problem.loss_at(t), tuple(uses), bias_of))
    return Protocol(groups, tuple(fits))


def sample_groups(problem: Problem) -> tuple[SampleGroup, ...]:
    """List the labelled samples, then the unlabelled ones in the order of their first use.

    Raises:
        InvalidInput: a part that is used again would have another size or law than before.
    """
    laws, batches = problem.sample_clusters, problem.unlabeled
    groups = {LABELED: SampleGroup(LABELED, problem.alpha_l, _proportions(problem.rho), laws[0])}
    first: dict[str, int] = {}
    for t, parts in enumerate(parts_of(problem.batches, problem.steps), start=1):
        rho, alpha = float(batches.rho[t - 1]), float(batches.alpha[t - 1]) / len(parts)
        for part in parts:
            now = SampleGroup(part, alpha, _proportions(rho), laws[t])
            before = groups.setdefault(part, now)
            if first.setdefault(part, t) < t:
                _check_same(problem, before, now, t)
    return tuple(groups.values())


def _proportions(rho: float) -> tuple[float, float]:
    """Class proportions (negative, positive)."""
    return 1 - rho, rho


def _check_same(problem: Problem, before: SampleGroup, now: SampleGroup, t: int) -> None:
    """Check that a group has not changed when step t uses it again."""
    numbers = {
        "alpha_u": (before.alpha, now.alpha),
        "rho_u": (before.proportions[1], now.proportions[1]),
    }
    if not problem.shaped:
        numbers["delta_u"] = (before.law.sphere, now.law.sphere)
    elif now.law != before.law:
        accepted = "samples that are reused must keep their clusters"
        raise InvalidInput("clusters_u", now.law, accepted)
    for name, (old, new) in numbers.items():
        if abs(old - new) > 1e-12 * abs(old):
            accepted = (
                f"samples that are reused must not change: {now.name!r} has {old:g} before and "
                f"{new:g} in step {t} (parts of a step share its alpha_u equally)"
            )
            raise InvalidInput(name, new, accepted)


def every_sample_once(problem: Problem) -> bool:
    """Return whether no sample is used by two fits, as in the paper, for runs of any length."""
    if np.any(np.asarray(problem.keep_labeled) > 0):
        return problem.steps == 0
    if isinstance(problem.batches, str):
        return problem.batches == "fresh" or problem.steps < 2
    parts = [part for step in parts_of(problem.batches, problem.steps) for part in step]
    return len(set(parts)) == len(parts)


def new_samples(problem: Problem) -> Array:
    """Return the unlabelled samples per feature that no earlier step has used, steps 1..T."""
    alpha = problem.unlabeled.alpha
    if problem.batches == "fresh":
        return alpha
    seen: set[str] = set()
    new = np.zeros(problem.steps)
    for t, parts in enumerate(parts_of(problem.batches, problem.steps)):
        new[t] = alpha[t] * sum(part not in seen for part in parts) / len(parts)
        seen.update(parts)
    return new


ACCEPTED = '"fresh", "reused", or one name per step (names joined by "+" for several) is accepted'


def batch_names(value: Any) -> BatchNames:
    """Validate the field `batches` on its own."""
    if isinstance(value, str):
        if value in ("fresh", "reused"):
            return value
        if "," not in value:
            raise InvalidInput("batches", value, ACCEPTED)
        value = value.removesuffix(",").split(",")
    if not isinstance(value, Sequence):
        raise InvalidInput("batches", value, ACCEPTED)
    for index, name in enumerate(value):
        field = f"batches[{index}]"
        if not isinstance(name, str) or not all(part.strip() for part in name.split("+")):
            raise InvalidInput(field, name, 'a name, or names joined by "+", is accepted')
        parts = [part.strip() for part in name.split("+")]
        if LABELED in parts:
            raise InvalidInput(field, name, f'"{LABELED}" is taken: it means the labelled samples')
        if len(set(parts)) < len(parts):
            raise InvalidInput(field, name, "every part can be used once per step")
    return tuple("+".join(part.strip() for part in name.split("+")) for name in value)


def parts_of(batches: BatchNames, steps: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of the parts that each of the steps 1..`steps` uses.

    >>> parts_of(("a", "b", "a+b"), 3)
    (('a',), ('b',), ('a', 'b'))
    >>> parts_of("fresh", 2)
    (('batch 1',), ('batch 2',))
    """
    if batches == "fresh":
        return tuple((f"batch {t}",) for t in range(1, steps + 1))
    if isinstance(batches, str):
        return (("batch",),) * steps
    if len(batches) != steps:
        accepted = f"a sequence needs one name per step: {steps}, not {len(batches)}"
        raise InvalidInput("batches", batches, accepted)
    return tuple(tuple(name.split("+")) for name in batches)
