r"""Finite systems at the recipe tuned for T = 16: order parameters and distributions, with the
theory.

$(\lambda_L, \lambda_U, \Gamma)$ minimise the error of the last step in the large-system limit
(`subsec:cross-check`). The law of a quantity is its distribution in that limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ...arrays import Array
from ...problem import Problem
from ...sweeps import Computation, Output
from ...theory.bayes import bayes_path
from ...tuning.optimum import Optimum
from .chains import CHOSEN, RIDGES, plain_starts, selected
from .outputs import outputs
from .tuned import constants, one_system, tuned

SHOWN = ("q", "m", "bias", "error")
SYMBOLS = {"q": "q^{(t)}", "m": "m^{(t)}", "bias": "B^{(t)}", "error": r"\epsilon_g^{(t)}"}
BINS, CURVE = 61, 241
LEVELS = np.linspace(0.02, 0.98, 25)


@lru_cache(maxsize=16)
def best(**setting: Any) -> Optimum:
    """Tune the ridges and the threshold."""
    problem = Problem(**setting)
    return selected(problem, tuned(problem, RIDGES, plain_starts(problem.steps)))


def theory(**setting: Any) -> dict[str, Any]:
    """Return the tuned run over t in the large-system limit."""
    found = best(**setting)
    run = found.trajectory
    values: dict[str, Any] = {name: getattr(run, name) for name in SHOWN}
    chosen = constants(found.recipe, *CHOSEN)
    return {"t": run.t, **values, **chosen, "bayes": bayes_path(run.problem)}


def finite_run(features: int, seed: int, **setting: Any) -> dict[str, Any]:
    """Simulate one system of N features at the tuned recipe, over t."""
    found = best(**setting)
    runs = one_system(found.problem, found.recipe, features, seed)
    return {"t": runs.t, **{name: runs.values(name)[0] for name in SHOWN}}


class Law(NamedTuple):
    """A law, evaluated at fixed points.

    Attributes:
        edges: edges of the bins of a histogram.
        curve, density: points of a smooth curve, and the density there.
        points, cdf: points at which the law has about the probabilities `LEVELS`, and its
            distribution function there.
    """

    edges: Array
    curve: Array
    density: Array
    points: Array
    cdf: Array


@lru_cache(maxsize=16)
def laws(t: int, **setting: Any) -> dict[str, Law]:
    """Return the laws of the weights and of the selected training logits of step t.

    Bins and points depend on the law only, so they are the same for every system.
    """
    run = best(**setting).trajectory
    scale = np.sqrt(run.v[t])
    law = run.training_logits(t)
    drawn = law.sample(20_000, seed=t)
    likely = drawn.u[drawn.selected]
    return {
        "weights": _at(
            run.m[t] + scale * np.linspace(-4, 4, BINS),
            run.m[t] + scale * ndtri(LEVELS),
            partial(run.weights.density, t=t),
            partial(run.weights.cdf, t=t),
        ),
        "logits": _at(
            np.linspace(np.quantile(likely, 0.0005), np.quantile(likely, 0.9995), BINS),
            np.quantile(likely, LEVELS),
            partial(law.density, selected=True),
            partial(law.cdf, selected=True),
        ),
    }


def _at(
    edges: Array, points: Array, density: Callable[[Array], Array], cdf: Callable[[Array], Array]
) -> Law:
    curve = np.linspace(edges[0], edges[-1], CURVE)
    return Law(edges, curve, density(curve), points, cdf(points))


def histogram(**given: Any) -> dict[str, Any]:
    """Return histograms of weights and selected training logits of one system at the steps `shown`,
    and the densities of their laws; arguments as for `_over_steps`.
    """
    return _over_steps(_bins, **given)


def shares(**given: Any) -> dict[str, Any]:
    """Return the empirical distribution functions of weights and selected training logits of one
    system at the steps `shown`, and the distribution functions of their laws.
    """
    return {"level": LEVELS, **_over_steps(_below, **given)}


def _over_steps(
    compare: Callable[[Array, Law], dict[str, Array]],
    features: int,
    seed: int,
    shown: tuple[int, ...],
    **setting: Any,
) -> dict[str, Any]:
    """Simulate one system, and compare its samples with their laws at the steps `shown`."""
    found = best(**setting)
    runs = one_system(
        found.problem, found.recipe, features, seed, keep_weights=True, keep_logits=True
    )
    (vectors,) = runs.vectors
    columns: dict[str, list[Any]] = {}
    for t in shown:
        selected = vectors.logits[t][vectors.selected[t]]
        for what, sample in (("weights", vectors.weights[t]), ("logits", selected)):
            for name, value in compare(sample, laws(t, **setting)[what]).items():
                columns.setdefault(f"{what}_{name}", []).append(value)
    return {"step": np.array(shown), **{name: np.array(one) for name, one in columns.items()}}


def _bins(sample: Array, law: Law) -> dict[str, Array]:
    counts, _ = np.histogram(sample, law.edges)
    return {
        "edge": law.edges,
        "histogram": counts / (sample.size * np.diff(law.edges)),
        "curve": law.curve,
        "density": law.density,
    }


def _below(sample: Array, law: Law) -> dict[str, Array]:
    share = np.searchsorted(np.sort(sample), law.points, side="right") / sample.size
    return {"share": share, "law": law.cdf}


def _run_seconds(features: int, steps: int, **_: Any) -> float:
    return 0.01 + steps * features * 7e-6


_OVER_T = outputs("t", "t", **SYMBOLS)
_STEP = outputs("", "step", step="t")


def _of_both(name: str, symbol: str, dim: str) -> dict[str, Output]:
    """Return two outputs of this name, `weights_NAME` and `logits_NAME`."""
    return {
        f"{what}_{name}": Output(symbol.format(one), ("step", dim.format(what)))
        for what, one in (("weights", r"w_i^{(t)}"), ("logits", r"u_\nu^{(t)}"))
    }


THEORY = Computation(
    theory,
    {
        **_OVER_T,
        **outputs("", "t", bayes=r"\epsilon_{Bayes}^{(t)}"),
        **outputs("lambda_l lambda_u threshold"),
    },
    seconds=lambda **_: 1.0,
)
RUN = Computation(finite_run, _OVER_T, seconds=_run_seconds)
HISTOGRAM = Computation(
    histogram,
    {
        **_STEP,
        **_of_both("edge", "edges of the bins of {}", "{}_bin_edge"),
        **_of_both("histogram", "density of {}, histogram", "{}_bin"),
        **_of_both("curve", "{}", "curve_point"),
        **_of_both("density", "density of {}, law", "curve_point"),
    },
    seconds=lambda features, **_: 0.5 + features * 5e-5,
)
SHARES = Computation(
    shares,
    {
        **_STEP,
        **outputs("", "level", level="level"),
        **_of_both("share", r"P({} \le x), sample", "level"),
        **_of_both("law", r"P({} \le x), law", "level"),
    },
    seconds=_run_seconds,
)
