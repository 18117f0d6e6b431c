"""The baselines of the benchmark compute the same thing as the solver."""

import subprocess
import sys

import numpy as np
import pytest

from benchmarks.speed import theory as bench
from benchmarks.speed.measure import Line
from benchmarks.speed.theory import nested_quadrature
from selftrain import Problem, Recipe, solve


def test_nested_quadrature_agrees():
    problem = Problem(alpha_l=2.0, alpha_u=1.0, rho=0.5, delta=0.75**2, steps=0)
    run = solve(problem, Recipe(lambda_l=1.0))
    found = nested_quadrature(problem, 1.0, 1e-3)
    np.testing.assert_allclose(found, [run.m[0], run.q[0], 0.0], atol=2e-3)


@pytest.mark.parametrize(
    ("figure", "target", "at_least", "met"),
    [(3.0, 2.0, True, True), (3.0, 2.0, False, False), (3.0, None, True, None)],
)
def test_a_line_knows_whether_its_target_is_met(figure, target, at_least, met):
    assert Line("speed", figure, "x", target, at_least).met is met


def test_a_cold_start_finds_no_kept_code(monkeypatch):
    count_files = "import os; print(len(os.listdir(os.environ['NUMBA_CACHE_DIR'])))"
    monkeypatch.setattr(bench, "_FIRST_SOLVE", count_files)
    (line,) = bench._cold_start()
    assert line.figure == 0.0


def test_the_program_of_a_cold_start_prints_its_seconds():
    command = [sys.executable, "-c", bench._FIRST_SOLVE]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert 0.1 < float(found.stdout) < 600.0
