"""Probes of the inverse Hessian against the dense matrix whose columns the frame revealed."""

import numpy as np
import pytest

from selftrain.simulation.frame.frame_fit import FULL, SETTLED, Law
from selftrain.simulation.frame.passes import BatchRows, Columns, Filled
from selftrain.simulation.frame.probe import probe_frame

ROWS, SCALE, REVEALED, KEY = 1300, 0.75, 2, np.uint64(5)


def probed(features: int, frame: int, ridge: float, room: int, outside: float):
    """How a probe ended, its form, and the same form of the matrix that is there afterwards.

    Before it two residuals had been revealed.
    """
    random = np.random.default_rng(features)
    x = np.full((room, ROWS), np.nan, np.float32)
    x[:frame] = random.standard_normal((frame, ROWS))
    u = np.full_like(x, np.nan)
    u[:REVEALED] = np.linalg.qr(random.standard_normal((ROWS, REVEALED)))[0].T
    curvature = random.uniform(0.0, 0.25, ROWS)
    rows = BatchRows(np.empty(ROWS), curvature, np.empty(ROWS), np.empty(ROWS))
    free = features - np.arange(room + 1)
    lengths = np.sqrt(np.where(free > 0, random.chisquare(np.maximum(free, 1)), 0.0))
    z = np.append(random.standard_normal(frame), outside)
    filled, law = Filled(frame, REVEALED), Law(ridge, SCALE, lengths, KEY)
    ended, form = probe_frame(Columns(x, u), filled, rows, z, law, 1e-10)
    if ended == SETTLED:
        assert_law(x, u, lengths, frame + (lengths[frame] > 0))
    matrix = x[: min(features, int(np.isfinite(x[:, 0]).sum()))].astype(float)
    hessian = (matrix * curvature) @ matrix.T + ridge * np.eye(len(matrix))
    padded = np.append(z, np.zeros(len(matrix)))[: len(matrix)]
    return ended, form, padded @ np.linalg.solve(hessian, padded), len(matrix)


def assert_law(x: np.ndarray, u: np.ndarray, lengths: np.ndarray, first: int) -> None:
    """The columns from `first` on were revealed by residuals: each has the length that was drawn
    for it along its own one and nothing along earlier ones.
    """
    count = int(np.isfinite(u[:, 0]).sum())
    found = x[first : first + count - REVEALED].astype(float) @ u[:count].astype(float).T
    for i, row in enumerate(found):
        np.testing.assert_allclose(row[: REVEALED + i], 0.0, atol=1e-5)
        assert row[REVEALED + i] == pytest.approx(SCALE * lengths[first + i], rel=1e-5)


@pytest.mark.parametrize(
    ("features", "frame", "outside"),
    [(6, 3, 2.0), (6, 6, 0.0), (400, 3, 15.0), (400, 3, 0.0)],
    ids=["small, outside", "all known", "large, outside", "large, inside"],
)
def test_the_form_is_that_of_the_revealed_matrix(features, frame, outside):
    ended, form, exact, revealed = probed(features, frame, 40.0, 64, outside)
    assert ended == SETTLED
    assert revealed == features if features == 6 else 10 < revealed < 64
    assert form == pytest.approx(exact, rel=1e-6)


def test_a_probe_that_needs_more_columns_says_so():
    assert probed(400, 3, 40.0, 4, 15.0)[0] == FULL
    assert probed(400, 3, 40.0, 8, 15.0)[0] == FULL
