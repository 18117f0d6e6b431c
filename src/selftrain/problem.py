r"""`Problem`: the data model, the amounts of data, the number of steps, and the loss.

Samples are $x = (2y-1) v/\sqrt N + z$ with $\|v\|^2 = N$, $z \sim N(0, \Delta I)$ and $P(y=1) =
\rho$ (`eq:data genereation labeled`, `eq:data genereation unlabeled`): $\alpha_L N$ labelled ones,
then at every step a fresh batch of $\alpha_U^{(t)} N$ unlabelled ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from .arrays import Array
from .batches import LABELED, BatchNames, batch_names, draws_unlabeled, parts_of
from .errors import InvalidInput
from .fields import Portable, Schedule, expand, number, prior
from .losses import Loss, get_loss, same_loss
from .mixture.clusters import Clusters, sphere
from .mixture.label_noise import LabelNoise, check_label_noise, label_matrix
from .parameters import POSITIVE
from .protocol import sample_groups

__all__ = ["Batches", "Mixture", "Problem"]


class Mixture(NamedTuple):
    r"""Proportion $\rho$ of the positive class, and variance $\Delta$ of the noise."""

    rho: float
    delta: float


class Batches(NamedTuple):
    """Parameters of the unlabelled batches of steps 1..T, as arrays; with K > 2 classes `rho` has
    one row of proportions per step.
    """

    alpha: Array
    rho: Array
    delta: Array


@dataclass(frozen=True, repr=False)
class Problem(Portable):
    r"""Data and loss of a self-training problem.

    Arguments:
        alpha_l: labelled samples per feature, $\alpha_L > 0$.
        alpha_u: unlabelled samples per feature in each step, $\alpha_U > 0$; a number or one per
            step. Not needed if every step relabels the labelled samples (`batches="labeled"`).
        rho: proportion of the positive class among the labelled samples, in (0, 1). For K classes,
            their proportions, which sum to one; `clusters` must then have K means. Two proportions
            (negative, positive) are the binary problem.
        delta: variance of the noise of the labelled samples, $\Delta > 0$.
        steps: number T of self-training steps after the supervised step 0.
        loss: name of a loss, or a loss object. "squared" encodes the classes as -1 and +1, so that
            a positive logit means the positive class here too.
        rho_u, delta_u: `rho` and `delta` of the unlabelled batches, if they differ (domain shift);
            a number or one per step.
        test: mixture on which the error is measured: `(rho, delta)`, "labeled" or "unlabeled"
            (the batch of the last step). Default: "unlabeled", or "labeled" if `steps` is 0. The
            paper defines the error on the labelled mixture (`eq:data generation generr y`) and
            computes it on the unlabelled one (`eq: macro generalization error`); they differ only
            under domain shift. With clusters it is `(rho, clusters)`.
        clusters, clusters_u: `Clusters` with general covariances instead of `delta` and `delta_u`;
            `clusters_u` is one or one per step, each around its own midpoint. `alpha_l` and
            `alpha_u` then count samples per feature of the clusters.
        batches: the samples that a step pseudo-labels: "fresh" (new ones, as in the paper),
            "reused" (the same in every step), "labeled" (the labelled samples: self-distillation),
            "labeled+fresh", "labeled+reused", or one name per step. Steps with the same name use
            the same samples: `("a", "b", "a")`. With names joined by "+" a step uses several groups
            of samples together.
        keep_labeled: weight of the labelled samples with their given labels in the loss of every
            later step, 0 (the paper) or more; a number or one per step. If a step also relabels
            them, both labels are used.
        pseudo_loss: the loss of the self-training steps, if it differs from `loss`. Their labels
            use its encoding: soft labels are its link of the (sharpened) logit.
        label_noise: probability that a given label is a random other class, below (K - 1)/K; or the
            matrix P(given | true), one row per true class.

    >>> Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
    Problem(alpha_l=0.5, alpha_u=2, rho=0.4, delta=0.5625, steps=16, loss='logistic')
    """

    alpha_l: float
    alpha_u: Schedule = None  # type: ignore[assignment]  # None only if no batch is unlabelled
    rho: Any = None  # required: it has a default only because a field before it has one
    delta: float = None  # type: ignore[assignment]  # None only if clusters are given
    steps: int = None  # type: ignore[assignment]  # required, as rho
    loss: str | Loss = "logistic"
    rho_u: Any = None
    delta_u: Schedule | None = None
    test: str | tuple[Any, Any] | None = None
    clusters: Clusters | None = None
    clusters_u: Clusters | tuple[Clusters, ...] | None = None
    batches: BatchNames = "fresh"
    keep_labeled: Schedule = 0.0
    pseudo_loss: str | Loss | None = None
    label_noise: LabelNoise = 0.0

    _optional = ("batches", "keep_labeled", "label_noise")

    def __post_init__(self) -> None:
        self._put_number("alpha_l")
        self._put("rho", prior("rho", self.rho))
        self._put_number("steps")
        self._put("steps", int(self.steps))
        if self.alpha_u is not None:
            self._put_schedules("alpha_u")
        if self.delta_u is not None:
            self._put_schedules("delta_u")
        self._put_clusters()
        if self.rho_u is not None:
            self._put_batch_proportions()
        self._put("test", _test(self.test, self.classes, self.clusters))
        if self.test == "unlabeled" and self.steps == 0:
            raise InvalidInput("test", "unlabeled", 'must be "labeled" or a pair if steps = 0')
        self._put_losses()
        self._put("label_noise", check_label_noise(self.label_noise, self.classes))
        self._put_batches()

    def _repr_html_(self) -> str:
        from .plots.notebook import problem_card

        return problem_card(self)

    @classmethod
    def _required(cls, values: Mapping[str, Any]) -> list[str]:
        shape = "delta" if values.get("clusters") is None else "clusters"
        alone = values.get("batches") == LABELED
        return [*super()._required(values), *([] if alone else ["alpha_u"]), "rho", shape, "steps"]

    @property
    def classes(self) -> int:
        """The number K of classes."""
        return len(self.rho) if isinstance(self.rho, tuple) else 2

    def _put_batch_proportions(self) -> None:
        """Validate and set `rho_u`: a schedule for two classes; for K > 2 a tuple of proportions,
        or one such tuple per step.
        """
        if self.classes == 2:
            self._put_schedules("rho_u")
            return
        several = np.ndim(self.rho_u) == 2
        rows = self.rho_u if several else [self.rho_u]
        if np.ndim(self.rho_u) == 0 or (several and len(rows) != self.steps):
            accepted = f"must be {self.classes} proportions, or one such sequence per step"
            raise InvalidInput("rho_u", self.rho_u, accepted)
        found = tuple(prior("rho_u", row, self.classes) for row in rows)
        self._put("rho_u", found if several else found[0])

    @cached_property
    def given_labels(self) -> Array:
        """P(given label | true class), one row per true class."""
        return label_matrix(self.label_noise, self.classes)

    def needs_two_classes(self, what: str) -> None:
        """Raise if there are more than two classes; the message says that `what` needs two."""
        if self.classes > 2:
            accepted = f"{what} is known for two classes only: use solve or simulate"
            raise InvalidInput("rho", self.rho, accepted)

    def _put_clusters(self) -> None:
        """Validate and set `delta`, or `clusters` and `clusters_u`."""
        if self.clusters is None and self.classes > 2:
            accepted = (
                f"{self.classes} classes need clusters with as many means, for instance "
                f"Clusters.simplex({self.classes}, distance, delta)"
            )
            raise InvalidInput("clusters", None, accepted)
        if self.clusters is None and self.clusters_u is None:
            self._put_number("delta")
            return
        for name in ("delta", "delta_u"):
            if getattr(self, name) is not None:
                accepted = f"must not be given with clusters: give either {name} or clusters"
                raise InvalidInput(name, getattr(self, name), accepted)
        self._put("clusters", _shape("clusters", self.clusters))
        assert self.clusters is not None
        if self.clusters.classes != self.classes:
            accepted = (
                f"rho has {self.classes} proportions and clusters have {self.clusters.classes} "
                "means: give as many of both"
            )
            raise InvalidInput("clusters", self.clusters, accepted)
        if self.clusters_u is None:
            return
        several = isinstance(self.clusters_u, Sequence)
        shapes = tuple(self.clusters_u) if several else (self.clusters_u,)  # type: ignore[arg-type]
        shapes = tuple(_shape("clusters_u", shape, self.clusters) for shape in shapes)
        if several and len(shapes) != self.steps:
            accepted = f"a sequence must have one entry per step: {self.steps}, not {len(shapes)}"
            raise InvalidInput("clusters_u", shapes, accepted)
        for shape in shapes:
            if not shape.same_directions(self.clusters):
                accepted = (
                    "must be reduced to the same directions as clusters; its features are other"
                    " directions"
                )
                raise InvalidInput("clusters_u", shape, accepted)
        self._put("clusters_u", shapes if several else shapes[0])

    def _put_losses(self) -> None:
        """Validate the losses; a `pseudo_loss` equal to `loss` becomes None."""
        labeled = get_loss(self.loss)
        if self.pseudo_loss is None:
            return
        if same_loss(labeled, get_loss(self.pseudo_loss, "pseudo_loss")):
            self._put("pseudo_loss", None)

    def _put_batches(self) -> None:
        """Validate which samples the steps use, and set `keep_labeled`."""
        self._put("batches", batch_names(self.batches))
        if self.alpha_u is None and draws_unlabeled(self.batches, self.steps):
            self._put_schedules("alpha_u")  # raises
        _ = self.unlabeled  # raises if a schedule has the wrong length
        self._put_schedules("keep_labeled")
        expand("keep_labeled", self.keep_labeled, self.steps)
        if self.pseudo_loss is not None and not self.every_sample_once:
            accepted = "must not be given with data reuse: all steps have the same loss"
            raise InvalidInput("pseudo_loss", self.pseudo_loss, accepted)
        if self.batches != "fresh":
            sample_groups(self)

    @cached_property
    def every_sample_once(self) -> bool:
        """Whether no sample is used by two fits, as in the paper."""
        # The same as `Protocol.every_sample_once`, without the cost of building the protocol.
        if np.any(np.asarray(self.keep_labeled) > 0):
            return self.steps == 0
        if self.batches in ("fresh", "reused"):
            return self.batches == "fresh" or self.steps < 2
        parts = [part for step in parts_of(self.batches, self.steps) for part in step]
        return len({*parts, LABELED}) == len(parts) + 1

    @property
    def by_quadrature(self) -> bool:
        """Whether the theory has exact averages and gradients: two classes, samples used once."""
        return self.classes == 2 and self.every_sample_once

    def labeled_alone(self) -> Self:
        """Return the problem of step 0 alone: labelled samples only, tested on their mixture."""
        return self.replace(
            steps=0, alpha_u=1.0, rho_u=None, delta_u=None, clusters_u=None, test=None,
            batches="fresh", keep_labeled=0.0, pseudo_loss=None,
        )  # fmt: skip

    def needs_fresh_batches(self, what: str) -> None:
        """Raise if samples are reused or there are more than two classes; the message says that
        `what` supports neither.
        """
        self.needs_two_classes(what)
        if not self.every_sample_once:
            field = "batches" if np.all(np.asarray(self.keep_labeled) == 0) else "keep_labeled"
            accepted = f'{what} is known for batches="fresh" and keep_labeled=0 only'
            raise InvalidInput(field, getattr(self, field), accepted)

    @cached_property
    def wrong_labels(self) -> Array:
        """Proportions of wrong labels in the negative and in the positive class."""
        matrix = self.given_labels
        return np.array([matrix[0, 1], matrix[1, 0]])

    @property
    def shaped(self) -> bool:
        """Whether the problem is given by `clusters`, not by the paper's `delta`."""
        return self.clusters is not None

    def needs_sphere(self, what: str) -> None:
        """Raise if there are `clusters` or more than two classes; the message says that `what`
        supports neither.
        """
        self.needs_two_classes(what)
        if self.shaped:
            accepted = f"{what} is known for spheres only: give delta instead of clusters"
            raise InvalidInput("clusters", self.clusters, accepted)

    @cached_property
    def sample_clusters(self) -> tuple[Clusters, ...]:
        """The clusters of the samples of steps 0..T: the labelled samples, then the batches."""
        if self.clusters is None:
            if self.delta_u is None:
                return (sphere(self.delta),) * (self.steps + 1)
            known = {delta: sphere(delta) for delta in np.unique(self.unlabeled.delta).tolist()}
            return (sphere(self.delta), *(known[one] for one in self.unlabeled.delta.tolist()))
        if isinstance(self.clusters_u, tuple):
            return (self.clusters, *self.clusters_u)
        return (self.clusters, *((self.clusters_u or self.clusters,) * self.steps))

    @cached_property
    def distinct_clusters(self) -> tuple[Clusters, ...]:
        """The distinct clusters of the samples and the test mixture."""
        every = (*self.sample_clusters, self.test_clusters)
        return tuple(dict.fromkeys({id(one): one for one in every}.values()))

    @property
    def batch_clusters(self) -> tuple[Clusters, ...]:
        """The clusters of the unlabelled batches, one per step."""
        return self.sample_clusters[1:]

    @cached_property
    def test_clusters(self) -> Clusters:
        """The clusters on which the error is measured."""
        if isinstance(self.test, tuple):
            law = self.test[1]
            return law if isinstance(law, Clusters) else sphere(float(law))
        return self.sample_clusters[0 if self.test == "labeled" else -1]

    @property
    def test_pair(self) -> tuple[Any, Any]:
        """The test mixture as a value of `test`: (rho, delta) or (rho, clusters)."""
        rho, delta = self.test_mixture
        return (rho, self.test_clusters) if self.shaped else (rho, delta)

    def loss_at(self, t: int) -> Loss:
        """Return the loss of step t as an object: `loss` for step 0, `pseudo_loss` for later ones.

        >>> problem = Problem(0.5, 2.0, 0.4, 0.5, steps=3, loss="squared", pseudo_loss="logistic")
        >>> problem.loss_at(0), problem.loss_at(1)
        (Squared(), Logistic())
        """
        return get_loss(self.loss if t == 0 or self.pseudo_loss is None else self.pseudo_loss)

    @property
    def loss_names(self) -> str:
        """The names of the losses, for titles."""
        first, later = self.loss_at(0).name, self.loss_at(1).name
        return f"{first} loss" if first == later else f"{first}, then {later} loss"

    @cached_property
    def unlabeled(self) -> Batches:
        """The parameters of the unlabelled batches, as arrays over steps 1..T."""
        rho = self.rho if self.rho_u is None else self.rho_u
        delta = self.delta if self.delta_u is None else self.delta_u
        if self.shaped:
            delta = math.nan
        alpha = 0.0 if self.alpha_u is None else self.alpha_u
        if self.classes > 2:
            rows = np.broadcast_to(np.array(rho, dtype=float), (self.steps, self.classes))
        else:
            rows = expand("rho_u", rho, self.steps)
        return Batches(
            expand("alpha_u", alpha, self.steps), rows, expand("delta_u", delta, self.steps)
        )

    @property
    def labeled(self) -> Mixture:
        """The mixture of the labelled samples."""
        return Mixture(self.rho, math.nan if self.shaped else self.delta)

    @property
    def test_mixture(self) -> Mixture:
        """The mixture on which the error is measured."""
        if isinstance(self.test, tuple):
            return Mixture(self.test[0], math.nan if self.shaped else float(self.test[1]))
        if self.test == "labeled" or self.steps == 0:
            return self.labeled
        batches = self.unlabeled
        rho: Any = batches.rho[-1].tolist()
        if self.classes > 2:
            rho = tuple(rho)
        return Mixture(rho, float(batches.delta[-1]))


def _test(value: Any, classes: int, clusters: Clusters | None) -> str | tuple[Any, Any] | None:
    if value is None or (isinstance(value, str) and value in ("labeled", "unlabeled")):
        return value
    second = "delta" if clusters is None else "clusters"
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str) and len(value) == 2:
        rho = prior("test rho", value[0], classes)
        if clusters is not None:
            return (rho, _shape("test clusters", value[1], clusters))
        return (rho, number("test delta", value[1], *POSITIVE))
    accepted = f'must be "labeled", "unlabeled" or a pair (rho, {second})'
    raise InvalidInput("test", value, accepted)


def _shape(field: str, value: Any, first: Clusters | None = None) -> Clusters:
    if isinstance(value, Mapping):
        value = Clusters.from_dict(value)
    if not isinstance(value, Clusters):
        raise InvalidInput(field, value, "must be a selftrain.Clusters")
    if first is not None and value.features != first.features:
        accepted = f"must have as many features as those of the labelled samples, {first.features}"
        raise InvalidInput(field, value, accepted)
    if first is not None and value.classes != first.classes:
        accepted = f"must have as many means as those of the labelled samples, {first.classes}"
        raise InvalidInput(field, value, accepted)
    return value
