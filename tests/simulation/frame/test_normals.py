"""Counter-based normals: the published cipher, any cut, the normal law."""

import numpy as np
from scipy import stats

from selftrain.simulation.frame.normals import TILE, fill_normals, fill_signs, threefry

KEY = np.uint64(12345)


def test_threefry_known_answers() -> None:
    """Vectors of the Random123 distribution for Threefry-2x32 with 20 rounds."""
    ones = 0xFFFFFFFF
    cases = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ones, ones), (ones, ones), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for (k0, k1), (a, b), expected in cases:
        key = np.uint64(k0 | k1 << 32)
        assert tuple(int(word) for word in threefry(key, np.uint32(a), np.uint32(b))) == expected


def test_any_cut_gives_the_same_numbers() -> None:
    whole = np.empty(5 * TILE + 17, np.float32)
    fill_normals(KEY, 3, 0, whole)
    for first, count in ((0, 10), (TILE - 1, 2), (700, 3000), (5 * TILE, 17)):
        part = np.empty(count, np.float32)
        fill_normals(KEY, 3, first, part)
        np.testing.assert_array_equal(part, whole[first : first + count])


def test_streams_and_keys_are_independent_and_normal() -> None:
    columns = np.empty((64, 40 * TILE), np.float32)
    for j in range(64):
        fill_normals(KEY if j < 32 else np.uint64(12346), j % 32, 0, columns[j])
    numbers = columns.ravel().astype(float)
    error = numbers.size**-0.5
    assert abs(numbers.mean()) < 4 * error
    assert abs(numbers.var() - 1) < 4 * np.sqrt(2) * error
    assert abs((numbers**4).mean() - 3) < 4 * np.sqrt(96) * error
    assert stats.kstest(numbers, "norm").pvalue > 1e-4
    correlation = np.corrcoef(columns) - np.eye(64)
    assert np.abs(correlation).max() < 5.5 / np.sqrt(columns.shape[1])
    squares = np.corrcoef(columns.astype(float) ** 2) - np.eye(64)
    assert np.abs(squares).max() < 5.5 / np.sqrt(columns.shape[1])


def test_signs_have_their_share() -> None:
    signs = np.empty(200_000)
    fill_signs(KEY, 7, 0.3, signs)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs((signs > 0).mean() - 0.3) < 4 * np.sqrt(0.21 / signs.size)
