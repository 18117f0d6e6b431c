r"""Self-distillation: the time of a run, compared with iteration on random samples.

The iteration is that of arXiv 2501.16226, written from its equations: averages over 10^4 fixed
random samples; for each fit, the conjugates are computed from the fields and the fields from the
conjugates, with damping, until they no longer change.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from selftrain.arrays import Array
from selftrain.observables import generalization_error
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.solve import solve

from .measure import Line, seconds, timed

ALPHA, RHO, DELTA, NOISE = 3.0, 0.4, 0.5, 0.2
RIDGES, SHARPNESS = (1.5, 0.5, 2.0), (0.8, 1.2)
SAMPLES, DAMPING, SETTLED, MOST_SWEEPS = 10**4, 0.9, 1e-7, 700
SEEDS = 6
LARGE = 1e4
"""Initial value of the conjugates of a fit."""


class Iterated(NamedTuple):
    """The errors of the fits, and the number of sweeps of each."""

    error: Array
    sweeps: list[int]


def measurements() -> Iterator[Line]:
    """Measure all lines, one after the other."""
    problem = Problem(ALPHA, rho=RHO, delta=DELTA, steps=2, batches="labeled", label_noise=NOISE)
    recipe = Recipe(RIDGES[0], RIDGES[1:], sharpness=SHARPNESS)
    exact = solve(problem, recipe, 1e-4).error  # compiles
    ours = seconds(partial(solve, problem, recipe, 1e-4), repeat=3)
    note = "processor time of one solve, confirmed on a finer grid"
    yield Line("self-distillation, three fits, to 1e-4", ours, "s", 0.5, False, note)
    theirs, found = timed(lambda: [iterate(SAMPLES, seed) for seed in range(SEEDS)])
    theirs /= SEEDS
    off = float(np.sqrt(np.mean([(one.error / exact - 1) ** 2 for one in found], axis=0).max()))
    swept = " + ".join(map(str, found[0].sweeps))
    note = f"sweeps of the three fits: {swept}"
    yield Line(
        f"iteration on {SAMPLES:,} random samples, damping {DAMPING}", theirs, "s", note=note
    )
    note = f"root mean square over {SEEDS} seeds, of the worst fit; ours: below 1e-4"
    yield Line("relative error of its errors", off, "", note=note)
    yield Line("iteration against `solve`, each as it is", theirs / ours, "x")
    yield Line(
        "iteration against `solve`, both to 1e-4",
        theirs * (off / 1e-4) ** 2 / ours,
        "x",
        50.0,
        note="the samples that it would need: its error falls as their number to the power -1/2",
    )


def iterate(samples: int, seed: int) -> Iterated:
    r"""Solve three fits with the logistic loss by damped iteration on random samples.

    A sample of class s = +-1 has the fields $h = s m + B + \sqrt\Delta L\xi$ with $LL^T = C$, and
    the logits $u^{(t)} = h^{(t)} - \Delta\sum_{s\le t}\chi_{ts} f^{(s)}$.
    """
    fits = len(RIDGES)
    noise = np.random.default_rng(seed).standard_normal((samples, fits))
    kinds = [(s, given) for s in (-1, 1) for given in (0.0, 1.0)]
    shares = np.array(
        [
            (RHO if s > 0 else 1 - RHO) * (1 - NOISE if (s > 0) == given else NOISE)
            for s, given in kinds
        ]
    )
    response, spread = np.zeros((fits, fits)), np.zeros((fits, fits))
    drift, bias = np.zeros(fits), np.zeros(fits)
    slopes, logits = np.zeros((2, fits, 4, samples))
    errors, sweeps = np.zeros(fits), []
    for t in range(fits):
        response[t, t], spread[t, t], drift[t] = LARGE, LARGE, 1.0
        now = slice(0, t + 1)
        sweeps.append(0)
        while sweeps[t] < MOST_SWEEPS:
            sweeps[t] += 1
            chi = np.linalg.inv(np.diag(RIDGES[: t + 1]) + response[now, now])
            m = chi @ drift[now]
            second = np.outer(drift[now], drift[now]) + spread[now, now]
            cholesky = np.linalg.cholesky(chi @ second @ chi.T)
            for k, (s, given) in enumerate(kinds):
                label = expit(SHARPNESS[t - 1] * logits[t - 1, k]) if t else given
                field = s * m[t] + bias[t] + np.sqrt(DELTA) * noise[:, now] @ cholesky[t]
                field -= DELTA * chi[t, :t] @ slopes[:t, k]
                logits[t, k] = _proximal(field, label, DELTA * chi[t, t])
                slopes[t, k] = expit(logits[t, k]) - label
            signs = np.array([s for s, _ in kinds])
            weights = shares[:, None] / samples
            along = np.array([(weights * slopes[t] * noise[:, r]).sum() for r in range(t + 1)])
            new = (
                ALPHA * DELTA * np.linalg.solve(cholesky.T, along) / np.sqrt(DELTA),
                ALPHA
                * DELTA
                * np.array([(weights * slopes[t] * one).sum() for one in slopes[now]]),
                -ALPHA * (weights * slopes[t] * signs[:, None]).sum(),
            )
            old = response[t, now].copy(), spread[t, now].copy(), drift[t]
            response[t, now], row, drift[t] = (
                DAMPING * a + (1 - DAMPING) * b for a, b in zip(new, old, strict=True)
            )
            spread[t, now] = spread[now, t] = row
            bias[t] -= DELTA * chi[t, t] * (weights * slopes[t]).sum()
            moved = (response[t, now] - old[0], row - old[1], drift[t] - old[2])
            if max(float(np.abs(one).max()) for one in moved) < SETTLED:
                break
        q = float((chi @ second @ chi.T)[t, t])
        state = np.array([[m[t]], [q], [bias[t]]])
        errors[t] = generalization_error(state[0], state[1], state[2], RHO, DELTA)[0]
    return Iterated(errors, sweeps)


def _proximal(field: Array, label: Array | float, scale: float) -> Array:
    """Return the logits u with u + scale (sigmoid(u) - label) = field, by Newton's method."""
    u = field.copy()
    for _ in range(50):
        p = expit(u)
        move = (u - field + scale * (p - label)) / (1 + scale * p * (1 - p))
        u -= move
        if np.abs(move).max() < 1e-12:
            break
    return u
