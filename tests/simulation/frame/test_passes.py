"""Passes over the rows against the same sums in numpy, with more rows than one tile has."""

import numpy as np
import pytest
from scipy.special import expit

from selftrain.simulation.frame.normals import TILE, fill_normals
from selftrain.simulation.frame.passes import (
    LOGISTIC,
    SQUARED,
    WEIGHTED,
    BatchRows,
    Columns,
    Filled,
    FreshColumn,
    NewDirection,
    PassSums,
    advance,
    curvatures,
    residuals,
    reveal,
    soft_targets,
    split,
    total_loss,
)

ROWS, FRAME, REVEALED, ROOM = TILE + 300, 5, 3, 8
KEY = np.uint64(11)


def drawn() -> tuple[Columns, BatchRows]:
    """Columns in single precision, of which those of u are orthonormal, and rows."""
    random = np.random.default_rng(0)
    x = random.standard_normal((ROOM, ROWS)).astype(np.float32)
    u = np.full((ROOM, ROWS), np.nan, np.float32)
    u[:REVEALED] = np.linalg.qr(random.standard_normal((ROWS, REVEALED)))[0].T
    logits, base, change = random.standard_normal((3, ROWS))
    return Columns(x, u), BatchRows(logits, random.uniform(size=ROWS), base, change)


def test_the_sigmoid_is_exact_to_rounding():
    logits = np.concatenate([np.linspace(-40, 40, 5001), [-690.0, -1e-9, 0.0, 1e-9, 690.0]])
    found = logits / 1.5
    soft_targets(LOGISTIC, 1.5, found)
    np.testing.assert_allclose(found, expit(1.5 * (logits / 1.5)), rtol=1.5e-15)


def test_soft_targets_of_the_squared_loss_are_the_scaled_logits():
    found = np.array([-2.0, 0.5])
    soft_targets(SQUARED, 3.0, found)
    np.testing.assert_array_equal(found, [-6.0, 1.5])


def test_slopes_and_curvatures_of_the_losses():
    _, (logits, targets, _, _) = drawn()
    sigma = expit(logits)
    for loss, slope, curvature in (
        (LOGISTIC, sigma - targets, sigma * (1 - sigma)),
        (SQUARED, logits - targets, np.ones(ROWS)),
        (WEIGHTED, logits * targets, targets),
    ):
        r, d = np.empty(ROWS), np.empty(ROWS)
        residuals(loss, logits, targets, r)
        np.testing.assert_allclose(r, slope, atol=1e-15)
        curvatures(loss, r, targets, d)
        np.testing.assert_allclose(d, curvature, atol=1e-15)


def test_the_sum_of_the_loss():
    _, (logits, targets, _, _) = drawn()
    logits[:2] = 800.0, -800.0  # exp would overflow
    logistic = np.sum(np.logaddexp(0.0, logits) - targets * logits)
    assert total_loss(LOGISTIC, logits, targets) == pytest.approx(logistic, rel=1e-13)
    squared = np.sum((logits - targets) ** 2) / 2
    assert total_loss(SQUARED, logits, targets) == pytest.approx(squared, rel=1e-13)


@pytest.mark.parametrize("draw", [True, False])
def test_a_pass_moves_and_adds_up(draw):
    columns, rows = drawn()
    kept, logits = columns.x.copy(), rows.logits.copy()
    step = np.array([0.3, -0.1, 0.2, 0.4, -0.2, np.nan, np.nan, np.nan])
    sums = PassSums(np.zeros(ROOM), np.zeros(ROOM), np.zeros(ROOM))
    noise = FreshColumn(KEY, np.bool_(draw))
    filled = Filled(FRAME, REVEALED)
    pull, square, cross = advance(LOGISTIC, columns, filled, rows, (step, 0.7), noise, sums)
    logits += 0.7 + step[:FRAME] @ kept[:FRAME]
    np.testing.assert_allclose(rows.logits, logits, atol=1e-13)
    r = expit(logits) - rows.targets
    np.testing.assert_allclose(rows.change, r - rows.base, atol=1e-14)
    g = kept[FRAME].copy()
    if draw:
        fill_normals(KEY, FRAME, 0, g)
    np.testing.assert_array_equal(columns.x[FRAME], g)
    u = columns.u[:REVEALED].astype(float)
    np.testing.assert_allclose(sums.slopes[:FRAME], kept[:FRAME] @ r, rtol=1e-12)
    np.testing.assert_allclose(sums.along[:REVEALED], u @ rows.change, atol=1e-12)
    # Both columns are stored in single precision: so are the products of their entries.
    np.testing.assert_allclose(sums.fresh[:REVEALED], u @ g if draw else 0.0, atol=2e-7)
    assert not sums.slopes[FRAME:].any()
    change = rows.change
    np.testing.assert_allclose(
        (pull, square, cross), (r.sum(), change @ change, change @ g), rtol=1e-12
    )


@pytest.mark.parametrize("rest", [1.0, 1e-6])
def test_the_part_of_a_change_outside_the_revealed_span(rest):
    """A small rest is what a second pass is for: the first loses half of its digits."""
    columns, rows = drawn()
    u = columns.u[:REVEALED].astype(float)
    change = np.array([3.0, -1.0, 2.0]) @ u + rest * rows.change / np.linalg.norm(rows.change)
    expected, *_ = np.linalg.lstsq(u.T, change, rcond=None)
    outside = np.linalg.norm(change - expected @ u)
    inside, length = split(columns.u, REVEALED, change, u @ change, change @ change)
    np.testing.assert_allclose(inside, expected, atol=3e-7 * max(rest, 1e-3))
    assert length == pytest.approx(outside, rel=1e-6)


def test_a_revealed_direction():
    columns, rows = drawn()
    kept, base = columns.x.copy(), rows.base.copy()
    u, g, change = columns.u[:REVEALED].astype(float), kept[FRAME].astype(float), rows.change
    inside, fresh, scale, weight = u @ change, u @ g, 0.7, 5.0
    length = float(np.linalg.norm(change - inside @ u))
    new = NewDirection(inside, fresh, length, weight, scale)
    row = np.zeros(FRAME + 1)
    filled = Filled(FRAME, REVEALED)
    with_bias, slope = reveal(LOGISTIC, columns, filled, rows, new, row)
    direction = (change - inside @ u) / length
    np.testing.assert_allclose(columns.u[REVEALED], direction, atol=1e-8)
    column = columns.x[FRAME].astype(float)
    np.testing.assert_allclose(column, scale * (g - fresh @ u + weight * direction), atol=1e-6)
    np.testing.assert_array_equal(columns.x[:FRAME], kept[:FRAME])
    r = base + change
    np.testing.assert_allclose(rows.base, r, rtol=1e-15)
    curvature = (r + rows.targets) * (1 - r - rows.targets)
    np.testing.assert_allclose(row, columns.x[: FRAME + 1] @ (curvature * column), rtol=1e-12)
    assert with_bias == pytest.approx(curvature @ column, rel=1e-12)
    assert slope == pytest.approx(column @ r, rel=1e-12)


def test_a_direction_without_a_residual():
    """Only the frame grows, off the revealed span."""
    columns, rows = drawn()
    u, g, base = columns.u[:REVEALED].astype(float), columns.x[FRAME].copy(), rows.base.copy()
    new = NewDirection(np.zeros(0), u @ g, 0.0, 0.0, 0.7)
    _, slope = reveal(WEIGHTED, columns, Filled(FRAME, REVEALED), rows, new, np.zeros(0))
    np.testing.assert_allclose(columns.x[FRAME], 0.7 * (g - (u @ g) @ u), atol=1e-6)
    assert np.isnan(columns.u[REVEALED]).all()
    np.testing.assert_array_equal(rows.base, base)
    assert slope == pytest.approx(columns.x[FRAME].astype(float) @ base, rel=1e-12)
