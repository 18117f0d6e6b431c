"""Optima survive a file, with their schedules, bounds and baselines."""

from pathlib import Path

import numpy as np
import pytest

from selftrain import Clusters, Problem, Trajectory, optimize
from selftrain.errors import InvalidInput
from selftrain.tuning.optimum import Optimum


def test_an_optimum_survives_a_file(tmp_path: Path) -> None:
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=3)
    bounds = {"lambda_u": (1e-2, 1e-1)}
    best = optimize(problem, ("lambda_l",), schedule=("lambda_u",), bounds=bounds, starts=1)
    back = Optimum.load(best.save(tmp_path / "best.nc"))
    for name in (*Optimum.__dataclass_fields__, "supervised"):
        if name != "trajectory":
            np.testing.assert_equal(getattr(back, name), getattr(best, name), name)
    np.testing.assert_array_equal(back.trajectory.q, best.trajectory.q)
    assert (repr(back), back.advice, back.against) == (repr(best), best.advice, best.against)


def test_an_optimum_of_a_shape_survives_a_file(tmp_path: Path) -> None:
    clusters = Clusters(mean=[1.0, 0.5, 0.0], covariance=[0.5, 1.0, 2.0])
    problem = Problem(alpha_l=20.0, alpha_u=40.0, rho=0.4, clusters=clusters, steps=1)
    best = optimize(problem, ("lambda_u",), starts=1)
    back = Optimum.load(best.save(tmp_path / "best.nc"))
    assert back.error == best.error
    assert back.supervised == best.supervised


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=1)
    best = optimize(problem, ("lambda_u",), starts=1)
    with pytest.raises(InvalidInput, match="not a stored optimum"):
        Optimum.load(best.trajectory.save(tmp_path / "run.nc"))
    with pytest.raises(InvalidInput, match="not a stored trajectory"):
        Trajectory.load(best.save(tmp_path / "best.nc"))
