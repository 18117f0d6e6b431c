"""The protocol: the words for which samples a step uses, what is rejected, what survives a round
trip.
"""

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, bayes_error
from selftrain.batches import new_samples
from selftrain.errors import InvalidInput
from selftrain.labelers import get_labeler
from selftrain.losses import get_loss
from selftrain.mixture.clusters import sphere
from selftrain.protocol import (
    Fit,
    Protocol,
    PseudoLabels,
    SampleGroup,
    Use,
    protocol_of,
)

WORDS = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "delta": 0.5, "steps": 3}


def test_groups_of_a_batch_that_returns() -> None:
    problem = Problem(**WORDS, batches=("a", "b", "a"), keep_labeled=(0.0, 1.0, 0.5))
    protocol = protocol_of(problem, Recipe())
    labeled, first, second = protocol.uses
    assert [group.labeled for group in protocol.groups] == [True, False, False]
    assert {t: use.weight for t, use in labeled.items()} == {0: 1.0, 2: 1.0, 3: 0.5}
    assert (protocol.groups[1].name, protocol.groups[1].alpha) == ("a", 2.0)
    assert sorted(first) == [1, 3]
    assert sorted(second) == [2]
    assert new_samples(problem).tolist() == [2.0, 2.0, 0.0]


def test_parts_of_a_pool_share_the_rows_of_a_step() -> None:
    problem = Problem(**WORDS, batches=("a+b", "b + c", "c+a"))
    protocol = protocol_of(problem, Recipe())
    assert [group.alpha for group in protocol.groups[1:]] == [1.0, 1.0, 1.0]
    assert [sorted(uses) for uses in protocol.uses[1:]] == [[1, 3], [1, 2], [2, 3]]
    assert new_samples(problem).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"batches": ("a", "b", "c")}, True),
        ({"batches": "reused"}, False),
        ({"batches": "reused", "steps": 1}, True),
        ({"batches": ("a", "b", "b")}, False),
        ({"keep_labeled": 0.3}, False),
        ({"keep_labeled": (0, 0, 1)}, False),
        ({"keep_labeled": 1, "steps": 0}, True),
    ],
)
def test_every_sample_once(fields: dict, expected: bool) -> None:
    assert Problem(**{**WORDS, **fields}).every_sample_once is expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batches": "fresher"}, "got 'fresher'"),
        ({"batches": 3}, "got 3"),
        ({"batches": ("a", "b")}, "one name per step: 3, not 2"),
        ({"batches": ("a", "", "b")}, "batches[1] must be"),
        ({"batches": ("a", 1, "b")}, "batches[1] must be"),
        ({"batches": ("a", "a+a", "b")}, "must have every part once"),
        ({"batches": "reused", "alpha_u": (1, 1, 2)}, "alpha_u = 2.0: samples that are reused"),
        ({"batches": ("a", "b", "a"), "rho_u": (0.1, 0.2, 0.3)}, "rho_u = 0.3"),
        ({"batches": ("a", "b", "a+b")}, "parts of a step share its alpha_u equally"),
        ({"keep_labeled": -1.0}, "keep_labeled must be a finite number >= 0"),
        ({"keep_labeled": float("inf")}, "keep_labeled must be a finite number >= 0"),
        ({"keep_labeled": (1.0, 1.0)}, "keep_labeled"),
    ],
)
def test_refused(fields: dict, message: str) -> None:
    with pytest.raises(InvalidInput) as told:
        Problem(**{**WORDS, **fields})
    assert message in str(told.value)


def test_round_trips_and_silence_at_the_default() -> None:
    problem = Problem(**WORDS, batches=("a", "b", "a"), keep_labeled=0.5)
    assert Problem.from_json(problem.to_json()) == problem
    assert Problem.from_toml(problem.to_toml()) == problem
    assert "batches=('a', 'b', 'a'), keep_labeled=0.5" in repr(problem)
    assert "batches" not in Problem(**WORDS).to_dict()


def test_limits_count_every_row_once() -> None:
    """Rows seen again bring no information: the limit of a reused batch is that of one step."""
    once = bayes_error(Problem(**{**WORDS, "steps": 1}))
    again = bayes_error(Problem(**WORDS, batches="reused", keep_labeled=1.0))
    assert np.isclose(again.semi_supervised, once.semi_supervised, rtol=1e-14)
    assert np.isclose(again.all_labeled, once.all_labeled, rtol=1e-14)


def test_protocol_of_a_run_with_everything() -> None:
    words = {**WORDS, "alpha_u": (2.0, 2.0, 4.0)}
    problem = Problem(**words, batches=("a", "b", "a+b"), keep_labeled=(0, 1, 0.5))
    recipe = Recipe(
        lambda_l=0.1, lambda_u=(0.2, 0.3, 0.4), threshold=(0, 0.5, 0), annealing=1.0, fix_bias=True
    )
    protocol = protocol_of(problem, recipe)
    assert [(g.name, g.alpha, g.proportions, g.law.sphere) for g in protocol.groups] == [
        ("labeled", 0.5, (0.6, 0.4), 0.5),
        ("a", 2.0, (0.6, 0.4), 0.5),
        ("b", 2.0, (0.6, 0.4), 0.5),
    ]
    uses = [
        [(use.group, use.weight, use.labels is None) for use in fit.uses] for fit in protocol.fits
    ]
    assert uses == [
        [(0, 1.0, True)],
        [(1, 1.0, False)],
        [(0, 1.0, True), (2, 1.0, False)],
        [(0, 0.5, True), (1, 1.0, False), (2, 1.0, False)],
    ]
    assert [fit.ridge for fit in protocol.fits] == [0.1, 0.2, 0.3, 0.4]
    assert [fit.bias_of for fit in protocol.fits] == [None, 0, 0, 0]
    labels = [fit.uses[-1].labels for fit in protocol.fits[1:]]
    assert [(made.teacher, made.sharpness, made.threshold) for made in labels if made] == [
        (0, 2.0, 0.0),
        (1, 3.0, 0.5),
        (2, 4.0, 0.0),
    ]
    assert protocol.first_reuse == 2
    assert protocol.jumps
    assert not protocol.every_sample_once


def test_protocol_of_fresh_batches_uses_every_sample_once() -> None:
    protocol = protocol_of(Problem(**WORDS), Recipe())
    assert protocol.every_sample_once
    assert protocol.first_reuse is None
    assert not protocol.jumps
    assert [sorted(used) for used in protocol.uses] == [[0], [1], [2], [3]]


def test_clusters_that_return_must_not_change() -> None:
    shapes = [Clusters([1.0, 0.5], [0.5, 0.4]), Clusters([1.0, 0.5], [0.5, 0.6])]
    words = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "clusters": shapes[0], "steps": 2}
    groups = protocol_of(Problem(**words, clusters_u=tuple(shapes)), Recipe()).groups
    assert [group.law for group in groups] == [shapes[0], *shapes]
    with pytest.raises(InvalidInput, match="clusters_u must be the same"):
        Problem(**words, clusters_u=tuple(shapes), batches="reused")


def test_labels_come_from_earlier_fits() -> None:
    labels = PseudoLabels(1, 1.0, 0.0, get_labeler("soft"))
    fit = Fit(0.1, get_loss("logistic"), (Use(0, 1.0),))
    group = SampleGroup("labeled", 1.0, (0.5, 0.5), sphere(0.5))
    Protocol((group,), (fit, fit, fit._replace(uses=(Use(0, 1.0, labels),))))
    with pytest.raises(InvalidInput, match="teacher"):
        Protocol((group,), (fit, fit._replace(uses=(Use(0, 1.0, labels),))))
    with pytest.raises(InvalidInput, match="bias_of"):
        Protocol((group,), (fit._replace(bias_of=0),))


SAMPLES = SampleGroup("a", 1.0, 0.3, 0.5)
FIRST = Fit(1.0, "logistic", (Use("a"),))


@pytest.mark.parametrize(
    ("groups", "fits", "test", "message"),
    [
        (SAMPLES, (FIRST,), None, "groups must be a tuple"),
        ((SAMPLES,), FIRST, None, "fits must be a tuple"),
        ((SAMPLES,), 5, None, "fits must be a tuple"),
        ((SAMPLES,), (FIRST._replace(uses=Use("a")),), None, "uses must be a tuple of objects Use"),
        ((SAMPLES,), (FIRST._replace(uses=("a",)),), None, "uses must be a tuple of objects Use"),
        (
            (SAMPLES,),
            (FIRST._replace(uses=(Use(0.5),)),),
            None,
            "group must be a name, or",
        ),
        ((SAMPLES,), (FIRST, FIRST._replace(uses=(Use("a", 1.0, 0),))), None, "labels must be Pse"),
        (
            (SAMPLES,),
            (FIRST, FIRST._replace(uses=(Use("a", 1.0, PseudoLabels(0, agree="no")),))),
            None,
            "agree must be True or False",
        ),
        ((SAMPLES,), (FIRST,), "unlabeled", "test must be None or"),
    ],
)
def test_a_protocol_names_what_is_wrong(groups, fits, test, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        Protocol(groups, fits, test)


def test_fits_collapse_with_their_only_teachers() -> None:
    by = [(Use("a", 1.0, PseudoLabels(r)),) for r in range(4)]
    mixed = (Use("a", 1.0, PseudoLabels(1), given=0.5),)
    fits = [FIRST, *(FIRST._replace(uses=uses) for uses in (by[0], by[1], by[0], mixed, by[2]))]
    protocol = Protocol((SAMPLES,), tuple(fits))
    assert protocol.collapses_with(1) == [1, 2, 5]
    assert protocol.collapses_with(0) == [0, 1, 2, 3, 5]
