r"""What is fitted to what: any training protocol, as groups of samples and fits.

Fit t minimises $\sum_g k_g(t) \sum_{\mu\in g} l(y_\mu^{(t)}, u_\mu) + \lambda_t |w|^2/2$. A
`Protocol` lists the groups g, and for every fit its loss, its ridge, its uses of groups (weight
$k_g(t)$, labels $y^{(t)}$ given, made by an earlier fit, or both) and where its bias comes from.
`protocol_of` writes a `Problem` and a `Recipe` out as one. This module is the only one that knows
what "fresh", "reused", "kept" or a pool is; theory and simulation read the protocol.

The labelled samples are one group, with weight 1 in fit 0 and `keep_labeled` later. `batches` names
the samples that each step labels by itself: "fresh" (samples of its own), "reused" (the same ones
in every step), "labeled" (the labelled samples: self-distillation), "labeled+fresh",
"labeled+reused", or a name per step. A name that returns means the same samples; names joined by
"+" are parts of a pool. Unlabelled parts share the `alpha_u` of the step equally.

K > 2 classes have K scores of sum zero, $s = P u$ with an orthonormal basis P of d = K - 1 columns;
the ridge is $\lambda/2$ times the sum of the squares of the K class vectors, as in the multinomial
fit of scikit-learn. Two classes have one logit, and the ridge of the binary problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import Array
from .errors import InvalidInput
from .fields import expand, number, whole
from .labelers import HardLabels, Labeler, SoftLabels, get_labeler
from .losses import Logistic, Loss, Squared, get_loss
from .mixture.clusters import Clusters, sphere
from .mixture.label_noise import check_label_noise, label_matrix
from .parameters import LARGEST, SMALLEST, SPAN

if TYPE_CHECKING:
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
    "class_basis",
    "every_sample_once",
    "new_samples",
    "parts_of",
    "proportions_of",
    "protocol_of",
    "pseudo_labeled",
    "sample_groups",
]

BatchNames = str | tuple[str, ...]

LABELED = "labeled"
"""The name of the labelled samples."""

UNITY = 1e-9
"""Proportions, and rows of label noise, may miss the sum one by this much."""

_AMOUNT = (lambda x: SMALLEST <= x <= LARGEST, f"must be a number > 0 ({SPAN})")
_WEIGHT = (lambda x: x == 0 or SMALLEST <= x <= LARGEST, f"must be 0 or a number {SPAN}")


@dataclass(frozen=True)
class SampleGroup:
    r"""Samples that are always used together.

    Attributes:
        name: its name; `LABELED` for the labelled samples.
        alpha: samples per feature.
        proportions: of the classes, of sum one; with two classes (negative, positive), or the
            number $\rho$ of the positive class.
        law: the clusters that samples come from, or a number $\Delta$ for the paper's two spheres.
        label_noise: of the given labels: the probability that a label is another class, drawn at
            random, or a matrix P(given | true) with one row per true class. As an attribute always
            the rows of the matrix; None without noise.

    >>> SampleGroup("labeled", 2.0, 0.4, 0.5, label_noise=0.1).proportions
    (0.6, 0.4)
    """

    name: str
    alpha: float
    proportions: tuple[float, ...]
    law: Clusters
    label_noise: Any = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "alpha", number("alpha", self.alpha, *_AMOUNT))
        if not isinstance(self.law, Clusters):
            put(self, "law", sphere(number("law", self.law, *_AMOUNT)))
        put(self, "proportions", proportions_of("proportions", self.proportions))
        if len(self.proportions) != self.law.classes:
            accepted = f"must be {self.law.classes}, one for each mean of the clusters"
            raise InvalidInput("proportions", self.proportions, accepted)
        if self.label_noise is not None:
            classes = len(self.proportions)
            noise = label_matrix(check_label_noise(self.label_noise, classes), classes)
            clean = np.array_equal(noise, np.eye(classes))
            put(self, "label_noise", None if clean else tuple(map(tuple, noise.tolist())))

    @property
    def labeled(self) -> bool:
        """Whether these are the labelled samples of a problem."""
        return self.name == LABELED


class PseudoLabels(NamedTuple):
    r"""Labels that an earlier fit makes from a sample's own logit.

    Attributes:
        teacher: the fit r < t whose logit $u^{(r)}$ is used.
        sharpness: $\gamma$; infinite for hard labels.
        threshold: $\Gamma$: samples with $|u^{(r)}| \le \Gamma|w^{(r)}|$ are rejected, in units of
            half the distance of the class means (`Clusters.length` of the first group). With K
            classes: samples whose two largest scores differ by at most $\Gamma$ times the root of
            the mean square of $|w_k - w_l|$ over pairs of classes.
        labeler: makes the label of a logit.
        agree: also reject samples whose given label is not the class that the teacher predicts.
    """

    teacher: int
    sharpness: float = 1.0
    threshold: float = 0.0
    labeler: Labeler = "soft"  # type: ignore[assignment]  # a name becomes a labeler in `Protocol`
    agree: bool = False

    @property
    def jumps(self) -> bool:
        """Whether label or selection is a discontinuous function of the logit."""
        return self.threshold > 0 or self.agree or bool(self.labeler.jumps(self.sharpness))


class Use(NamedTuple):
    """A group in a fit.

    Attributes:
        group: its index; a `Protocol` also takes its name.
        weight: of its labels in the loss.
        labels: how they are made; None: the given ones.
        given: weight of the given labels next to those that are made. It holds for samples that
            selection rejects, too.
    """

    group: int
    weight: float = 1.0
    labels: PseudoLabels | None = None
    given: float = 0.0

    @property
    def needs_given(self) -> bool:
        """Whether the given labels of the group matter."""
        return self.labels is None or self.given > 0 or self.labels.agree


class Fit(NamedTuple):
    """One fit: ridge, loss, samples, and the earlier fit whose bias it copies (None: trained)."""

    ridge: float
    loss: Loss
    uses: tuple[Use, ...]
    bias_of: int | None = None


@dataclass(frozen=True)
class Protocol:
    """Groups of samples, and the fits t = 0..T to them, in order.

    Arguments:
        groups: the samples.
        fits: what is fitted, to which of them.
        test: proportions and clusters on which errors are measured, `(proportions, clusters)`;
            default: those of the last group.

    Self-distillation, twice, with a tenth of the given labels wrong:

    >>> samples = SampleGroup("samples", 2.0, 0.4, 0.5, label_noise=0.1)
    >>> again = [Fit(0.5, "logistic", (Use("samples", 1.0, PseudoLabels(t - 1)),)) for t in (1, 2)]
    >>> protocol = Protocol((samples,), (Fit(1.0, "logistic", (Use("samples"),)), *again))
    >>> protocol.steps, protocol.classes, protocol.every_sample_once
    (2, 2, False)
    """

    groups: tuple[SampleGroup, ...]
    fits: tuple[Fit, ...]
    test: Any = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        groups = tuple(self.groups)
        if not groups or not all(isinstance(group, SampleGroup) for group in groups):
            raise InvalidInput("groups", self.groups, "must be one SampleGroup or more")
        names = [group.name for group in groups]
        if len(set(names)) < len(names):
            raise InvalidInput("groups", names, "must have different names")
        first = groups[0].law
        for group in groups[1:]:
            _check_fits_first("groups", group.law, first)
        if self.test is None:
            test = SampleGroup("test", 1.0, groups[-1].proportions, groups[-1].law)
        elif isinstance(self.test, SampleGroup):
            test = self.test
        else:
            test = SampleGroup("test", 1.0, *self.test)
        _check_fits_first("test", test.law, first)
        if not self.fits:
            raise InvalidInput("fits", self.fits, "must be one Fit or more")
        put(self, "groups", groups)
        put(self, "test", test)
        put(self, "fits", tuple(self._checked(t, fit, names) for t, fit in enumerate(self.fits)))

    def _checked(self, t: int, fit: Fit, names: list[str]) -> Fit:
        """Return a fit with its loss as an object and its groups by index, numbers checked."""
        if not isinstance(fit, Fit) or not fit.uses:
            raise InvalidInput(f"fits[{t}]", fit, "must be a Fit that uses one group or more")
        loss, classes = get_loss(fit.loss), self.groups[0].law.classes
        if classes > 2 and type(loss) not in (Logistic, Squared):
            accepted = f'must be "logistic" or "squared" for {classes} classes'
            raise InvalidInput("loss", getattr(loss, "name", loss), accepted)
        number("ridge", fit.ridge, *_WEIGHT)
        uses = []
        for use in fit.uses:
            number("weight", use.weight, *_AMOUNT)
            number("given", use.given, *_WEIGHT)
            if isinstance(use.group, str):
                if use.group not in names:
                    accepted = f"must be one of the groups {', '.join(names)}"
                    raise InvalidInput("group", use.group, accepted)
                use = use._replace(group=names.index(use.group))
            elif not 0 <= use.group < len(names):
                accepted = f"must be a name, or an index from 0 to {len(names) - 1}"
                raise InvalidInput("group", use.group, accepted)
            if use.given > 0 and type(loss) not in (Logistic, Squared):
                accepted = 'must be "logistic" or "squared" where given labels and others are mixed'
                raise InvalidInput("loss", getattr(loss, "name", loss), accepted)
            if use.labels is not None:
                use = use._replace(labels=self._checked_labels(t, use.labels, classes))
            uses.append(use)
        used = [use.group for use in uses]
        if len(set(used)) < len(used):
            accepted = f"fit {t} uses a group twice; `Use.given` mixes labels of one group"
            raise InvalidInput("uses", [names[g] for g in used], accepted)
        if fit.bias_of is not None:
            _check_teacher("bias_of", t, fit.bias_of)
        return fit._replace(loss=loss, uses=tuple(uses))

    def _checked_labels(self, t: int, labels: PseudoLabels, classes: int) -> PseudoLabels:
        _check_teacher("teacher", t, labels.teacher)
        labeler = get_labeler(labels.labeler)
        if classes > 2 and type(labeler) not in (SoftLabels, HardLabels):
            accepted = f'must be "soft" or "hard" for {classes} classes'
            raise InvalidInput("labeler", getattr(labeler, "name", labeler), accepted)
        accepted = f"must be a number > 0 ({SPAN}), or inf for hard labels"
        number("sharpness", labels.sharpness, lambda x: x >= SMALLEST, accepted)
        number("threshold", labels.threshold, lambda x: 0 <= x <= LARGEST, "must be a number >= 0")
        return labels._replace(labeler=labeler)

    @property
    def steps(self) -> int:
        """The number T of fits after fit 0."""
        return len(self.fits) - 1

    @property
    def classes(self) -> int:
        """The number K of classes."""
        return self.groups[0].law.classes

    @property
    def components(self) -> int:
        """The number d of logits of a sample: K - 1."""
        return self.classes - 1

    @property
    def length(self) -> float:
        """Half the distance of the class means of the first group, the unit of thresholds."""
        return self.groups[0].law.length

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


def _check_teacher(field: str, t: int, teacher: Any) -> None:
    accepted = f"fit {t} can take labels and bias from fits before it only"
    whole(field, teacher, lambda r: 0 <= r < t, accepted)


def _check_fits_first(field: str, law: Clusters, first: Clusters) -> None:
    """Check that clusters have the classes and features of the first group."""
    if (law.classes, law.features) != (first.classes, first.features):
        accepted = f"must have {first.classes} classes and {first.features} features, as the first"
        raise InvalidInput(field, law, accepted)
    if not law.same_directions(first):
        raise InvalidInput(field, law, "must have the directions of the first group as features")


def class_basis(classes: int) -> Array:
    r"""Return P, an orthonormal basis of the scores of sum zero, shape (K, K - 1).

    >>> class_basis(2).round(4)
    array([[-0.7071],
           [ 0.7071]])
    """
    basis = np.zeros((classes, classes - 1))
    for j in range(1, classes):
        basis[:j, j - 1], basis[j, j - 1] = -1.0, j
        basis[:, j - 1] /= np.sqrt(j * (j + 1.0))
    return basis


def proportions_of(field: str, value: Any) -> tuple[float, ...]:
    """Return class proportions of sum one; a number is that of the positive class of two.

    >>> proportions_of("rho", (0.5, 0.3, 0.2))
    (0.5, 0.3, 0.2)
    """
    inside = (lambda x: 0 < x < 1, "must be strictly between 0 and 1")
    if hasattr(value, "__array__"):
        value = np.asarray(value).tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        rho = number(field, value, *inside)
        return (1 - rho, rho)
    shares = tuple(number(f"{field}[{k}]", share, *inside) for k, share in enumerate(value))
    if len(shares) < 2:
        raise InvalidInput(field, value, "must have one proportion for each of two classes or more")
    if abs(sum(shares) - 1) > UNITY:
        accepted = f"class proportions must sum to one; these sum to {sum(shares):.10g}"
        raise InvalidInput(field, value, accepted)
    return shares


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
        given, uses = float(kept[t - 1]), []
        if LABELED in parts:
            uses.append(Use(0, 1.0, labels, given))
        elif given > 0:
            uses.append(Use(0, given))
        uses += [Use(place[part], 1.0, labels) for part in parts if part != LABELED]
        bias_of = 0 if recipe.fix_bias else None
        fits.append(Fit(ridge, problem.loss_at(t), tuple(uses), bias_of))
    return Protocol(groups, tuple(fits), problem.test_pair)


def sample_groups(problem: Problem) -> tuple[SampleGroup, ...]:
    """List the labelled samples, then the unlabelled ones in the order of their first use.

    Raises:
        InvalidInput: a part that is used again would have another size or law than before.
    """
    laws, batches = problem.sample_clusters, problem.unlabeled
    labeled = SampleGroup(LABELED, problem.alpha_l, problem.rho, laws[0], problem.label_noise)
    groups = {LABELED: labeled}
    first: dict[str, int] = {}
    for t, every in enumerate(parts_of(problem.batches, problem.steps), start=1):
        parts = [part for part in every if part != LABELED]
        for part in parts:
            alpha, rho = float(batches.alpha[t - 1]) / len(parts), batches.rho[t - 1].tolist()
            now = SampleGroup(part, alpha, rho, laws[t])
            before = groups.setdefault(part, now)
            if first.setdefault(part, t) < t:
                _check_same(problem, before, now, t)
    return tuple(groups.values())


def _check_same(problem: Problem, before: SampleGroup, now: SampleGroup, t: int) -> None:
    """Check that a group has not changed when step t uses it again."""
    numbers = {"alpha_u": (before.alpha, now.alpha)}
    for k in range(1, problem.classes):
        numbers["rho_u" + f"[{k}]" * (problem.classes > 2)] = (
            before.proportions[k], now.proportions[k],
        )  # fmt: skip
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
    if problem.batches == "fresh":
        return True
    if problem.batches == "reused":
        return problem.steps < 2
    parts = [part for step in parts_of(problem.batches, problem.steps) for part in step]
    return len({*parts, LABELED}) == len(parts) + 1


def pseudo_labeled(problem: Problem) -> Array:
    """Return the samples per feature that each of the steps 1..T labels by itself."""
    alpha = problem.unlabeled.alpha
    if problem.batches in ("fresh", "reused"):
        return alpha
    parts = parts_of(problem.batches, problem.steps)
    unlabeled = np.array([any(part != LABELED for part in names) for names in parts], dtype=bool)
    labeled = np.array([LABELED in names for names in parts], dtype=bool)
    return np.asarray(alpha * unlabeled + problem.alpha_l * labeled)


def new_samples(problem: Problem) -> Array:
    """Return the unlabelled samples per feature that no earlier step has used, steps 1..T."""
    alpha = problem.unlabeled.alpha
    if problem.batches == "fresh":
        return alpha
    seen = {LABELED}
    new = np.zeros(problem.steps)
    for t, parts in enumerate(parts_of(problem.batches, problem.steps)):
        unlabeled = max(1, sum(part != LABELED for part in parts))
        new[t] = alpha[t] * sum(part not in seen for part in parts) / unlabeled
        seen.update(parts)
    return new


EVERY_STEP = ("fresh", "reused", LABELED, f"{LABELED}+fresh", f"{LABELED}+reused")
"""The names of the same choice in every step."""

ACCEPTED = (
    f"must be {', '.join(repr(name) for name in EVERY_STEP)}, or one name per step (names joined by"
    ' "+" for several)'
)


def batch_names(value: Any) -> BatchNames:
    """Validate the field `batches` on its own."""
    if isinstance(value, str):
        if value.replace(" ", "") in EVERY_STEP:
            return value.replace(" ", "")
        if "," not in value:
            raise InvalidInput("batches", value, ACCEPTED)
        value = value.removesuffix(",").split(",")
    if not isinstance(value, Sequence):
        raise InvalidInput("batches", value, ACCEPTED)
    for index, name in enumerate(value):
        field = f"batches[{index}]"
        if not isinstance(name, str) or not all(part.strip() for part in name.split("+")):
            raise InvalidInput(field, name, 'must be a name, or names joined by "+"')
        parts = [part.strip() for part in name.split("+")]
        if len(set(parts)) < len(parts):
            raise InvalidInput(field, name, "every part can be used once per step")
    return tuple("+".join(part.strip() for part in name.split("+")) for name in value)


def parts_of(batches: BatchNames, steps: int) -> tuple[tuple[str, ...], ...]:
    """Return the names of the parts that each of the steps 1..`steps` labels by itself.

    >>> parts_of(("a", "b", "a+b"), 3)
    (('a',), ('b',), ('a', 'b'))
    >>> parts_of("labeled+fresh", 2)
    (('labeled', 'batch 1'), ('labeled', 'batch 2'))
    """
    if isinstance(batches, str):
        own = {"fresh": "batch {t}", "reused": "batch"}
        names = [own.get(part, part) for part in batches.split("+")]
        return tuple(tuple(name.format(t=t) for name in names) for t in range(1, steps + 1))
    if len(batches) != steps:
        accepted = f"a sequence needs one name per step: {steps}, not {len(batches)}"
        raise InvalidInput("batches", batches, accepted)
    return tuple(tuple(name.split("+")) for name in batches)
