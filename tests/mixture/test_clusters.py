"""The shape of two clusters: what it says about itself, where it comes from, and what it
refuses.
"""

from __future__ import annotations

import math
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import ndtr
from sklearn.covariance import LedoitWolf, ShrunkCovariance, ledoit_wolf, oas
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from selftrain import Clusters, Problem
from selftrain.errors import InvalidInput


@pytest.mark.parametrize(
    ("mean", "covariance", "sentence"),
    [
        ([0.0, 0.0], 1.0, "cannot be told apart"),
        ([1.0, math.nan], 1.0, "must be finite numbers"),
        ([], 1.0, "one entry per feature"),
        ("x", 1.0, "must be numbers"),
        ([1.0, 0.0], np.array([[1.0, 0.5], [0.2, 1.0]]), "must be a symmetric matrix"),
        (
            [1.0, 0.0],
            np.array([[1.0, 2.0], [2.0, 1.0]]),
            "must have no negative variances; its smallest one is -1",
        ),
        ([1.0, 0.0], [1.0, -0.1], "must have no negative variances"),
        ([1.0, 0.0], 0.0, "must have a variance greater than zero"),
        ([1.0, 0.0], np.eye(3), r"not of shape \(3, 3\)"),
        ([1.0, 0.0], (1.0, 2.0, 3.0), "must have two covariances"),
        ([1.0, 0.0], (1.0, np.array([1.0, math.inf])), "positive covariance must be finite"),
        ([1.0, 0.0], 1e200, "a largest variance from 1e-100 to 1e100"),
        ([1e-200, 0.0], 1.0, "the largest entry must be from 1e-100 to 1e100"),
    ],
)
def test_refusals(mean: Any, covariance: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Clusters(mean, covariance)


def test_names_are_as_many_as_features() -> None:
    for names in (("a",), "ab"):
        with pytest.raises(InvalidInput, match="must be 2 names"):
            Clusters([1.0, 0.0], 1.0, names=names)  # type: ignore[arg-type]


def rows(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    y = (draw.random(n) < 0.3).astype(int)
    return np.where(y, 1.0, -1.0)[:, None] * [0.7, 0.2, 0.0] + draw.normal(size=(n, 3)) + 5.0, y


def test_from_rows_it_is_what_scikit_learn_says() -> None:
    X, y = rows()
    clusters = Clusters.from_data(X, y)
    means = [X[y == side].mean(axis=0) for side in (0, 1)]
    np.testing.assert_allclose(clusters.mean, (means[1] - means[0]) / 2)
    np.testing.assert_allclose(clusters.midpoint, (means[1] + means[0]) / 2)
    centred = X - np.array(means)[y]
    expected = LedoitWolf(assume_centered=True).fit(centred).covariance_
    np.testing.assert_allclose(clusters.covariance, expected)
    # the best rule of the plain covariance is linear discriminant analysis
    plain = Clusters.from_data(X, y, shrinkage=0)
    rule = plain.best_rule(float(y.mean()))
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    here = plain.project(X) @ rule.weights + rule.bias > 0
    assert (here == (lda.predict(X) == 1)).mean() > 0.995


def test_tables_and_sparse_rows() -> None:
    X, y = rows()
    frame = Clusters.from_data(pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y))
    assert frame.names == ("a", "b", "c")
    sparse = Clusters.from_data(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.mean, frame.mean, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(sparse.covariance, frame.covariance, rtol=1e-13, atol=1e-13)
    pair = Clusters.from_data(X, np.where(y, "yes", "no"), shrinkage="oas", common=False)
    assert pair.pair


def test_rows_that_do_not_do() -> None:
    X, y = rows()
    for labels, sentence in (
        (0 * y, "must have two classes or more"),
        (np.arange(len(y)), "at least two rows of each class"),
        (y[:5], "one class per row"),
        ((np.arange(len(y)) == 0), "at least two rows of each class"),
        (np.where(y, 1.0, np.nan), "must have a class for every row"),
        (np.where(y, "yes", None), "must have a class for every row"),
        (np.where(y, "yes", np.array(3, dtype=object)), "classes of one type"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            Clusters.from_data(X, labels)
    with pytest.raises(InvalidInput, match="constant, drop them: 1"):
        Clusters.from_data(X * [1, 0, 1], y)
    with pytest.raises(InvalidInput, match="without NaN"):
        Clusters.from_data(np.where(X > 7, np.nan, X), y)
    with pytest.raises(InvalidInput, match="a number from 0 to 1"):
        Clusters.from_data(X, y, shrinkage=2.0)


def test_separation_dimension_and_reduction() -> None:
    clusters = Clusters([3.0, 0.0, 1.0], [9.0, 1.0, 1.0])
    assert clusters.separation == pytest.approx(math.sqrt(2))
    assert clusters.effective_dimension == pytest.approx(121 / 83)
    assert clusters.sphere == pytest.approx(11 / 3 / 10)
    assert Clusters([1.0, 1.0], [1.0, 0.0]).separation == math.inf
    small = clusters.reduce(2)
    assert small.features == 2
    assert small.kept == pytest.approx(1.0)  # the direction that is left out has no mean
    assert 0.5 < clusters.reduce(1).kept < 0.999
    assert clusters.reduce(3).separation == pytest.approx(clusters.separation)
    point = np.array([[2.0, 1.0, -1.0]])
    np.testing.assert_allclose(small.project(point), point @ small.directions)
    for k in (0, 4, 1.5, True):
        with pytest.raises(InvalidInput, match="from 1 to 3"):
            clusters.reduce(k)


@pytest.mark.parametrize("rho", [0.5, 0.2, 0.04])
def test_no_linear_rule_beats_the_best(rho: float) -> None:
    draw = np.random.default_rng(7)
    mean = draw.normal(size=3) / 2
    first, second = (a @ a.T + 0.1 * np.eye(3) for a in draw.normal(size=(2, 3, 3)))

    def error(z: Any) -> float:
        m, down, up = mean @ z[:3], z[:3] @ first @ z[:3], z[:3] @ second @ z[:3]
        return float(rho * ndtr(-(m + z[3]) / up**0.5) + (1 - rho) * ndtr(-(m - z[3]) / down**0.5))

    options = {"maxiter": 5000, "maxfev": 5000, "xatol": 1e-9, "fatol": 1e-13}
    found = min(
        minimize(error, draw.normal(size=4), method="Nelder-Mead", options=options).fun
        for _ in range(6)
    )
    rule = Clusters(mean, (first, second)).best_rule(rho)
    assert rule.error == pytest.approx(found, abs=1e-9)
    assert error(np.append(rule.weights, rule.bias)) == pytest.approx(rule.error)


@pytest.mark.parametrize("covariance", [0.5, [1.0, 2.0], np.eye(2) + 0.1, ([1.0, 2.0], np.eye(2))])
def test_a_problem_keeps_its_clusters_in_files(covariance: Any) -> None:
    clusters = Clusters([1.0, 0.5], covariance, midpoint=[3.0, 4.0], names=("a", "b"))
    problem = Problem(1.0, 2.0, 0.4, steps=2, clusters=clusters, test=(0.3, clusters.reduce(2)))
    assert Problem.from_json(problem.to_json()) == problem
    assert Problem.from_toml(problem.to_toml()) == problem
    assert hash(clusters) == hash(Clusters.from_dict(clusters.to_dict()))


def test_a_problem_takes_clusters_or_delta() -> None:
    clusters = Clusters([1.0, 0.5], 1.0)
    with pytest.raises(InvalidInput, match="either delta or clusters"):
        Problem(1.0, 2.0, 0.4, 0.5, steps=2, clusters=clusters)
    with pytest.raises(InvalidInput, match="as many features"):
        Problem(1.0, 2.0, 0.4, steps=1, clusters=clusters, clusters_u=Clusters([1.0], 1.0))
    with pytest.raises(InvalidInput, match="one entry per step: 2, not 1"):
        Problem(1.0, 2.0, 0.4, steps=2, clusters=clusters, clusters_u=[clusters])


def test_directions_come_before_shrinkage() -> None:
    """Noise along few strong directions of many: shrunk in all columns at once it would be too
    small.
    """
    draw = np.random.default_rng(3)
    y = np.arange(120) % 2
    strong = draw.normal(size=(120, 5)) * 3.0 + np.where(y, 1.0, -1.0)[:, None]
    X = strong @ np.linalg.qr(draw.normal(size=(60, 5)))[0].T + 0.3 * draw.normal(size=(120, 60))
    clusters = Clusters.from_data(X, y).reduce(5)
    for shape in (clusters, Clusters.from_data(X, y).reduce(9).reduce(5)):
        rows = shape.project(X)
        centred = rows - np.array([rows[y == side].mean(axis=0) for side in (0, 1)])[y]
        assert np.trace(shape.covariance) == pytest.approx((centred**2).sum() / len(y))
        np.testing.assert_allclose(shape.mean, (rows[y == 1].mean(0) - rows[y == 0].mean(0)) / 2)
        assert 0 < shape.kept <= 1
    assert Clusters.from_data(X, y, directions=5) == clusters


def test_a_shrunk_shape_without_its_rows_is_not_reduced() -> None:
    draw = np.random.default_rng(3)
    X, y = draw.normal(size=(40, 4)) + np.arange(40)[:, None] % 2, np.arange(40) % 2
    shape = Clusters.from_data(X, y)
    for copy in (Clusters.from_dict(shape.to_dict()), pickle.loads(pickle.dumps(shape))):
        assert copy == shape
        with pytest.raises(InvalidInput, match="its rows are not available"):
            copy.reduce(2)
    plain = Clusters.from_data(X, y, shrinkage=0)
    again = Clusters.from_dict(plain.to_dict()).reduce(2)
    np.testing.assert_allclose(again.covariance, plain.reduce(2).covariance)


@pytest.mark.parametrize("noise", [[1.0, 0.25, 4.0], [1.0, 0.0, 4.0]])
def test_the_picture_shows_every_direction(noise: list[float]) -> None:
    clusters = Clusters([0.0, 1e-3, 0.0], noise)
    left, right = clusters.plot().axes
    for line in left.get_lines():
        heights = np.asarray(line.get_ydata())
        assert np.all((left.get_ylim()[0] < heights) & (heights < left.get_ylim()[1]))
    separable = noise[1] > 0
    assert len(right.get_lines()) == 1 + separable


def test_batches_along_other_directions_are_refused() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    here = Clusters.from_data(X, y, directions=2)
    there = Clusters.from_data(X * [1.0, 5.0, 0.2, 3.0], y, directions=2)
    with pytest.raises(InvalidInput, match="other directions"):
        Problem(1.0, 2.0, 0.4, steps=1, clusters=here, clusters_u=there)


@pytest.mark.parametrize("rows", [200, 25])
@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("shrinkage", ["ledoit-wolf", "oas", 0.3])
def test_directions_are_those_of_the_covariance(rows: int, common: bool, shrinkage: Any) -> None:
    """More features than rows or fewer: principal directions and the share of the separation that
    they keep, from the full covariance of scikit-learn.
    """
    random = np.random.default_rng(rows)
    y = np.arange(rows) % 3 == 0
    X = random.normal(size=(rows, 40)) * np.geomspace(3, 0.3, 40) + 0.5 * y[:, None]
    sides = [X[~y] - X[~y].mean(axis=0), X[y] - X[y].mean(axis=0)]
    mean = 0.5 * (X[y].mean(axis=0) - X[~y].mean(axis=0))

    def shrunk(part: Any) -> Any:
        if shrinkage == 0.3:
            return ShrunkCovariance(shrinkage=0.3, assume_centered=True).fit(part).covariance_
        estimator = {"ledoit-wolf": ledoit_wolf, "oas": oas}[shrinkage]
        return estimator(part, assume_centered=True)[0]

    average = shrunk(np.concatenate(sides)) if common else 0.5 * sum(shrunk(side) for side in sides)
    leading = np.linalg.eigh(average + np.outer(mean, mean))[1][:, ::-1][:, :6]
    inside = leading.T @ average @ leading
    along = mean @ leading
    kept = along @ np.linalg.solve(inside, along) / (mean @ np.linalg.solve(average, mean))
    found = Clusters.from_data(X, y, shrinkage, common, directions=6)
    assert found.directions is not None
    np.testing.assert_allclose(np.abs(np.diag(found.directions.T @ leading)), 1, rtol=1e-9)
    assert found.kept == pytest.approx(kept, rel=1e-9)
    projected = np.concatenate([side @ found.directions for side in sides])
    if common:
        np.testing.assert_allclose(found.covariance, shrunk(projected), rtol=1e-9, atol=1e-12)


def test_directions_of_few_rows_need_no_covariance_of_all_features() -> None:
    """100 rows of 6000 features take 5 MB; their covariance would take 288."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 6000)), np.arange(100) % 2
    tracemalloc.start()
    clusters = Clusters.from_data(X + y[:, None], y, directions=60)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert clusters.features == 60
    assert peak < 100e6


def test_more_directions_than_rows() -> None:
    """Beyond the rank any orthonormal directions serve: the rows have no variance there."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(10, 30)), np.arange(10) % 2
    directions = Clusters.from_data(X, y, directions=20).directions
    assert directions is not None
    np.testing.assert_allclose(directions.T @ directions, np.eye(20), atol=1e-12)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(np.linalg.norm(centred @ directions), np.linalg.norm(centred))


def test_an_offset_of_the_columns_moves_the_midpoint_alone() -> None:
    random = np.random.default_rng(0)
    y = np.arange(20000) % 2
    X = random.normal(size=(20000, 3)) + 0.5 * y[:, None]
    steps = 2.0**-19  # what an entry near 2**33 is rounded to
    X = np.round(X / steps) * steps
    here, there = (Clusters.from_data(rows, y, 0) for rows in (X, X + 2.0**33))
    np.testing.assert_allclose(there.mean, here.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(there.covariance, here.covariance, rtol=0, atol=1e-12)
    assert here.midpoint is not None
    np.testing.assert_allclose(there.midpoint, here.midpoint + 2.0**33, rtol=1e-15)
