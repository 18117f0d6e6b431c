"""The pictures of the documentation that belong to no figure of the paper.

    python -m pages.pictures DOCS [NAME ...]

writes into DOCS/images self-training.gif, headline.png, continuum-path.png,
continuum-imbalance.png, continuum-annealing.png, simulation-theory.png, real-data.png and plan.png,
or only those that are named. The pictures on speed come from `python -m benchmarks`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.problem import Problem
from selftrain.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFERENCE = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
SIZES = {128: 64, 1024: 32, 8192: 16, 2**20: 3}
"""Sizes N of the simulated systems, and the number of systems of each size."""

ANNEALED_UNTIL = 0.2
r"""$\lambda_U T$ of the annealed runs, near its tuned value at 256 and 1024 steps."""


def self_training() -> bytes:
    """Return an animation of self-training without and with the heuristics: the clusters and the
    separating line.
    """
    from selftrain.plots.plane import film
    from selftrain.theory.solve import solve

    problem = REFERENCE.replace(rho=0.2)
    helped = Recipe(lambda_l=0.1, lambda_u=0.004, annealing=0.02, fix_bias=True)
    naive = helped.replace(annealing=0.0, fix_bias=False)
    return film(
        {
            "naive self-training": solve(problem, naive),
            "annealed labels, bias fixed": solve(problem, helped),
        }
    )


def headline() -> Figure:
    """Draw the headline figure with simulated systems."""
    from .headline import headline, simulated
    from .headline_picture import plot_headline

    return plot_headline(simulated(headline()))


def continuum_path() -> Figure:
    """Draw a path in continuous time with runs at two ridges."""
    from selftrain.plots.continuum import plot_path
    from selftrain.theory.continuum.continuous_time import continuum
    from selftrain.theory.solve import solve

    problem = REFERENCE.replace(steps=150)
    runs = [
        solve(problem.replace(steps=steps), Recipe(lambda_u=ridge))
        for steps, ridge in ((30, 0.01), (150, 0.002))
    ]
    return plot_path(continuum(problem, Recipe(lambda_u=0.002)), runs)


def continuum_imbalance() -> Figure:
    """Draw paths for four class proportions."""
    from selftrain.plots.continuum import plot_paths
    from selftrain.theory.continuum.continuous_time import continuum

    recipe = Recipe(lambda_u=0.002)
    return plot_paths(
        {
            rf"$\rho={rho:g}$": continuum(REFERENCE.replace(rho=rho, steps=150), recipe)
            for rho in (0.5, 0.4, 0.3, 0.2)
        }
    )


def continuum_annealing() -> Figure:
    """Draw annealed paths with a fixed bias, and errors of runs and their limit by $a T^2$."""
    import numpy as np

    from selftrain.observables import generalization_error
    from selftrain.plots.continuum import plot_annealing
    from selftrain.theory.continuum.continuous_time import continuum
    from selftrain.theory.solve import solve

    def recipe(dose: float, steps: int) -> Recipe:
        return Recipe(0.1, ANNEALED_UNTIL / steps, annealing=dose / steps**2, fix_bias=True)

    once = REFERENCE.replace(steps=1)
    paths = {
        f"{dose:g}": continuum(once, recipe(dose, 1), tolerance=1e-6) for dose in (0, 4, 8, 16)
    }
    doses, one = np.linspace(2.0, 16.0, 29), np.ones(())
    ends = [continuum(once, recipe(dose, 1), tolerance=1e-6) for dose in doses]
    errors = {r"$T \to \infty$": [path(path.until).error for path in ends]}
    for steps in (64, 256, 1024, 4096):
        runs = (solve(REFERENCE.replace(steps=steps), recipe(dose, steps)) for dose in doses)
        errors[f"$T = {steps}$"] = [run.error[-1] for run in runs]
    rho, delta = REFERENCE.test_mixture
    threshold = 0.5 * delta * np.log(rho / (1 - rho))  # of the best direction
    smallest = float(generalization_error(one, one, threshold, rho, delta))
    excess = {name: np.array(found) - smallest for name, found in errors.items()}
    return plot_annealing(paths, doses, excess)


def simulation_theory() -> Figure:
    """Draw systems from 128 to a million features with the theory."""
    from selftrain.plots.ensemble import plot_ensemble
    from selftrain.simulation.simulate import simulate
    from selftrain.theory.solve import solve

    recipe = Recipe(lambda_l=0.05, lambda_u=0.05)
    runs = [simulate(REFERENCE, recipe, n, seeds, probes=0) for n, seeds in SIZES.items()]
    return plot_ensemble(runs, solve(REFERENCE, recipe))


def plan() -> Figure:
    """Draw a plan of breast cancer with 40 of 569 samples labelled."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from selftrain.estimator.planning.plan import plan

    X, classes = load_breast_cancer(return_X_y=True)
    labeled = np.random.default_rng(2).choice(len(X), 40, replace=False)
    y = np.full(len(X), -1)
    y[labeled] = classes[labeled]
    return plan(X, y).plot()


def real_data() -> Figure:
    """Draw breast cancer: theory, synthetic Gaussian data, real samples (`docs/real-data.md`)."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    from selftrain.mixture.clusters import Clusters
    from selftrain.plots.ensemble import plot_ensemble
    from selftrain.simulation.simulate import simulate
    from selftrain.theory.solve import solve

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    clusters = Clusters.from_data(X, y)
    n = clusters.features
    problem = Problem(
        alpha_l=60 / n, alpha_u=90 / n, rho=float(y.mean()), clusters=clusters, steps=3
    )
    recipe = Recipe(lambda_l=0.3, lambda_u=0.1)
    runs = [simulate(problem, recipe, seeds=64, rows=rows) for rows in (None, (X, y))]
    return plot_ensemble(runs, solve(problem, recipe))


PICTURES: dict[str, Callable[[], Figure]] = {
    "headline": headline,
    "continuum-path": continuum_path,
    "continuum-imbalance": continuum_imbalance,
    "continuum-annealing": continuum_annealing,
    "simulation-theory": simulation_theory,
    "plan": plan,
    "real-data": real_data,
}


FILMS: dict[str, Callable[[], bytes]] = {"self-training": self_training}


def write(docs: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write pictures into DOCS/images; all of them if none is named."""
    written = []
    for name in names or (*FILMS, *PICTURES):
        if name in FILMS:
            target = docs / "images" / f"{name}.gif"
            target.write_bytes(FILMS[name]())
        else:
            target = docs / "images" / f"{name}.png"
            PICTURES[name]().savefig(target)
        written.append(target)
        print(target, flush=True)
    return written


if __name__ == "__main__":
    unknown = set(sys.argv[2:]) - {*FILMS, *PICTURES}
    if len(sys.argv) < 2 or unknown:
        sys.exit("usage: python -m pages.pictures DOCS [NAME ...]")
    write(Path(sys.argv[1]), sys.argv[2:])
