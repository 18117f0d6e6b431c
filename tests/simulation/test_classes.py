"""K classes, wrong labels and any protocol at finite size, against other programs and published
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix as count_confusion

from selftrain import Clusters, Problem, Protocol, Recipe, simulate, solve
from selftrain.confusion import confusion_matrix
from selftrain.errors import InvalidInput
from selftrain.losses import Logistic, Squared
from selftrain.protocol import Fit, PseudoLabels, SampleGroup, Use, protocol_of
from selftrain.simulation.designs.design import Stored
from selftrain.simulation.designs.sample_sources import GaussianSource, TableSource, sample_table
from selftrain.simulation.engines.explicit import MeasuredEngine
from selftrain.simulation.labels import given_labels
from selftrain.simulation.linear.class_losses import fit_classes
from selftrain.simulation.linear.fit import fit
from selftrain.simulation.run_plan import plan_run
from selftrain.simulation.seed_run import run_fits

GRAM = np.array([[1.5, 0.2, -0.3], [0.2, 1.0, 0.1], [-0.3, 0.1, 0.8]])
SPHERES = Clusters.from_gram(GRAM, 0.5)
SHARES = (0.5, 0.3, 0.2)


def test_step_zero_is_the_multinomial_fit_of_scikit_learn() -> None:
    problem = Problem(alpha_l=3.0, alpha_u=2.0, rho=SHARES, clusters=SPHERES, steps=0)
    recipe = Recipe(lambda_l=0.2)
    plan = plan_run(protocol_of(problem, recipe), 60)
    drawn = GaussianSource(plan, 5).draw(0)[0]
    matrix = drawn.design.times(np.eye(60))
    model = LogisticRegression(C=1 / (0.2 * 60), solver="newton-cg", tol=1e-12, max_iter=1000)
    model.fit(matrix, drawn.given)
    runs = simulate(problem, recipe, 60, [5], "dense", keep_weights=True, tolerance=1e-9)
    weights = runs.vectors[0].weights[0] / np.sqrt(60)
    np.testing.assert_allclose(weights, model.coef_.T, atol=1e-6)
    np.testing.assert_allclose(runs.bias[0, 0], model.intercept_, atol=1e-6)
    assert runs.q[0, 0] == pytest.approx((model.coef_**2).sum(), rel=1e-6)
    mean = plan.means(SPHERES)
    np.testing.assert_allclose(runs.m[0, 0], model.coef_ @ mean.T, atol=1e-6)


@pytest.mark.parametrize(("loss", "factor"), [(Logistic(), 2.0), (Squared(), 1.0)])
@pytest.mark.parametrize("trained", [True, False])
def test_two_classes_written_as_scores_are_the_binary_fit(
    loss: Any, factor: float, trained: bool
) -> None:
    """The logit is the difference of the scores. The cross-entropy then has twice the ridge; the
    squared loss of the scores is half that of the logit, so its ridge is the same.
    """
    random = np.random.default_rng(0)
    matrix, labels = random.normal(size=(50, 8)), random.random(50)
    if isinstance(loss, Squared):
        scores = np.column_stack([np.zeros(50), 2 * labels - 1])
        one = fit(Stored(matrix), 2 * labels - 1, loss, 3.0, fit_bias=trained, bias=0.3)
    else:
        scores = np.column_stack([1 - labels, labels])
        one = fit(Stored(matrix), labels, loss, 3.0, fit_bias=trained, bias=0.3)
    both = fit_classes(
        Stored(matrix), scores, loss, factor * 3.0, rows=np.ones(50), fit_bias=trained,
        weights=np.zeros((8, 2)), bias=np.array([-0.15, 0.15]), tolerance=1e-10,
    )  # fmt: skip
    np.testing.assert_allclose(both.weights[:, 1] - both.weights[:, 0], one.weights, atol=1e-8)
    assert both.bias[1] - both.bias[0] == pytest.approx(one.bias, abs=1e-8)


def by_lbfgs(X: Any, parts: list[Any], ridge: float, bias: Any, squared: bool) -> tuple[Any, Any]:
    """Fit K scores with all K weight vectors free, by another method; parts are (rows, targets,
    weight) and a bias that is given is fixed.
    """
    size, classes = X.shape[1], parts[0][1].shape[1]

    def objective(point: Any) -> Any:
        weights = point[: size * classes].reshape(size, classes)
        offset = point[size * classes :] if bias is None else bias
        value, slope = 0.5 * ridge * (weights**2).sum(), ridge * weights
        pull = np.zeros(classes)
        for rows, targets, weight in parts:
            scores = X[rows] @ weights + offset
            if squared:
                off = scores - targets
                off -= off.mean(axis=1, keepdims=True)
                value += 0.5 * weight * (off**2).sum()
            else:
                off = softmax(scores, axis=1) - targets
                value += weight * (logsumexp(scores, axis=1) - (targets * scores).sum(axis=1)).sum()
            slope = slope + weight * X[rows].T @ off
            pull += weight * off.sum(axis=0)
        return value, np.concatenate([slope.ravel(), pull if bias is None else 0 * pull])

    start = np.zeros(classes * (size + 1))
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    offset = found[size * classes :] - found[size * classes :].mean() if bias is None else bias
    return found[: size * classes].reshape(size, classes), offset


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_protocol_with_everything_in_it_is_what_another_program_fits(loss: str) -> None:
    """Wrong labels, an early teacher, both kinds of labels at once, selection, hard labels, a
    copied bias, agreement with the given label.
    """
    noise = ((0.8, 0.1, 0.1), (0.0, 0.9, 0.1), (0.2, 0.1, 0.7))
    groups = (
        SampleGroup("a", 2.0, SHARES, SPHERES, label_noise=noise),
        SampleGroup("b", 3.0, (0.3, 0.4, 0.3), SPHERES),
    )
    fits = (
        Fit(0.3, loss, (Use("a"),)),
        Fit(0.2, loss, (Use("b", 1.0, PseudoLabels(0, 1.5)), Use("a", 0.5))),
        Fit(0.1, loss, (Use("a", 0.7, PseudoLabels(0, 2.0, 0.3), 0.4),), bias_of=0),
        Fit(0.2, loss, (Use("b", 1.0, PseudoLabels(1, labeler="hard")),)),
        Fit(
            0.2, loss, (Use("a", 1.0, PseudoLabels(3, agree=True)), Use("b", 2.0, PseudoLabels(2)))
        ),
    )
    protocol = Protocol(groups, fits)
    plan = plan_run(protocol, 40)
    engine = MeasuredEngine(plan, GaussianSource(plan, 1), 1e-7)
    assert len(list(run_fits(protocol, engine))) == 5
    drawn = {**GaussianSource(plan, 1).draw(0), **GaussianSource(plan, 1).draw(1)}
    X = np.vstack([drawn[g].design.times(np.eye(40)) for g in (0, 1)])
    a, b = np.arange(80), np.arange(80, 200)
    given, one_hot = drawn[0].given, np.eye(3)
    assert 5 < (given != drawn[0].classes).sum() < 35
    squared, models = loss == "squared", []

    def soft(teacher: int, rows: Any, sharpness: float = 1.0) -> Any:
        scores = sharpness * (X[rows] @ models[teacher][0] + models[teacher][1])
        return scores if squared else softmax(scores, axis=1)

    def add(ridge: float, *parts: Any, bias: Any = None) -> None:
        models.append(by_lbfgs(X, list(parts), ridge * 40, bias, squared))

    add(0.3, (a, one_hot[given], 1.0))
    add(0.2, (b, soft(0, b, 1.5), 1.0), (a, one_hot[given], 0.5))
    scores = np.sort(X[a] @ models[0][0] + models[0][1], axis=1)
    w = models[0][0]
    apart = [((w[:, k] - w[:, j]) ** 2).sum() for k in range(3) for j in range(k)]
    means = SPHERES.means
    half = np.mean([((means[k] - means[j]) ** 2).sum() for k in range(3) for j in range(k)])
    sure = scores[:, 2] - scores[:, 1] > 0.3 * np.sqrt(np.mean(apart)) * 0.5 * np.sqrt(half)
    assert 10 < sure.sum() < 75
    add(0.1, (a[sure], soft(0, a[sure], 2.0), 0.7), (a, one_hot[given], 0.4), bias=models[0][1])
    add(0.2, (b, one_hot[(X[b] @ models[1][0] + models[1][1]).argmax(axis=1)], 1.0))
    agree = (X[a] @ models[3][0] + models[3][1]).argmax(axis=1) == given
    assert 10 < agree.sum() < 75
    add(0.2, (a[agree], soft(3, a[agree]), 1.0), (b, soft(2, b), 2.0))
    for t, (weights, bias) in enumerate(models):
        np.testing.assert_allclose(engine.models[t].weights, weights, atol=2e-5, err_msg=str(t))
        np.testing.assert_allclose(engine.models[t].bias, bias, atol=2e-5, err_msg=str(t))


def test_self_distillation_has_the_published_errors() -> None:
    """The cross-check of arXiv 2501.16226: errors of the theory, one fifth of the labels wrong."""
    theory = {
        1.5: (0.22125, 0.34415, 0.40000),
        3.0: (0.15895, 0.19154, 0.39448),
        5.0: (0.13368, 0.13435, 0.27071),
    }
    recipe = Recipe(lambda_l=1.5, lambda_u=(0.5, 2.0), sharpness=(0.8, 1.2))
    for alpha, errors in theory.items():
        problem = Problem(alpha, rho=0.4, delta=0.5, steps=2, batches="labeled", label_noise=0.2)
        runs = simulate(problem, recipe, 600, 10, "dense", probes=0)
        off = np.abs(runs.mean("error") - errors)
        assert (off < 4 * runs.sem("error") + 4 / 600).all(), (alpha, runs.mean("error"))
        np.testing.assert_array_equal(runs.fraction_selected[:, 1:], 1.0)


@pytest.mark.parametrize(
    ("words", "error", "recalls"),
    [
        ({}, (0.247, 0.279), (0.999, 0.111, 0.000)),
        ({"annealing": 0.15, "fix_bias": True}, (0.247, 0.208), (0.946, 0.625, 0.040)),
    ],
)
def test_three_imbalanced_classes(words: dict[str, Any], error: Any, recalls: Any) -> None:
    """Numbers of a prototype of the theory: the cure of the paper saves the second class only."""
    clusters = Clusters.from_gram(1.5 * (np.eye(3) - 1 / 3), 0.5)
    problem = Problem(1.0, 3.0, (0.7, 0.2, 0.1), clusters=clusters, steps=8)
    runs = simulate(problem, Recipe(0.2, 0.02, **words), 600, 6, probes=0)
    assert runs.method == "revealed"
    off = np.abs(runs.mean("error") - np.interp(runs.t, (0, 8), error))[[0, -1]]
    assert (off < 4 * runs.sem("error")[[0, -1]] + 0.0005).all()
    off = np.abs(1 - runs.mean("class_errors")[-1] - recalls)
    assert (off < 4 * runs.sem("class_errors")[-1] + 0.0005).all()
    assert (runs.sem("class_errors")[-1] < 0.03).all()
    np.testing.assert_allclose(runs.confusion.sum(axis=-1), 1.0)
    np.testing.assert_allclose(runs.bias.sum(axis=-1), 0.0, atol=1e-9)
    binomial = np.sqrt(runs.error * (1 - runs.error) / (runs.alpha * 600))
    assert (np.abs(runs.test_error - runs.error) < 5 * binomial).all()


def test_dense_and_revealed_matrices_have_one_law() -> None:
    problem = Problem(
        1.5, 2.0, SHARES, clusters=SPHERES, steps=2, batches="labeled+reused", label_noise=0.1,
        keep_labeled=0.5,
    )  # fmt: skip
    recipe = Recipe(0.3, 0.2, threshold=0.2)
    one = simulate(problem, recipe, 40, 32, "dense")
    other = simulate(problem, recipe, 40, range(100, 132), "revealed")
    for name in ("q", "m", "bias", "v", "chi", "error", "label_shares", "fraction_selected"):
        error = np.hypot(one.sem(name), other.sem(name))
        off = np.abs(one.mean(name) - other.mean(name))
        assert (off[1:] < 4 * error[1:] + 1e-12).all(), name


def test_the_susceptibility_is_the_trace_of_the_inverse_hessian() -> None:
    problem = Problem(2.0, 2.0, SHARES, clusters=SPHERES, steps=0)
    plan = plan_run(protocol_of(problem, Recipe(lambda_l=0.1)), 30)
    engine = MeasuredEngine(plan, GaussianSource(plan, 0), 1e-6)
    list(run_fits(plan.protocol, engine))
    X = GaussianSource(plan, 0).draw(0)[0].design.times(np.eye(30))
    hessian = np.einsum("mi,mab,mj->aibj", X, engine.models[0].curvature, X).reshape(60, 60)
    exact = np.trace(np.linalg.inv(hessian + 0.1 * 30 * np.eye(60))) / 2
    found = engine.probe(0)(400, np.random.default_rng(0))
    assert found == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_confusion_matrices_are_orthant_probabilities(classes: int) -> None:
    random = np.random.default_rng(classes)
    root = random.normal(size=(20, classes))
    covariance, means = root.T @ root / 20, random.normal(size=(classes, classes))
    found = confusion_matrix(means, covariance)
    for k, j in np.ndindex(classes, classes):
        minus = np.eye(classes)[j] - np.delete(np.eye(classes), j, axis=0)
        spread = minus @ covariance @ minus.T
        zero = np.zeros(classes - 1)
        exact = multivariate_normal(-minus @ means[k], spread, abseps=1e-6).cdf(zero)
        assert found[k, j] == pytest.approx(exact, abs=2e-5)


def test_confusion_matrix_of_ten_classes_is_that_of_samples() -> None:
    random = np.random.default_rng(0)
    root = random.normal(size=(10, 10)) / 3
    means = 1.5 * np.eye(10) + 0.3 * random.normal(size=(10, 10))
    found = confusion_matrix(means, root.T @ root)
    drawn = random.normal(size=(10, 100_000, 10)) @ root + means[:, None, :]
    counted = np.array([np.bincount(one.argmax(axis=1), minlength=10) for one in drawn]) / 1e5
    assert np.abs(found - counted).max() < 5 * np.sqrt(0.25 / 1e5)


def test_a_class_without_labels_is_lost_and_the_others_go_on() -> None:
    clusters = Clusters.from_gram(1.5 * (np.eye(3) - 1 / 3), 0.5)
    problem = Problem(1.0, 3.0, (0.7, 0.27, 0.03), clusters=clusters, steps=3)
    runs = simulate(problem, Recipe(0.2, 0.1, sharpness=np.inf), 60, 6, probes=0)
    lost = runs.lost_at
    assert (lost[:, 0] == -1).all()
    assert (lost[:, 2] > 0).any()
    assert (runs.collapsed_at == -1).any()
    for seed, t in enumerate(lost[:, 2]):
        if t > 0 and runs.collapsed_at[seed] < 0:
            assert np.isneginf(runs.bias[seed, t:, 2]).all()
            np.testing.assert_array_equal(runs.confusion[seed, t:, :, 2], 0.0)
            np.testing.assert_array_equal(runs.m[seed, t:, 2], 0.0)
            assert np.isfinite(runs.q[seed]).all()
            assert np.isfinite(runs.train_loss[seed]).all()


def test_all_labels_of_one_class_are_a_collapse() -> None:
    clusters = Clusters.from_gram(0.3 * np.eye(3), 2.0)
    problem = Problem(1.0, 2.0, (0.8, 0.1, 0.1), clusters=clusters, steps=8)
    runs = simulate(problem, Recipe(2.0, 2.0, sharpness=np.inf), 40, 6, probes=0)
    assert (runs.collapsed_at > 0).all()
    np.testing.assert_array_equal(runs.predicts, 0)
    np.testing.assert_allclose(runs.error[:, -1], 0.2)
    np.testing.assert_array_equal(runs.lost_at[:, 0], -1)
    assert (runs.lost_at[:, 1:] > 0).all()


def test_real_samples_of_three_digits() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X[:, X.std(axis=0) > 1]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    clusters = Clusters.from_data(X, y)
    n = clusters.features
    problem = Problem(30 / n, 60 / n, (0.4, 0.3, 0.3), clusters=clusters, steps=2)
    recipe = Recipe(lambda_l=0.3, lambda_u=0.1)
    runs = simulate(problem, recipe, rows=(X, y), seeds=[3], tolerance=1e-8)
    assert runs.method == "rows"
    plan = plan_run(protocol_of(problem, recipe), n)
    source = TableSource(plan, sample_table(plan, (X, y)), 3)
    first = source.draw(0)[0]
    assert np.bincount(first.classes).tolist() == [12, 9, 9]
    model = LogisticRegression(C=1 / (0.3 * n), tol=1e-10, max_iter=5000)
    model.fit(first.design.matrix, first.classes)
    np.testing.assert_allclose(runs.bias[0, 0], model.intercept_, atol=1e-4)
    used = np.concatenate(source.chosen)
    rest = np.setdiff1d(np.arange(len(y)), used)
    assert len(used) == len(set(used.tolist())) == 150
    guess = model.predict(clusters.project(X)[rest])
    expected = count_confusion(y[rest], guess, normalize="true")
    np.testing.assert_allclose(runs.confusion[0, 0], expected, atol=1e-12)
    assert runs.error[0, 0] == pytest.approx(1 - np.diag(expected) @ (0.4, 0.3, 0.3))


@pytest.mark.parametrize("method", ["matrix-free", "dense"])
def test_wrong_labels_of_two_classes_follow_the_theory(method: str) -> None:
    noise = ((0.9, 0.1), (0.3, 0.7))
    problem = Problem(1.0, 2.0, 0.4, 0.5, steps=2, label_noise=noise)
    recipe = Recipe(0.3, 0.1)
    features = 4000 if method == "matrix-free" else 500
    runs = simulate(problem, recipe, features, 16, method, probes=0)
    assert runs.method == method
    compared = runs.compare(solve(problem, recipe))
    assert np.abs(compared.scores).max() < 4, compared.worst
    other = solve(problem.replace(label_noise=0.0), recipe)
    assert abs(runs.mean("q")[0] / other.q[0] - 1) > 0.2


def test_given_labels_have_their_probabilities() -> None:
    noise = np.array([[0.8, 0.15, 0.05], [0.1, 0.6, 0.3], [0.0, 0.0, 1.0]])
    truth = np.repeat([0, 1, 2], 100_000)
    given = given_labels(truth, noise, np.random.default_rng(0))
    found = count_confusion(truth, given, normalize="true")
    np.testing.assert_allclose(found, noise, atol=0.006)
    np.testing.assert_array_equal(given_labels(truth, None, np.random.default_rng(0)), truth)


def test_files_and_tables(tmp_path: Any) -> None:
    problem = Problem(1.5, 2.0, SHARES, clusters=SPHERES, steps=1)
    runs = simulate(problem, Recipe(), 40, 3)
    again = type(runs).load(runs.save(tmp_path / "runs.nc"))
    for name in (*runs.names, "confusion", "label_shares"):
        np.testing.assert_array_equal(again.values(name), runs.values(name), err_msg=name)
    frame = runs.to_frame()
    assert frame.loc[(1, 1), "m[0,2]"] == runs.m[1, 1, 0, 2]
    assert runs.to_xarray()["bias"].dims == ("seed", "t", "class")


def test_what_is_rejected(tmp_path: Any) -> None:
    group = SampleGroup("a", 2.0, SHARES, SPHERES)
    protocol = Protocol((group,), (Fit(0.3, "logistic", (Use("a"),)),))
    with pytest.raises(InvalidInput, match="a protocol has its own ridges"):
        simulate(protocol, Recipe())
    runs = simulate(protocol, features=30, seeds=2)
    assert runs.problem is None
    with pytest.raises(InvalidInput, match="runs of a protocol cannot be saved"):
        runs.save(tmp_path / "runs.nc")
    with pytest.raises(InvalidInput, match="features must be 3 or more"):
        simulate(protocol, features=2)
    X, y = load_digits(n_class=2, return_X_y=True)
    means = np.eye(3, X.shape[1])
    own = Problem(1.0, 1.0, SHARES, clusters=Clusters(means=means, covariance=np.ones(64)), steps=0)
    with pytest.raises(InvalidInput, match="y must have 3 classes, as the clusters; it has 2"):
        simulate(own, Recipe(), rows=(X, y))


COMPARED = {
    "wrong labels, relabelled beside a fresh batch": (
        {"batches": "labeled+fresh", "label_noise": 0.15, "keep_labeled": 0.5},
        {"annealing": 0.3, "fix_bias": True},
    ),
    "squared loss, batch reused": ({"batches": "reused", "loss": "squared"}, {"sharpness": 1.3}),
}


@pytest.mark.parametrize("name", COMPARED)
def test_three_classes_follow_their_theory(name: str) -> None:
    fields, words = COMPARED[name]
    problem = Problem(1.5, 1.2, SHARES, clusters=SPHERES, steps=2, **fields)
    recipe = Recipe(0.4, 0.2, **words)
    runs = simulate(problem, recipe, 500, 12)
    compared = runs.compare(solve(problem, recipe, tolerance=1e-3))
    assert np.abs(compared.scores).max() < 4, compared.worst
    assert {"q", "m[0,1]", "bias[2]", "class_errors[1]", "overlap", "chi"} <= set(compared.judged)
    other = problem.replace(rho=(0.2, 0.3, 0.5))
    with pytest.raises(InvalidInput, match="must be of the same problem and recipe"):
        runs.compare(solve(other, recipe, tolerance=1e-3))


def test_a_protocol_of_two_classes_follows_its_theory() -> None:
    """Its theory is in two scores, minus and plus half the logit of the runs."""
    group = SampleGroup("a", 2.003, 0.4, 0.5, label_noise=0.2)
    fits = (
        Fit(1.0, "logistic", (Use("a"),)),
        Fit(0.5, "logistic", (Use("a", 1.0, PseudoLabels(0, 0.8)),)),
        Fit(1.0, "logistic", (Use("a", 1.0, PseudoLabels(0, 2.0, agree=True), 0.3),)),
    )
    protocol = Protocol((group,), fits)
    runs = simulate(protocol, features=500, seeds=16, method="dense")
    compared = runs.compare(solve(protocol, tolerance=1e-3))
    assert np.abs(compared.scores).max() < 4, compared.worst
    assert compared.theory.protocol.groups[0].alpha == 1002 / 500
