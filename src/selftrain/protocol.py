r"""Training protocols: groups of samples, and a sequence of fits to them.

Fit t minimises $\sum_g k_g(t) \sum_{\mu\in g} l(y_\mu^{(t)}, u_\mu) + \lambda_t |w|^2/2$. A
`Protocol` has the groups g, and for every fit its loss, its ridge, the groups it uses (with weights
$k_g(t)$ and labels $y^{(t)}$: given, made by an earlier fit, or both) and the origin of its bias.
`protocol_of` converts a `Problem` and a `Recipe`. Theory and simulation read only the protocol;
`batches` defines which samples a step uses.

K > 2 classes have K scores of sum zero, $s = P u$ with an orthonormal basis P of d = K - 1 columns.
The ridge is $\lambda/2$ times the squared norm of all K weight vectors, as in scikit-learn's
multinomial regression. Two classes have one logit, and the ridge of the binary problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import Array
from .batches import LABELED, parts_of
from .errors import InvalidInput
from .fields import expand, number, proportions_of, whole
from .labelers import HardLabels, Labeler, SoftLabels, get_labeler
from .losses import Logistic, Loss, Squared, get_loss
from .mixture.clusters import Clusters, sphere
from .mixture.label_noise import check_label_noise, label_matrix
from .parameters import DEGREE, NOT_NEGATIVE, POSITIVE, SHARPNESS

if TYPE_CHECKING:
    from .problem import Problem
    from .recipe import Recipe

__all__ = [
    "Fit", "Protocol", "PseudoLabels", "SampleGroup", "Use", "class_basis",
    "protocol_of", "sample_groups",
]  # fmt: skip


@dataclass(frozen=True)
class SampleGroup:
    r"""Samples that are always used together.

    Attributes:
        name: its name; `LABELED` for the labelled samples.
        alpha: samples per feature.
        proportions: class proportions, which sum to one; for two classes (negative, positive), or
            the proportion $\rho$ of the positive class.
        law: the clusters of the samples, or a number $\Delta$ for the paper's two spheres.
        label_noise: probability that a given label is a random other class, or a matrix
            P(given | true) with one row per true class. It is stored as a matrix; None without
            noise.

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
        put(self, "alpha", number("alpha", self.alpha, *POSITIVE))
        if not isinstance(self.law, Clusters):
            put(self, "law", sphere(number("law", self.law, *POSITIVE)))
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
        threshold: $\Gamma$; samples with $|u^{(r)}| \le \Gamma|w^{(r)}|$ are rejected, in units of
            half the distance of the class means (`Clusters.length` of the first group). With K > 2
            classes, samples are rejected whose two largest scores differ by at most $\Gamma$ times
            the root mean square of $|w_k - w_l|$ over pairs of classes, in the same unit.
        labeler: turns a logit into a label.
        agree: whether to also reject samples whose given label differs from the teacher's class.
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
    """The use of a group of samples by a fit.

    Attributes:
        group: index of the group; `Protocol` also accepts its name.
        weight: weight of its samples in the loss.
        labels: pseudo-labels; None for the given labels.
        given: weight of the given labels in addition to pseudo-labels, also for samples that the
            selection rejects.
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
    """One fit of a protocol.

    Attributes:
        ridge: strength of the ridge penalty.
        loss: a loss object; `Protocol` also accepts its name.
        uses: the groups of samples it is fitted to.
        bias_of: the earlier fit whose bias it copies; None if the bias is trained.
    """

    ridge: float
    loss: Loss
    uses: tuple[Use, ...]
    bias_of: int | None = None


@dataclass(frozen=True)
class Protocol:
    """Groups of samples, and the fits t = 0..T to them, in order.

    Arguments:
        groups: the groups of samples.
        fits: the fits.
        test: proportions and clusters on which errors are measured, `(proportions, clusters)`;
            default: those of the last group.

    Two rounds of self-distillation with a tenth of the given labels wrong:

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
        for name, kind in (("groups", "SampleGroup"), ("fits", "Fit")):
            given = getattr(self, name)
            if not isinstance(given, (tuple, list)) or isinstance(given, Fit):
                raise InvalidInput(name, given, f"must be a tuple of objects {kind}")
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
        elif isinstance(self.test, (tuple, list)) and len(self.test) == 2:
            test = SampleGroup("test", 1.0, *self.test)
        else:
            raise InvalidInput("test", self.test, "must be None or (proportions, clusters)")
        _check_fits_first("test", test.law, first)
        if not self.fits:
            raise InvalidInput("fits", self.fits, "must be one Fit or more")
        put(self, "groups", groups)
        put(self, "test", test)
        put(self, "fits", tuple(self._checked(t, fit, names) for t, fit in enumerate(self.fits)))

    def _checked(self, t: int, fit: Fit, names: list[str]) -> Fit:
        """Validate a fit; return it with objects for losses and indices for groups."""
        if not isinstance(fit, Fit) or not fit.uses:
            raise InvalidInput(f"fits[{t}]", fit, "must be a Fit that uses one group or more")
        if isinstance(fit.uses, Use) or not all(isinstance(use, Use) for use in fit.uses):
            accepted = "must be a tuple of objects Use; of one: (Use(...),)"
            raise InvalidInput(f"fits[{t}].uses", fit.uses, accepted)
        loss, classes = get_loss(fit.loss), self.groups[0].law.classes
        if classes > 2 and type(loss) not in (Logistic, Squared):
            accepted = f'must be "logistic" or "squared" for {classes} classes'
            raise InvalidInput("loss", getattr(loss, "name", loss), accepted)
        number("ridge", fit.ridge, *NOT_NEGATIVE)
        uses = []
        for use in fit.uses:
            number("weight", use.weight, *POSITIVE)
            number("given", use.given, *NOT_NEGATIVE)
            if isinstance(use.group, str):
                if use.group not in names:
                    accepted = f"must be one of the groups {', '.join(names)}"
                    raise InvalidInput("group", use.group, accepted)
                use = use._replace(group=names.index(use.group))
            else:
                accepted = f"must be a name, or an index from 0 to {len(names) - 1}"
                whole("group", use.group, lambda g: 0 <= g < len(names), accepted)
            if use.given > 0 and type(loss) not in (Logistic, Squared):
                accepted = 'must be "logistic" or "squared" if given and pseudo-labels are mixed'
                raise InvalidInput("loss", getattr(loss, "name", loss), accepted)
            if use.labels is not None:
                use = use._replace(labels=self._checked_labels(t, use.labels, classes))
            uses.append(use)
        used = [use.group for use in uses]
        if len(set(used)) < len(used):
            accepted = f"fit {t} uses a group twice; use `Use.given` to mix labels of one group"
            raise InvalidInput("uses", [names[g] for g in used], accepted)
        if fit.bias_of is not None:
            _check_teacher("bias_of", t, fit.bias_of)
        return fit._replace(loss=loss, uses=tuple(uses))

    def _checked_labels(self, t: int, labels: PseudoLabels, classes: int) -> PseudoLabels:
        if not isinstance(labels, PseudoLabels):
            accepted = "must be PseudoLabels(...), or None for the given labels"
            raise InvalidInput("labels", labels, accepted)
        _check_teacher("teacher", t, labels.teacher)
        if not isinstance(labels.agree, bool):
            raise InvalidInput("agree", labels.agree, "must be True or False")
        labeler = get_labeler(labels.labeler)
        if classes > 2 and type(labeler) not in (SoftLabels, HardLabels):
            accepted = f'must be "soft" or "hard" for {classes} classes'
            raise InvalidInput("labeler", getattr(labeler, "name", labeler), accepted)
        number("sharpness", labels.sharpness, *SHARPNESS)
        number("threshold", labels.threshold, *DEGREE)
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
        """The number d = K - 1 of components of a logit."""
        return self.classes - 1

    @property
    def length(self) -> float:
        """Half the (root mean square) distance of the class means of the first group: the unit of
        thresholds.
        """
        return self.groups[0].law.length

    @cached_property
    def uses(self) -> tuple[dict[int, Use], ...]:
        """For each group, a dictionary from the fits that use it to their `Use`."""
        found: tuple[dict[int, Use], ...] = tuple({} for _ in self.groups)
        for t, fit in enumerate(self.fits):
            for use in fit.uses:
                found[use.group][t] = use
        return found

    @property
    def every_sample_once(self) -> bool:
        """Whether no sample is used by two fits: a step then depends on the previous one only."""
        return all(len(used) < 2 for used in self.uses)

    @property
    def first_reuse(self) -> int | None:
        """The first fit that uses samples of an earlier one; None if there is none."""
        seconds = [sorted(used)[1] for used in self.uses if len(used) > 1]
        return min(seconds, default=None)

    def collapses_with(self, t: int) -> list[int]:
        """Return fit t, and the later fits all of whose labels come from it, directly or through
        other such fits: if the labels of fit t are all of one class, so are theirs.
        """
        found = [t]
        for later in range(t + 1, len(self.fits)):
            uses = self.fits[later].uses
            if all(
                use.labels is not None and use.given == 0 and use.labels.teacher in found
                for use in uses
            ):
                found.append(later)
        return found

    def taught_by(self, t: int) -> list[int]:
        """Return fit t, and all later fits that take labels or a bias from it, directly or through
        others. No other fit depends on it.
        """
        found = {t}
        for later in range(t + 1, len(self.fits)):
            fit = self.fits[later]
            made = {use.labels.teacher for use in fit.uses if use.labels is not None}
            if found & {*made, fit.bias_of}:
                found.add(later)
        return sorted(found)

    @property
    def jumps(self) -> bool:
        """Whether, in some fit, labels or selection are discontinuous functions of the logit."""
        labels = (use.labels for fit in self.fits for use in fit.uses)
        return any(made is not None and made.jumps for made in labels)


def _check_teacher(field: str, t: int, teacher: Any) -> None:
    accepted = f"fit {t} can take labels and bias only from earlier fits"
    whole(field, teacher, lambda r: 0 <= r < t, accepted)


def _check_fits_first(field: str, law: Clusters, first: Clusters) -> None:
    """Raise unless clusters have the classes and features of the first group."""
    if (law.classes, law.features) != (first.classes, first.features):
        accepted = f"must have {first.classes} classes and {first.features} features, as the first"
        raise InvalidInput(field, law, accepted)
    if not law.same_directions(first):
        raise InvalidInput(field, law, "must have the directions of the first group as features")


def class_basis(classes: int) -> Array:
    r"""Return P, an orthonormal basis of the vectors of sum zero, shape (K, K - 1).

    >>> class_basis(2).round(4)
    array([[-0.7071],
           [ 0.7071]])
    """
    basis = np.zeros((classes, classes - 1))
    for j in range(1, classes):
        basis[:j, j - 1], basis[j, j - 1] = -1.0, j
        basis[:, j - 1] /= np.sqrt(j * (j + 1.0))
    return basis


def protocol_of(problem: Problem, recipe: Recipe) -> Protocol:
    """Return the protocol of a problem and a recipe."""
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
    """Return the labelled group, then the unlabelled ones in the order of their first use.

    Raises:
        InvalidInput: a group that is reused would have a different size or mixture.
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
    """Raise if step t reuses a group with a different size or mixture."""
    numbers = {"alpha_u": (before.alpha, now.alpha)}
    for k in range(1, problem.classes):
        name = "rho_u" if problem.classes == 2 else f"rho_u[{k}]"
        numbers[name] = (before.proportions[k], now.proportions[k])
    if not problem.shaped:
        numbers["delta_u"] = (before.law.sphere, now.law.sphere)
    elif now.law != before.law:
        raise InvalidInput("clusters_u", now.law, "must be the same for samples that are reused")
    for name, (old, new) in numbers.items():
        if abs(old - new) > 1e-12 * abs(old):
            accepted = (
                f"samples that are reused must not change: {now.name!r} has {old:g} before and "
                f"{new:g} in step {t} (parts of a step share its alpha_u equally)"
            )
            raise InvalidInput(name, new, accepted)
