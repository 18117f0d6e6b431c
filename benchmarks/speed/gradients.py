"""Gradients compared with forward solves, and optimisation compared with Nelder-Mead."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from selftrain.recipe import Recipe
from selftrain.theory.gradients.gradient import gradient
from selftrain.theory.solve import solve
from selftrain.tuning.optimize import optimize

from .measure import Line, seconds, timed
from .reference import PROBLEM as REFERENCE


def measurements() -> Iterator[Line]:
    """Measure all lines, one after the other."""
    yield from _sweep()
    yield from _constants()
    yield from _schedule()


def _sweep() -> Iterator[Line]:
    """Measure the time of all derivatives of a run of 1024 steps, relative to the run itself."""
    problem = REFERENCE.replace(steps=1024)
    for name, recipe in (
        ("", Recipe(lambda_u=1e-3)),
        (", selection", Recipe(lambda_u=1e-3, threshold=0.3)),
    ):
        run = solve(problem, recipe)
        gradient(run)
        forward = seconds(partial(solve, problem, recipe), repeat=5)
        backward = seconds(partial(gradient, run), repeat=5)
        note = (
            f"1024 steps, {6 * 1024 + 5} derivatives: {1e3 * backward:.1f} ms and"
            f" {1e3 * forward:.1f} ms"
        )
        yield Line(f"gradient over forward{name}", backward / forward, "x", 1.5, False, note)


def _constants() -> Iterator[Line]:
    """Measure the tuning of constants at T = 16 by both methods from the same start, including the
    checks of the result and its comparisons.

    The first call in a process loads compiled code, which takes as long as the search: the shortest
    of three calls counts, of both methods.
    """
    for over, start in (
        (("lambda_l", "lambda_u"), Recipe(0.01, 0.01)),
        (("lambda_l", "lambda_u", "threshold"), Recipe(0.01, 0.01, threshold=0.3)),
        (("lambda_l", "lambda_u", "annealing"), Recipe(0.01, 0.01, annealing=0.1, fix_bias=True)),
    ):
        ours_from = partial(optimize, REFERENCE, over, start=start)
        quick, ours = timed(ours_from, repeat=3)
        slow, simplex = timed(partial(ours_from, method="nelder-mead"), repeat=3)
        name = ", ".join(over)
        note = (
            f"{ours.solves} solves with gradients ({quick:.2f} s) and {simplex.solves}"
            f" ({slow:.2f} s)"
        )
        yield Line(f"Nelder-Mead over ours: {name}", slow / quick, "x", 4, True, note)
        yield Line(
            f"our error above its: {name}", ours.error - simplex.error, "", 1e-9, False,
            f"{ours.error:.12f} and {simplex.error:.12f}",
        )  # fmt: skip


def _schedule() -> Iterator[Line]:
    """Measure a ridge free at every one of 256 steps."""
    for rho in (0.5, 0.4):
        problem = REFERENCE.replace(steps=256, rho=rho)
        took, best = timed(partial(optimize, problem, ("lambda_l",), schedule=("lambda_u",)))
        note = f"{best.solves} solves, error {best.error:.8f}, gradient {best.first_order:.0e}"
        yield Line(f"free ridge, 256 steps, rho = {rho:g}", took, "s", 10, False, note)
