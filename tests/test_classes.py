"""K classes, label noise and self-distillation as data: what is accepted, what becomes of it, what
is rejected with which sentence.
"""

from typing import Any

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, bayes_error, continuum
from selftrain.batches import new_samples
from selftrain.errors import InvalidInput
from selftrain.protocol import (
    Fit,
    Protocol,
    PseudoLabels,
    SampleGroup,
    Use,
    class_basis,
    protocol_of,
)

THREE = {
    "alpha_l": 1.0, "alpha_u": 2.0, "rho": (0.5, 0.3, 0.2), "steps": 2,
    "clusters": Clusters.simplex(3, 2.0, 0.5),
}  # fmt: skip
TWO = {"alpha_l": 1.5, "rho": 0.4, "delta": 0.5, "steps": 2}


def test_means_of_a_gram_matrix_and_a_simplex() -> None:
    gram = np.array([[2.0, 0.3, -0.1], [0.3, 1.0, 0.2], [-0.1, 0.2, 1.5]])
    clusters = Clusters.from_gram(gram, 0.5)
    np.testing.assert_allclose(clusters.means @ clusters.means.T, gram, atol=1e-14)
    means = Clusters.simplex(5, 3.0, 0.5).means
    distances = np.linalg.norm(means[:, None] - means, axis=2)[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(distances, 3.0, rtol=1e-13)
    np.testing.assert_allclose(means.sum(axis=0), 0.0, atol=1e-14)


def test_two_means_are_the_binary_clusters_around_their_midpoint() -> None:
    made = Clusters(means=[[1.0, 2.0], [3.0, 2.0]], covariance=[1.0, 2.0])
    assert made == Clusters([1.0, 0.0], [1.0, 2.0], midpoint=[2.0, 2.0])
    assert made.classes == 2


def test_modes_of_classes_have_the_products_of_the_means() -> None:
    random = np.random.default_rng(0)
    means, variances = random.normal(size=(3, 6)), np.array([1.0, 1.0, 1.0, 1.0, 2.0, 3.0])
    modes = Clusters(means=means, covariance=variances).class_modes
    assert modes.copies.sum() == 6
    for value in (1.0, 2.0, 3.0):
        mine, here = modes.means[modes.variances == value], means[:, variances == value]
        np.testing.assert_allclose(mine.T @ mine, here @ here.T, atol=1e-13)
    turn = np.linalg.qr(random.normal(size=(6, 6)))[0]
    turned = Clusters(means=means @ turn, covariance=turn.T @ np.diag(variances) @ turn).class_modes
    whole = (turned.means.T * turned.variances) @ turned.means
    np.testing.assert_allclose(whole, (means * variances) @ means.T, atol=1e-12)


def test_clusters_of_rows_with_three_labels() -> None:
    random = np.random.default_rng(1)
    centres = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    y = random.integers(0, 3, 3000)
    X = centres[y] + random.normal(size=(3000, 3)) * [1.0, 0.5, 2.0]
    names = np.array(["a", "b", "c"])[y]
    found = Clusters.from_data(X, names, shrinkage=0)
    np.testing.assert_allclose(found.means + found.midpoint, centres, atol=0.2)
    np.testing.assert_allclose(found.covariance, np.diag([1.0, 0.25, 4.0]), atol=0.3)
    np.testing.assert_allclose(found.means.sum(axis=0), 0.0, atol=1e-12)
    small = Clusters.from_data(X, names, directions=2)
    assert (small.classes, small.features) == (3, 2)
    assert 0 < small.kept <= 1
    again = Clusters.from_dict(small.to_dict())
    assert again == small


def test_a_problem_of_three_classes_survives_round_trips() -> None:
    noise = ((0.9, 0.1, 0.0), (0.2, 0.7, 0.1), (0.0, 0.0, 1.0))
    shares = ((0.2, 0.3, 0.5), (0.4, 0.4, 0.2))
    problem = Problem(**THREE, rho_u=shares, label_noise=noise, batches="labeled+fresh")
    assert Problem.from_json(problem.to_json()) == problem
    assert Problem.from_toml(problem.to_toml()) == problem
    assert problem.classes == 3
    np.testing.assert_array_equal(problem.unlabeled.rho, shares)
    assert problem.test_mixture.rho == shares[1]
    protocol = protocol_of(problem, Recipe())
    assert [group.proportions for group in protocol.groups] == [THREE["rho"], *shares]
    assert protocol.groups[0].label_noise == noise
    assert (protocol.classes, protocol.components) == (3, 2)
    assert protocol.test.proportions == shares[1]


def test_two_proportions_are_the_binary_problem() -> None:
    words = {**TWO, "alpha_u": 2.0}
    assert Problem(**{**words, "rho": (0.6, 0.4)}) == Problem(**words)
    assert "label_noise" not in Problem(**words).to_dict()


def test_self_distillation_relabels_the_labelled_samples() -> None:
    problem = Problem(**TWO, batches="labeled", keep_labeled=(0.0, 0.5), label_noise=0.2)
    protocol = protocol_of(problem, Recipe())
    assert [group.name for group in protocol.groups] == ["labeled"]
    first, second = (protocol.fits[t].uses[0] for t in (1, 2))
    assert (first.weight, first.given, first.labels.teacher) == (1.0, 0.0, 0)
    assert (second.weight, second.given, second.labels.teacher) == (1.0, 0.5, 1)
    assert new_samples(problem).tolist() == [0.0, 0.0]
    assert not problem.every_sample_once
    both = Problem(**TWO, alpha_u=3.0, batches="labeled+fresh")
    assert [group.alpha for group in protocol_of(both, Recipe()).groups] == [1.5, 3.0, 3.0]
    assert new_samples(both).tolist() == [3.0, 3.0]
    np.testing.assert_allclose(problem.given_labels, [[0.8, 0.2], [0.2, 0.8]])


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_basis_of_scores_of_sum_zero(classes: int) -> None:
    basis = class_basis(classes)
    np.testing.assert_allclose(basis.T @ basis, np.eye(classes - 1), atol=1e-15)
    np.testing.assert_allclose(basis.sum(axis=0), 0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"rho": (0.5, 0.3, 0.3)}, r"rho = .*sum to one; these sum to 1.1"),
        ({"rho": (0.5, 0.5, 0.0)}, r"rho\[2\] must be strictly between 0 and 1, got 0.0"),
        ({"rho": (0.5, 0.3, 0.1, 0.1)}, "rho has 4 proportions and clusters have 3 means"),
        ({"rho": 0.4}, "rho has 2 proportions and clusters have 3 means"),
        ({"clusters": None, "delta": 0.5}, r"3 classes need clusters.*Clusters.simplex\(3"),
        ({"rho_u": 0.3}, "rho_u must be 3 proportions"),
        ({"label_noise": 0.7}, "label_noise must be .* below 0.6667.*got 0.7"),
        ({"label_noise": -0.1}, "label_noise"),
        ({"label_noise": np.eye(2)}, "with 3 rows of 3"),
        ({"label_noise": np.full((3, 3), 0.5)}, "must have rows that sum to one"),
        (
            {"label_noise": [[0.3, 0.7, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]]},
            "must make label 1 more probable in class 1 than in class 0",
        ),
        ({"alpha_u": None}, "alpha_u must be .* got None"),
        ({"clusters_u": Clusters.simplex(2, 1.0, 0.5)}, "clusters_u"),
        ({"test": (0.4, Clusters.simplex(3, 1.0, 0.5))}, "test rho must be 3 proportions"),
        ({"batches": "labelled"}, "batches must be"),
    ],
)
def test_problems_that_are_rejected(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Problem(**{**THREE, **fields})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Clusters.from_gram(np.diag([1.0, -1.0, 2.0]), 0.5), "positive semidefinite"),
        (lambda: Clusters.from_gram([[1.0, 0.5], [0.1, 1.0]], 0.5), "must be symmetric"),
        (lambda: Clusters.from_gram(np.ones((2, 3)), 0.5), "square matrix"),
        (lambda: Clusters.from_gram(np.ones((3, 3)), 0.5), "classes 0 and 1 have the same mean"),
        (
            lambda: Clusters(means=[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], covariance=1.0),
            "classes 1 and 2 have the same mean",
        ),
        (lambda: Clusters(means=np.eye(3), covariance=(1.0, 2.0)), "one covariance for all 3"),
        (lambda: Clusters.simplex(1, 1.0, 0.5), "whole number of classes"),
        (lambda: Clusters.simplex(3, 1.0, 0.5).best_rule(), "must have two classes"),
        (lambda: Clusters.from_data(np.eye(4), [0, 1, 2, 2]), "at least two rows of each class"),
    ],
)
def test_clusters_that_are_rejected(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        make()


GROUP = SampleGroup("a", 1.0, (0.5, 0.3, 0.2), Clusters.simplex(3, 2.0, 0.5))
FIRST = Fit(0.1, "logistic", (Use("a"),))


@pytest.mark.parametrize(
    ("groups", "fits", "sentence"),
    [
        ((GROUP,), (FIRST, Fit(0.1, "logistic", (Use("a", 1.0, PseudoLabels(1)),))), "teacher = 1"),
        ((GROUP,), (FIRST, FIRST._replace(bias_of=1)), "bias_of = 1"),
        ((GROUP,), (Fit(0.1, "logistic", (Use("b"),)),), "must be one of the groups a"),
        ((GROUP,), (Fit(0.1, "logistic", (Use("a"), Use(0))),), "uses a group twice"),
        ((GROUP,), (Fit(0.1, "logistic", ()),), "uses one group or more"),
        ((GROUP,), (), "must be one Fit or more"),
        ((GROUP, GROUP), (FIRST,), "different names"),
        ((GROUP, SampleGroup("b", 1.0, 0.4, 0.5)), (FIRST,), "must have 3 classes"),
        ((GROUP,), (Fit(-1.0, "logistic", (Use("a"),)),), "ridge"),
        ((GROUP,), (Fit(0.1, "hinge", (Use("a"),)),), "loss"),
    ],
)
def test_protocols_that_are_rejected(groups: Any, fits: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Protocol(groups, fits)


def test_functions_for_two_classes_reject_three() -> None:
    problem = Problem(**THREE)
    for call in (
        lambda: bayes_error(problem),
        lambda: continuum(problem, Recipe()),
    ):
        with pytest.raises(InvalidInput, match="two classes only"):
            call()
