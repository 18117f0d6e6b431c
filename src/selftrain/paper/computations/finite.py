r"""Finite systems at the tuned recipe of T = 16, next to the theory: macroscopic quantities and
laws.

$(\lambda_L, \lambda_U, \Gamma)$ minimise the error of the last step in the large-system limit
(`subsec:cross-check`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ...arrays import Array
from ...problem import Problem
from ...simulation.simulate import simulate
from ...sweeps import Computation, Output
from ...theory.bayes import bayes_path
from ...tuning.optimum import Optimum
from .chains import CHOSEN, RIDGES, plain_starts, selected
from .tuned import tuned

SHOWN = ("q", "m", "bias", "error")
SYMBOLS = {"q": "q^{(t)}", "m": "m^{(t)}", "bias": "B^{(t)}", "error": r"\epsilon_g^{(t)}"}
BINS, CURVE = 61, 241
LEVELS = np.linspace(0.02, 0.98, 25)


@lru_cache(maxsize=16)
def best(alpha_l: float, alpha_u: float, rho: float, delta: float, steps: int) -> Optimum:
    """The tuned recipe with selection, and its theory."""
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=steps)
    return selected(problem, tuned(problem, RIDGES, plain_starts(steps)))


def theory(**setting: Any) -> dict[str, Any]:
    """The large-system limit of the tuned run, over t."""
    found = best(**setting)
    run = found.trajectory
    values: dict[str, Any] = {name: getattr(run, name) for name in SHOWN}
    chosen = {name: float(getattr(found.recipe, name)) for name in CHOSEN}
    return {"t": run.t, **values, **chosen, "bayes": bayes_path(run.problem)}


def finite_run(features: int, seed: int, **setting: Any) -> dict[str, Any]:
    """One system of N features that follows the tuned recipe, over t."""
    found = best(**setting)
    ensemble = simulate(
        found.trajectory.problem, found.recipe, features, [seed], probes=0, progress=False
    )
    return {"t": ensemble.t, **{name: ensemble.values(name)[0] for name in SHOWN}}


class Law(NamedTuple):
    """A law at fixed points: edges of bins, a curve, and where it has given probabilities."""

    edges: Array
    curve: Array
    density: Array
    points: Array
    cdf: Array


@lru_cache(maxsize=16)
def laws(t: int, **setting: Any) -> dict[str, Law]:
    """The laws of weights and selected training logits of step t.

    Bins and points come from the law alone, so they are the same for every system.
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


def _samples(features: int, seed: int, **setting: Any) -> Callable[[int], dict[str, Array]]:
    """Weights and selected training logits of one system, by the step."""
    found = best(**setting)
    ensemble = simulate(
        found.trajectory.problem,
        found.recipe,
        features,
        [seed],
        probes=0,
        keep_weights=True,
        keep_logits=True,
        progress=False,
    )
    (vectors,) = ensemble.vectors
    return lambda t: {
        "weights": vectors.weights[t],
        "logits": vectors.logits[t][vectors.selected[t]],
    }


def histogram(features: int, seed: int, shown: tuple[int, ...], **setting: Any) -> dict[str, Any]:
    """Weights and selected training logits of one system at some steps as histograms, and the
    densities of their laws on curves.
    """
    return _over_steps(_bins, features, seed, shown, setting)


def shares(features: int, seed: int, shown: tuple[int, ...], **setting: Any) -> dict[str, Any]:
    """The shares of weights and selected training logits of one system below some points at some
    steps, next to the probabilities of their laws.
    """
    return {"level": LEVELS, **_over_steps(_below, features, seed, shown, setting)}


def _over_steps(
    compare: Callable[[Array, Law], dict[str, Array]],
    features: int,
    seed: int,
    shown: tuple[int, ...],
    setting: Mapping[str, Any],
) -> dict[str, Any]:
    samples = _samples(features, seed, **setting)
    columns: dict[str, list[Any]] = {}
    for t in shown:
        for what, sample in samples(t).items():
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


def _histogram_seconds(features: int, **_: Any) -> float:
    return 0.5 + features * 5e-5


OVER_T = {name: Output(symbol, ("t",)) for name, symbol in SYMBOLS.items()}

THEORY = Computation(
    theory,
    {
        "t": Output("t", ("t",)),
        **OVER_T,
        "lambda_l": Output(r"\lambda_L^*"),
        "lambda_u": Output(r"\lambda_U^*"),
        "threshold": Output(r"\Gamma^*"),
        "bayes": Output(r"\epsilon_{Bayes}^{(t)}", ("t",)),
    },
    seconds=lambda **_: 1.0,
)

RUN = Computation(finite_run, {"t": Output("t", ("t",)), **OVER_T}, seconds=_run_seconds)


def _outputs(entries: Mapping[str, tuple[str, str]]) -> dict[str, Output]:
    """Entries of weights and logits, each with its text and its dimension."""
    return {
        f"{what}_{name}": Output(text.format(symbol), ("step", dim.format(what)))
        for what, symbol in (("weights", r"w_i^{(t)}"), ("logits", r"u_\nu^{(t)}"))
        for name, (text, dim) in entries.items()
    }


HISTOGRAM = Computation(
    histogram,
    {
        "step": Output("t", ("step",)),
        **_outputs(
            {
                "edge": ("edges of the bins of {}", "{}_bin_edge"),
                "histogram": ("density of {}, histogram", "{}_bin"),
                "curve": ("{}", "curve_point"),
                "density": ("density of {}, law", "curve_point"),
            }
        ),
    },
    seconds=_histogram_seconds,
)

SHARES = Computation(
    shares,
    {
        "step": Output("t", ("step",)),
        "level": Output("level", ("level",)),
        **_outputs(
            {
                "share": (r"P({} \le x), sample", "level"),
                "law": (r"P({} \le x), law", "level"),
            }
        ),
    },
    seconds=_run_seconds,
)
