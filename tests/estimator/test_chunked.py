"""Rows beyond memory: a Dask array cut by rows gives what the same rows give in memory."""

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from selftrain import SelfTrainingLinearClassifier
from selftrain.errors import InvalidInput


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 900)
    table = random.exponential(size=(900, 12)) + 1.2 * np.outer(classes, np.arange(12) < 4)
    return table, np.where(np.arange(900) < 30, classes, -1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_local_cluster_gives_the_same_model(rows):
    table, target = rows
    here = SelfTrainingLinearClassifier(random_state=0).fit(table, target)
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:
        assert client.status == "running"
        chunked = da.from_array(table, chunks=(250, 5))
        there = SelfTrainingLinearClassifier(random_state=0).fit(chunked, target)
        found = there.predict_proba(chunked)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.asarray(found), here.predict_proba(table), atol=1e-8)
    assert (there.transduction_ == here.transduction_).all()


def test_what_needs_all_rows_at_once_is_refused(rows):
    chunked = da.from_array(rows[0], chunks=(250, 12))
    with pytest.raises(InvalidInput, match="neighbours"):
        SelfTrainingLinearClassifier(neighbours=True).fit(chunked, rows[1])
    broken = da.where(chunked > 5, np.nan, chunked)
    with pytest.raises(InvalidInput, match="NaN, infinity"):
        SelfTrainingLinearClassifier().fit(broken, rows[1])
