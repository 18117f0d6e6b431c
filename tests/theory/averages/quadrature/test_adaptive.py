"""Adaptive panels against closed forms, for integrands with layers of very different widths."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from selftrain.theory.averages.quadrature.adaptive import graded, integrate

WIDTHS = np.array([1.0, 1e-2, 1e-5, 1e-9])
PLACES = np.array([0.3, -1.7, 0.123456789, 2.5])


def test_narrow_peaks_at_graded_edges() -> None:
    """A Gaussian of any width has its mass found, and nothing but its mass."""
    edges = graded(PLACES, WIDTHS, WIDTHS, np.array([20.0]))
    rows = np.repeat(np.arange(4), edges.shape[1] + 2)
    ends = np.tile([-10.0, 10.0], (4, 1))
    every = np.concatenate([ends, np.clip(edges, -10, 10)], axis=1).ravel()

    def peak(row: np.ndarray, x: np.ndarray) -> np.ndarray:
        z = (x - PLACES[row]) / WIDTHS[row]
        return np.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * WIDTHS[row])

    rounding = 1e-13 + 1e-15 / WIDTHS
    np.testing.assert_allclose(integrate(peak, rows, every, rounding), 1.0, atol=2e-7)
    np.testing.assert_allclose(integrate(peak, rows, every, rounding)[:3], 1.0, atol=1e-11)


def test_steps_are_found_without_help() -> None:
    """A smoothed step inside one panel: E[Phi((a - g)/w)] = Phi(a/sqrt(1 + w^2))."""
    rows, edges = np.repeat(np.arange(4), 2), np.tile([-10.0, 10.0], 4)

    def step(row: np.ndarray, g: np.ndarray) -> np.ndarray:
        density = np.exp(-0.5 * g**2) / np.sqrt(2 * np.pi)
        return density * ndtr((PLACES[row] - g) / WIDTHS[row])

    expected = ndtr(PLACES / np.sqrt(1 + WIDTHS**2))
    found = integrate(step, rows, edges, np.full(4, 1e-13))
    np.testing.assert_allclose(found, expected, atol=1e-11)
