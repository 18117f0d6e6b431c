"""K classes in the causal engine: against a finite system written here, the exact engine of two
classes, symmetries, and published-style numbers of self-distillation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from selftrain import Clusters, Problem, Protocol, Recipe, solve
from selftrain.confusion import class_probabilities
from selftrain.protocol import Fit, PseudoLabels, SampleGroup, Use, class_basis, protocol_of
from selftrain.theory.causal.classes import ClassTrajectory
from selftrain.theory.causal.draws import PointSource
from selftrain.theory.causal.replicate import Replicate
from selftrain.theory.causal.response import Scores
from selftrain.theory.causal.setting import Setting

GRAM = np.array([[1.5, 0.2, -0.3], [0.2, 1.2, 0.1], [-0.3, 0.1, 1.0]])
SHARES = (0.5, 0.3, 0.2)
THREE = {"rho": SHARES, "clusters": Clusters.from_gram(GRAM, 0.6)}


def fitted(
    X: np.ndarray, y: np.ndarray, k: np.ndarray, ridge: float, bias: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Class vectors (N, K) and bias of a multinomial fit to soft labels y, weights k."""
    features, classes = X.shape[1], y.shape[1]

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        w = z[: features * classes].reshape(features, classes)
        b = z[features * classes :] if bias is None else bias
        scores = X @ w + b
        top = scores.max(axis=1, keepdims=True)
        mass = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0]
        value = k @ (mass - (y * scores).sum(axis=1)) + 0.5 * ridge * (w**2).sum()
        f = k[:, None] * (softmax(scores, axis=1) - y)
        slope = np.concatenate([(X.T @ f + ridge * w).ravel(), f.sum(axis=0)])
        return value, slope if bias is None else slope[: features * classes]

    size = features * classes + (classes if bias is None else 0)
    options = {"maxiter": 4000, "ftol": 1e-15, "gtol": 1e-7}
    z = minimize(objective, np.zeros(size), jac=True, method="L-BFGS-B", options=options).x
    b = z[features * classes :] - z[features * classes :].mean() if bias is None else bias
    return z[: features * classes].reshape(features, classes), b


def finite(protocol: Protocol, means: np.ndarray, noise: np.ndarray, seed: int) -> np.ndarray:
    """Overlaps, norms and biases of the fits to samples with these means and variances."""
    random = np.random.default_rng(seed)
    classes, features = means.shape
    samples, fits = [], []
    for group in protocol.groups:
        count = round(group.alpha * features)
        true = random.choice(classes, count, p=group.proportions)
        X = means[true] + random.normal(size=(count, features)) * np.sqrt(noise)
        given = true
        if group.label_noise is not None:
            rows = np.array(group.label_noise)
            given = np.array([random.choice(classes, p=rows[k]) for k in true])
        samples.append((X, np.eye(classes)[given], given))
    found = []
    for fit in protocol.fits:
        parts = []
        for use in fit.uses:
            X, given, label = samples[use.group]
            if use.labels is None:
                parts.append((X, given, np.full(len(X), use.weight)))
                continue
            w, b = fits[use.labels.teacher]
            scores = X @ w + b
            made = softmax(min(use.labels.sharpness, 1e9) * scores, axis=1)
            order = np.sort(scores, axis=1)
            distance = np.sum((w[:, :, None] - w[:, None, :]) ** 2) / (classes * (classes - 1))
            edge = use.labels.threshold * math.sqrt(distance) * protocol.length
            chosen = order[:, -1] - order[:, -2] > edge
            if use.labels.agree:
                chosen &= scores.argmax(axis=1) == label
            k = use.weight * chosen
            whole = np.maximum(k + use.given, 1e-300)[:, None]
            parts.append((X, (k[:, None] * made + use.given * given) / whole, k + use.given))
        X, y, k = (np.concatenate(column) for column in zip(*parts, strict=True))
        bias = None if fit.bias_of is None else fits[fit.bias_of][1]
        w, b = fitted(X, y, k, fit.ridge * features, bias)
        fits.append((w, b))
        found.append([*(w.T @ means.T).ravel(), (w**2).sum(), *b])
    return np.array(found)


def scores_of(run: ClassTrajectory) -> np.ndarray:
    """What `finite` measures."""
    return np.array(
        [[*run.m[t].ravel(), run.q[t], *run.bias[t]] for t in range(run.good_steps)]
    )  # fmt: skip


FINITE = {
    "labels kept, batch reused, 15 % wrong": (
        {"alpha_l": 1.5, "alpha_u": 2.0, "steps": 2, "batches": "reused", "keep_labeled": 0.5,
         "label_noise": 0.15},
        {"lambda_l": 0.3, "lambda_u": 0.2},
    ),
    "relabelled beside a fresh batch, bias fixed, annealed": (
        {"alpha_l": 1.5, "alpha_u": 1.0, "steps": 2, "batches": "labeled+fresh",
         "label_noise": ((0.8, 0.2, 0.0), (0.0, 0.9, 0.1), (0.1, 0.1, 0.8))},
        {"lambda_l": 0.3, "lambda_u": 0.2, "fix_bias": True, "annealing": 0.5},
    ),
    "hard labels, selection, fresh": (
        {"alpha_l": 2.0, "alpha_u": 2.0, "steps": 1},
        {"lambda_l": 0.3, "lambda_u": 0.2, "sharpness": math.inf, "threshold": 0.2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINITE)
def test_three_classes_against_finite_systems(name: str) -> None:
    fields, words = FINITE[name]
    problem, recipe = Problem(**fields, **THREE), Recipe(**words)
    run = solve(problem, recipe, tolerance=1e-3)
    protocol = protocol_of(problem, recipe)
    means = np.zeros((3, 500))
    means[:, :3] = THREE["clusters"].means
    found = np.array([finite(protocol, means, np.full(500, 0.6), seed) for seed in range(10)])
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    scores = (found.mean(axis=0) - scores_of(run)) / error
    assert np.abs(scores).max() < 4, scores


def test_agreement_mixed_labels_and_a_covariance_against_finite_systems() -> None:
    """No problem says this: samples on which the given label and an old teacher agree, mixed with
    given labels, on clusters that are no sphere.
    """
    random = np.random.default_rng(3)
    means = random.normal(size=(3, 400)) * 1.3 / 20
    noise = np.exp(0.5 * random.normal(size=400))
    clusters = Clusters(means=means, covariance=noise)
    first = SampleGroup("a", 1.5, SHARES, clusters, label_noise=0.2)
    second = SampleGroup("b", 1.0, (0.3, 0.3, 0.4), clusters)
    agree = PseudoLabels(0, sharpness=2.0, agree=True)
    fits = (
        Fit(0.5, "logistic", (Use("a"),)),
        Fit(0.4, "logistic", (Use("a", 1.0, agree), Use("b", 1.0, PseudoLabels(0)))),
        Fit(0.3, "logistic", (Use("a", 0.7, PseudoLabels(0), 0.4), Use("b", 2.0, PseudoLabels(1)))),
    )
    protocol = Protocol((first, second), fits)
    run = solve(protocol, tolerance=1e-3)
    found = np.array([finite(protocol, means, noise, seed) for seed in range(12)])
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    scores = (found.mean(axis=0) - scores_of(run)) / error
    assert np.abs(scores).max() < 4, scores


def test_five_classes_of_a_covariance_against_finite_systems() -> None:
    random = np.random.default_rng(5)
    means = random.normal(size=(5, 300)) * 1.8 / math.sqrt(300)
    noise = np.exp(0.4 * random.normal(size=300))
    problem = Problem(
        alpha_l=2.0, alpha_u=2.0, rho=(0.3, 0.25, 0.2, 0.15, 0.1), steps=1, label_noise=0.2,
        clusters=Clusters(means=means, covariance=noise), batches="labeled+reused",
        keep_labeled=0.3,
    )  # fmt: skip
    recipe = Recipe(lambda_l=0.5, lambda_u=0.3, annealing=0.3)
    run, protocol = solve(problem, recipe, tolerance=1e-3), protocol_of(problem, recipe)
    found = np.array([finite(protocol, means, noise, seed) for seed in range(100, 124)])
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    scores = (found.mean(axis=0) - scores_of(run)) / error
    assert np.abs(scores).max() < 4, scores


@pytest.mark.parametrize(("loss", "tolerance"), [("squared", None), ("logistic", 1e-3)])
def test_two_classes_of_almost_equal_means_are_one_with_two_labels(
    loss: str, tolerance: float | None
) -> None:
    """Two classes of one mean, or one class of both whose labels are drawn at random: the same
    samples and labels. The class that is left over has a share of 1e-9 and another mean.
    """
    words = {"alpha_l": 1.2, "alpha_u": 2.0, "steps": 2, "loss": loss, "keep_labeled": 0.5}
    recipe = Recipe(lambda_l=0.3, lambda_u=0.2)
    means = np.array([[-1.0, 0.0], [1.0, 1e-9], [1.0, -1e-9]])
    split = Problem(**words, rho=(0.6, 0.25, 0.15), clusters=Clusters(means=means, covariance=0.5))
    means = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    merged = Problem(
        **words, rho=(0.6, 0.4 - 1e-9, 1e-9), clusters=Clusters(means=means, covariance=0.5),
        label_noise=((1.0, 0.0, 0.0), (0.0, 0.625, 0.375), (0.0, 0.0, 1.0)),
    )  # fmt: skip
    one, other = (solve(problem, recipe, tolerance=tolerance) for problem in (split, merged))
    rough = 1e-7 if tolerance is None else 3e-3
    np.testing.assert_allclose(one.m[:, :, :2], other.m[:, :, :2], atol=rough)
    np.testing.assert_allclose(one.bias, other.bias, atol=rough)
    np.testing.assert_allclose(one.q_matrix, other.q_matrix, atol=rough)


def binary_and_scores(fields: dict[str, Any], words: dict[str, Any]) -> tuple[Any, Any]:
    """A run of two classes on one logit, and through the scores of K classes, on the same points:
    twice the ridge for the logistic loss, the same for the squared one.
    """
    problem = Problem(alpha_l=1.2, alpha_u=2.0, rho=0.35, delta=0.6, steps=2, **fields)
    protocol = protocol_of(problem, Recipe(lambda_l=0.3, lambda_u=0.2, **words))
    squared = fields.get("loss") == "squared"
    fits = tuple(fit._replace(ridge=fit.ridge * (1 if squared else 2)) for fit in protocol.fits)
    setting = Setting.of(protocol)
    scores = Setting.of(replace(protocol, fits=fits))._replace(
        losses=(Scores(2, squared),) * len(fits)
    )
    runs = [Replicate(one, PointSource(2**10)).solve() for one in (setting, scores)]
    return runs[0], runs[1]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, {}),
        ({"batches": "reused", "keep_labeled": 0.5, "label_noise": 0.1}, {"annealing": 0.5}),
        ({"batches": "labeled+reused", "label_noise": 0.2}, {"fix_bias": True}),
        ({"batches": "reused"}, {"sharpness": math.inf, "threshold": 0.2}),
        ({"batches": "reused", "loss": "squared"}, {"sharpness": math.inf}),
    ],
)
def test_two_classes_through_scores_are_the_binary_engine(fields: Any, words: Any) -> None:
    one, other = binary_and_scores(fields, words)
    root = math.sqrt(2.0)
    np.testing.assert_allclose(root * other.bias, one.bias, rtol=1e-6, atol=1e-8)
    for t in range(3):
        assert math.isclose(2 * other.history.square(t), one.history.square(t), rel_tol=1e-6)
    np.testing.assert_allclose(other.shares, one.shares, rtol=1e-6)
    np.testing.assert_allclose(other.measured[1:3], one.measured[1:3], atol=1e-2)  # counted


def test_derivatives_of_the_response_are_those_of_differences() -> None:
    random = np.random.default_rng(0)
    loss = Scores(4, False)
    field, weight = random.normal(size=(5, 3)), np.array([1.0, 0.5, 2.0, 0.0, 1.0])
    target = loss.codes[random.integers(0, 4, 5)]
    strength = np.array([[1.5, 0.2, 0.1], [0.2, 0.8, -0.3], [0.1, -0.3, 1.1]])

    def respond(h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u, f = np.zeros((5, 3)), np.zeros((5, 3))
        d, bend = loss.respond(h, target, weight, strength, u, f)
        np.testing.assert_allclose(u + f @ strength, h, atol=1e-9)
        np.testing.assert_allclose(f, weight[:, None] * loss.slope(target, u), atol=1e-12)
        return f, d, bend

    _, d, bend = respond(field)
    for a in range(3):
        step = 1e-4 * np.eye(3)[a]
        (f1, d1, _), (f0, d0, _) = respond(field + step), respond(field - step)
        np.testing.assert_allclose((f1 - f0) / 2e-4, d[:, :, a], atol=1e-6)
        np.testing.assert_allclose((d1 - d0) / 2e-4, bend[:, :, :, a], atol=1e-6)


def same_classes(
    one: ClassTrajectory, other: ClassTrajectory, order: list[int], tol: float
) -> None:
    """Whether the classes of one run are those of another in this order."""
    np.testing.assert_allclose(one.error, other.error, atol=tol)
    np.testing.assert_allclose(one.q, other.q, rtol=10 * tol)
    np.testing.assert_allclose(one.bias[:, order], other.bias, atol=10 * tol)
    np.testing.assert_allclose(one.confusion[:, order][:, :, order], other.confusion, atol=10 * tol)


def test_permuted_classes_and_rotated_means() -> None:
    order = [2, 0, 1]
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    words = {"alpha_l": 1.2, "alpha_u": 2.0, "steps": 1, "loss": "squared"}
    recipe = Recipe(lambda_l=0.3, lambda_u=0.2)
    noise = np.array([[0.8, 0.2, 0.0], [0.0, 0.9, 0.1], [0.1, 0.1, 0.8]])
    run = solve(Problem(**words, **THREE, label_noise=noise), recipe)
    means = THREE["clusters"].means[order] @ turn
    shares, turned = tuple(SHARES[k] for k in order), noise[np.ix_(order, order)]
    other = Problem(
        **words, rho=shares, clusters=Clusters(means=means, covariance=0.6), label_noise=turned
    )
    same_classes(run, solve(other, recipe), order, 1e-6)
    same = solve(Problem(**words, **THREE, label_noise=noise, batches="reused"), recipe)
    assert run.stats.tolerance == same.stats.tolerance == 1e-10
    same_classes(run, same, [0, 1, 2], 1e-9)


def test_a_batch_split_in_two_is_one_batch() -> None:
    clusters = THREE["clusters"]
    whole = SampleGroup("a", 1.5, SHARES, clusters, 0.1)
    parts = (replace(whole, name="b", alpha=1.0), replace(whole, name="c", alpha=0.5))

    def protocol(groups: tuple[SampleGroup, ...]) -> Protocol:
        uses = tuple(Use(group.name) for group in groups)
        again = tuple(Use(group.name, 0.5, PseudoLabels(0), 0.5) for group in groups)
        return Protocol(groups, (Fit(0.3, "squared", uses), Fit(0.2, "squared", again)))

    one, two = solve(protocol((whole,))), solve(protocol(parts))
    same_classes(one, two, [0, 1, 2], 1e-9)


SELF_DISTILLATION = {
    1.5: [0.22125, 0.34415, 0.40000],
    3.0: [0.15895, 0.19154, 0.39448],
    5.0: [0.13368, 0.13435, 0.27071],
}
"""Errors by a separate program on few points, within 4e-4; setting of arXiv 2501.16226."""


@pytest.mark.parametrize("alpha", SELF_DISTILLATION)
def test_self_distillation_of_a_separate_program(alpha: float) -> None:
    problem = Problem(
        alpha_l=alpha, rho=0.4, delta=0.5, steps=2, batches="labeled", label_noise=0.2
    )
    recipe = Recipe(lambda_l=1.5, lambda_u=(0.5, 2.0), sharpness=(0.8, 1.2))
    run = solve(problem, recipe, tolerance=1e-4)
    np.testing.assert_allclose(run.error, SELF_DISTILLATION[alpha], atol=4e-4)
    samples = SampleGroup("samples", alpha, 0.4, 0.5, label_noise=0.2)
    fits = [Fit(1.5, "logistic", (Use("samples"),))]
    for t, (ridge, sharpness) in enumerate(((0.5, 0.8), (2.0, 1.2))):
        fits.append(Fit(ridge, "logistic", (Use("samples", 1.0, PseudoLabels(t, sharpness)),)))
    other = solve(Protocol((samples,), tuple(fits)), tolerance=1e-4)
    np.testing.assert_allclose(other.error, run.error, atol=1e-6)
    np.testing.assert_allclose(2 * other.q, run.q, rtol=1e-6)
    np.testing.assert_allclose(other.pseudo_label_accuracy[1:], run.pseudo_label_accuracy[1:])


def test_the_objective_of_self_distillation_has_the_derivative_of_its_ridge() -> None:
    """At fixed earlier steps the minimum of the objective grows with the ridge by q/2."""
    words = {"alpha_l": 2.0, "rho": 0.4, "delta": 0.5, "steps": 1, "label_noise": 0.2}
    problem = Problem(**words, batches="labeled", keep_labeled=0.5)
    low, mid, high = (
        solve(problem, Recipe(lambda_l=1.0, lambda_u=ridge), tolerance=1e-6)
        for ridge in (0.499, 0.5, 0.501)
    )
    slope = (high.objective[1] - low.objective[1]) / 0.002
    assert math.isclose(slope, mid.q[1] / 2, rel_tol=1e-3)


def test_probabilities_of_the_largest_score() -> None:
    random = np.random.default_rng(0)
    basis = class_basis(4)
    mean, root = random.normal(size=3), random.normal(size=(3, 3))
    found = class_probabilities(basis, mean, root @ root.T)
    scores = (mean + random.normal(size=(10**6, 3)) @ root.T) @ basis.T
    counted = np.bincount(scores.argmax(axis=1), minlength=4) / 1e6
    np.testing.assert_allclose(found, counted, atol=2e-3)


def test_laws_of_scores() -> None:
    problem = Problem(
        alpha_l=1.5, alpha_u=2.0, steps=1, batches="labeled+fresh", label_noise=0.1, **THREE
    )
    run = solve(problem, Recipe(lambda_l=0.3, lambda_u=0.2), tolerance=1e-3)
    kinds, scores = run.test_logits().sample(200_000, seed=1)
    wrong = np.mean(scores.argmax(axis=1) != kinds)
    assert abs(wrong - run.error[-1]) < 5e-3
    assert abs(float(run.test_logits().cdf(0.0, 1)) - np.mean(scores[:, 1] <= 0)) < 5e-3
    trained = run.training_logits(1)
    shares = trained.weights @ (softmax(trained.previous, axis=1))
    np.testing.assert_allclose(shares, run.label_shares[1], atol=2e-3)
    given = run.training_logits(0)
    right = given.weights @ (given.scores.argmax(axis=1) == given.given)
    assert right > given.weights @ (given.scores.argmax(axis=1) == given.true)
    frame = run.to_frame()
    assert frame.loc[1, "error"] == run.error[1]
    assert run.to_xarray()["confusion"].shape == (2, 3, 3)
    np.testing.assert_allclose(run.confusion.sum(axis=2), 1.0)


def test_a_lost_class_ends_the_run_and_is_named() -> None:
    clusters = Clusters.simplex(3, distance=1.0, delta=1.0)
    problem = Problem(1.0, 2.0, (0.7, 0.28, 0.02), steps=12, clusters=clusters)
    recipe = Recipe(lambda_l=0.2, lambda_u=0.5, labeler="hard")
    run = solve(problem, recipe, on_failure="partial")
    assert run.collapsed_at is not None
    assert run.collapsed_class == 2
    assert np.isnan(run.error[run.collapsed_at :]).all()
    assert np.isfinite(run.error[: run.collapsed_at]).all()
