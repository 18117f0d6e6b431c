"""Bayes limits against published numbers, closed forms, adaptive quadrature and their own
limits.
"""

from __future__ import annotations

import time
import tracemalloc
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from selftrain.errors import InvalidInput
from selftrain.problem import Problem
from selftrain.theory.bayes import bayes_error, bayes_path, label_overlap


def magnitude(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(np.log(low), np.log(high)).map(lambda value: float(np.exp(value)))


problems = st.builds(
    Problem,
    alpha_l=magnitude(0.05, 1e4),
    alpha_u=magnitude(0.05, 1e4),
    rho=st.floats(0.01, 0.99),
    delta=magnitude(0.05, 10.0),
    steps=st.integers(0, 5),
    rho_u=st.one_of(st.none(), st.floats(0.01, 0.99)),
    delta_u=st.one_of(st.none(), magnitude(0.05, 10.0)),
)


def worth_by_quadrature(snr: float, rho: float) -> float:
    """E[s tanh(s y + sqrt(y) g + b)] by an adaptive rule, split where tanh changes sign."""
    shift, total = 0.5 * log(rho / (1 - rho)), 0.0
    for sign, share in ((1, rho), (-1, 1 - rho)):
        split = min(max(-(sign * snr + shift) / sqrt(snr), -11.0), 11.0)
        for a, b in ((-12, split), (split, 12)):
            integrand = lambda g: sign * np.tanh(sign * snr + sqrt(snr) * g + shift) * norm.pdf(g)  # noqa: B023, E731
            total += share * quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
    return total


@pytest.mark.parametrize("rho", [0.01, 0.2, 0.5, 0.77])
@pytest.mark.parametrize("snr", [1e-6, 1e-2, 0.3, 2.0, 20.0, 500.0])
def test_worth_of_an_unlabelled_point(snr: float, rho: float) -> None:
    value, slope = label_overlap(np.array([snr]), rho)
    assert value[0] == pytest.approx(worth_by_quadrature(snr, rho), abs=1e-12)
    nearby, _ = label_overlap(snr * np.array([1 - 1e-3, 1 + 1e-3]), rho)
    rounding = 1e-15 / (1e-3 * snr)
    difference = (nearby[1] - nearby[0]) / (2e-3 * snr)
    assert slope[0] == pytest.approx(difference, rel=1e-4, abs=rounding)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.03, 0.1, 0.3, 0.5])
def test_worth_over_snr_decreases_so_that_the_root_is_unique(rho: float) -> None:
    snr = np.logspace(-6, 3, 200)
    value, slope = label_overlap(snr, rho)
    assert (snr * slope <= value).all()


@pytest.mark.parametrize(("rho", "error"), [(0.5, 0.0937829670464), (0.2, 0.0687768961278)])
def test_values_of_an_independent_program(rho: float, error: float) -> None:
    limits = bayes_error(Problem(alpha_l=0.5, alpha_u=2.0, rho=rho, delta=0.5625, steps=16))
    assert limits.semi_supervised == pytest.approx(error, abs=1e-13)


def test_labelled_limit_is_what_heavily_regularised_ridge_reaches() -> None:
    """rho = 1/2: H(sqrt(alpha / (Delta (alpha + Delta)))), published for infinite ridge."""
    limits = bayes_error(Problem(alpha_l=2.0, alpha_u=1.0, rho=0.5, delta=0.5, steps=0))
    for value in (limits.semi_supervised, limits.all_labeled, limits.labeled_only):
        assert value == pytest.approx(0.1029516053660342, abs=1e-15)


def test_all_labelled_overlap_is_alpha_over_alpha_plus_delta() -> None:
    limits = bayes_error(Problem(alpha_l=0.7, alpha_u=(0.4, 1.9), rho=0.3, delta=0.8, steps=2))
    assert limits.overlap_all_labeled == pytest.approx(3.0 / 3.8, rel=1e-14)
    assert limits.overlap_labeled_only == pytest.approx(0.7 / 1.5, rel=1e-14)


def test_domain_shift_by_root_finding_on_adaptive_quadrature() -> None:
    problem = Problem(
        0.6, (1.5, 0.8), 0.3, 0.9, steps=2, rho_u=(0.4, 0.1), delta_u=(0.5, 1.7), test=(0.2, 0.6)
    )

    def balance(overlap: float) -> float:
        kappa = 0.6 / 0.9
        for alpha, rho, delta in ((1.5, 0.4, 0.5), (0.8, 0.1, 1.7)):
            kappa += alpha / delta * worth_by_quadrature(overlap / delta, rho)
        return kappa * (1 - overlap) - overlap

    overlap = brentq(balance, 0.01, 0.99, xtol=1e-14)
    k = sqrt(overlap / 0.6)
    tau = log(0.2 / 0.8) / (2 * k)
    limits = bayes_error(problem)
    assert limits.overlap_semi_supervised == pytest.approx(overlap, abs=1e-12)
    expected = 0.2 * norm.sf(k + tau) + 0.8 * norm.sf(k - tau)
    assert limits.semi_supervised == pytest.approx(expected, abs=1e-12)


@given(problems)
def test_more_information_never_hurts(problem: Problem) -> None:
    limits = bayes_error(problem)
    slack = 1 + 1e-13
    assert limits.all_labeled <= limits.semi_supervised * slack
    assert limits.semi_supervised <= limits.labeled_only * slack
    path = bayes_path(problem)
    assert (np.diff(path) <= 1e-13 * path[:-1]).all()
    assert path[0] == pytest.approx(limits.labeled_only, rel=1e-12)
    assert path[-1] == pytest.approx(limits.semi_supervised, rel=1e-12)


@given(problems, st.floats(1.01, 10.0))
def test_more_unlabelled_points_never_hurt(problem: Problem, factor: float) -> None:
    larger = problem.replace(alpha_u=factor * np.asarray(problem.alpha_u))
    now, then = bayes_error(problem).semi_supervised, bayes_error(larger).semi_supervised
    assert then <= now * (1 + 1e-13)


@given(problems)
def test_classes_can_be_exchanged(problem: Problem) -> None:
    rho_u = None if problem.rho_u is None else 1 - np.asarray(problem.rho_u)
    mirrored = problem.replace(rho=1 - problem.rho, rho_u=rho_u)
    first, second = bayes_error(problem), bayes_error(mirrored)
    assert first.semi_supervised == pytest.approx(second.semi_supervised, rel=1e-12)


def test_limits_in_the_amount_of_data() -> None:
    """Without end of data the cluster axis is known; then only the overlap of clusters remains."""
    many = bayes_error(Problem(1.0, 1e9, 0.5, 0.5, steps=1))
    assert many.semi_supervised == pytest.approx(float(norm.sf(1 / sqrt(0.5))), rel=1e-8)
    few = bayes_error(Problem(1.0, 1e-12, 0.3, 0.5, steps=1))
    assert few.semi_supervised == pytest.approx(few.labeled_only, rel=1e-11)


def test_batches_up_to_a_step_and_splitting_of_batches() -> None:
    problem = Problem(0.5, (1.0, 2.0, 3.0), 0.3, 0.5, steps=3)
    for t in range(4):
        limits = bayes_error(problem, upto=t)
        assert limits.semi_supervised == pytest.approx(bayes_path(problem)[t], rel=1e-13)
    merged = bayes_error(Problem(0.5, 6.0, 0.3, 0.5, steps=1))
    assert bayes_error(problem).semi_supervised == pytest.approx(merged.semi_supervised, rel=1e-13)
    for wrong in (-1, 4, 1.5):
        with pytest.raises(InvalidInput, match="upto"):
            bayes_error(problem, upto=wrong)  # type: ignore[arg-type]


def test_a_thousand_equal_batches_cost_as_much_as_one() -> None:
    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=1024)
    bayes_error(problem)
    began = time.process_time()
    path = bayes_path(problem)
    assert time.process_time() - began < 0.5
    assert path.shape == (1025,)


def test_many_different_batches_count_as_one_by_one() -> None:
    """The path over batches that all differ, against the limit of each step on its own."""
    rng = np.random.default_rng(3)
    rho, delta = tuple(rng.uniform(0.2, 0.5, 60)), tuple(rng.uniform(0.05, 5.0, 60))
    problem = Problem(0.5, 2.0, 0.4, 0.5, steps=60, rho_u=rho, delta_u=delta)
    path = bayes_path(problem)
    for t in (0, 1, 17, 60):
        assert path[t] == pytest.approx(bayes_error(problem, upto=t).semi_supervised, rel=1e-11)


def test_little_noise_needs_no_more_memory() -> None:
    tracemalloc.start()
    try:
        limits = bayes_error(Problem(1.0, 2.0, 0.4, 1e-12, steps=4))
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()
    assert limits.semi_supervised == 0.0
