r"""`simulate`: finite-size self-training with many seeds, as an `Ensemble`.

Three methods run the same algorithm (`seed_run.py`) with the same, exact law: "dense" draws every
entry of every batch, "revealed" draws only what matrix products need (`designs/revealed.py`), and
"matrix-free" stores no vector of N entries (`engines/matrix_free.py`).
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..errors import InvalidInput, SeedError, StageError, nearest
from ..fields import number, whole
from ..labelers import SoftLabels
from ..problem import Problem
from ..protocol import Fit, Protocol, protocol_of
from ..recipe import Recipe
from ..runtime.parallel import cores, in_threads, whole_workers
from ..runtime.progress import Progress, ProgressOption, checked_progress
from .designs.sample_sources import NOISES, GaussianSource, TableSource, sample_table
from .engines.explicit import MeasuredEngine
from .ensemble import Ensemble
from .run_plan import RunPlan, check_memory, chooses_features, plan_run
from .seed_record import MEASURED, SeedOptions, SeedRecord
from .seed_run import SeedEngine, run_seed

__all__ = ["simulate"]

METHODS = ("dense", "matrix-free", "revealed")

EngineOfSeed = Callable[[int], SeedEngine]

MOST_SEEDS = 10**6
"""Largest number of seeds of one call; with more the results would need gigabytes."""

MOST_FEATURES = 10**12
FEATURES = "must be a whole number from 2 to 10^12"
MOST_PROBES = 10_000
PROBES = (
    "must be a whole number from 0 to 10,000 (the spread between seeds exceeds that between probes)"
)
BYTES = "must be a whole number of bytes, 1 or more"
TOLERANCE = (lambda x: 1e-9 <= x < 0.1, "must be from 1e-9 to 0.1")


def simulate(
    problem: Problem | Protocol,
    recipe: Recipe | None = None,
    features: int | None = None,
    seeds: int | Sequence[int] = 16,
    method: str = "matrix-free",
    *,
    rows: tuple[Any, Any] | None = None,
    probes: int = 1,
    keep_weights: bool = False,
    keep_logits: bool = False,
    tolerance: float = 1e-6,
    workers: int = 1,
    memory: int | None = None,
    progress: ProgressOption = None,
    on_failure: str = "raise",
) -> Ensemble:
    """Run self-training on finite data, once per seed.

    Arguments:
        problem, recipe: the problem and the recipe to run; or a `Protocol`, without a recipe.
        features: N; default: 8192, or 1000 with more than two classes. Clusters with general
            covariances have a fixed number of features.
        seeds: the number of seeds (0, 1, ... are used), or a sequence of seeds. The result of a
            seed does not depend on the others.
        method: "matrix-free", "revealed" or "dense". The matrix-free engine supports two classes
            and fresh batches; other problems with spheres use "revealed" instead, general
            covariances "dense".
        rows: real samples (X, y), for a problem with clusters: every step draws its samples from
            them without replacement, and errors are measured on the held-out ones. Without `rows`,
            clusters are sampled ("dense").
        probes: number of random probes of the susceptibility per step; with 0 `chi` is NaN.
        keep_weights, keep_logits: whether to store the vectors, for histograms.
        tolerance: relative accuracy of q, m and B in each fit, from 1e-9 to 0.1.
        workers: number of seeds that run in parallel, in threads; 0 or 1 for one after the other,
            -1 for the number of cores. Results do not depend on it.
        memory: bytes that may be used; default: the available memory.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        on_failure: if a fit of a seed fails (the threshold rejects every sample; without ridge
            there is no minimum), the seed is NaN from that step on, its error is in `failures`, and
            the other seeds continue. At the end "raise" raises a `SeedError` that has the ensemble,
            "partial" returns the ensemble.

    An interrupt (ctrl-C) ends the run; the finished seeds are returned.

    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=2)
    >>> ensemble = simulate(problem, Recipe(), features=256, seeds=4)
    >>> ensemble.q.shape
    (4, 3)
    """
    chosen = _seeds(seeds)
    protocol = _checked(problem, recipe, method, on_failure)
    checked_progress(progress)
    for name, value in {"keep_weights": keep_weights, "keep_logits": keep_logits}.items():
        if not isinstance(value, (bool, np.bool_)):
            raise InvalidInput(name, value, "must be True or False")
    size = _size(protocol, features, rows)
    plan = plan_run(protocol, size)
    jobs = whole_workers(workers)
    options = SeedOptions(
        whole("probes", probes, lambda n: 0 <= n <= MOST_PROBES, PROBES),
        keep_weights,
        keep_logits,
        number("tolerance", tolerance, *TOLERANCE),
    )
    engine, engines = _engines(plan, method, rows, options)
    several = min(cores(jobs), len(chosen))
    fits = range(len(protocol.fits))
    kept = sum(len(MEASURED) + keep_weights * size + keep_logits * plan.rows(t) for t in fits)
    limit = None if memory is None else whole("memory", memory, lambda n: n >= 1, BYTES)
    check_memory(plan, engine, several, len(chosen), kept, limit)
    _warn_if_idle(protocol)
    begin = time.perf_counter()
    records = _run_all(plan, chosen, engines, options, several, progress)
    if not records:
        raise KeyboardInterrupt
    ensemble = Ensemble.from_records(
        plan,
        records,
        problem=problem if isinstance(problem, Problem) else None,
        recipe=recipe,
        method=engine,
        seconds=time.perf_counter() - begin,
    )
    if ensemble.failures and on_failure == "raise":
        raise SeedError(ensemble)
    return ensemble


def _checked(problem: Any, recipe: Any, method: Any, on_failure: Any) -> Protocol:
    """Return the protocol to run."""
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidInput("method", method, f"unknown method; {nearest(method, METHODS)}")
    if not isinstance(on_failure, str) or on_failure not in ("raise", "partial"):
        raise InvalidInput("on_failure", on_failure, 'must be "raise" or "partial"')
    if isinstance(problem, Protocol):
        if recipe is not None:
            raise InvalidInput("recipe", recipe, "a protocol has its own ridges and labels")
        return problem
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem or a Protocol")
    if not isinstance(recipe, Recipe):
        raise InvalidInput("recipe", recipe, "must be a selftrain.Recipe")
    return protocol_of(problem, recipe)


def _size(protocol: Protocol, features: int | None, rows: Any) -> int:
    """Return the number of features."""
    own = protocol.groups[0].law.features
    if chooses_features(protocol):
        if rows is not None:
            accepted = (
                "samples are drawn for a problem with clusters: Problem(clusters="
                "Clusters.from_data(X, y), ...)"
            )
            raise InvalidInput("rows", type(rows).__name__, accepted)
        usual = 8192 if protocol.classes == 2 else 1000
        given = usual if features is None else features
        return whole("features", given, lambda n: 2 <= n <= MOST_FEATURES, FEATURES)
    if features is not None and features != own:
        raise InvalidInput("features", features, f"the clusters have {own} features; leave it out")
    return own


def _engines(
    plan: RunPlan, method: str, rows: Any, options: SeedOptions
) -> tuple[str, EngineOfSeed]:
    """Return the name of the engine, which is `method` unless the problem needs another, and a
    function from a seed to its engine.
    """
    if plan.embedded and method == "matrix-free":
        from .engines.matrix_free import FrameEngine, supports

        if supports(plan):
            return method, lambda seed: FrameEngine(plan, options, seed)
        method = "revealed"
    source: Callable[[int], GaussianSource | TableSource]
    if rows is not None:
        source = partial(TableSource, plan, sample_table(plan, rows))
    else:
        noise = NOISES[method] if plan.embedded else NOISES["dense"]
        source = partial(GaussianSource, plan, noise=noise)
    name = method if plan.embedded else "gaussian" if rows is None else "rows"
    return name, lambda seed: MeasuredEngine(plan, source(seed), options.tolerance)


def _run_all(
    plan: RunPlan,
    seeds: Sequence[int],
    engines: EngineOfSeed,
    options: SeedOptions,
    workers: int,
    progress: ProgressOption,
) -> list[SeedRecord]:
    """Return the records of all seeds in order, after an interrupt those of the finished ones; the
    record of a seed that fails ends at its failure.
    """
    stop = threading.Event()
    options = options._replace(stopped=stop.is_set)
    done: dict[int, SeedRecord] = {}

    def work(seed: int) -> None:
        record = SeedRecord(seed, plan.protocol.steps, plan.protocol.classes)
        try:
            ended = run_seed(plan, engines(seed), record, options)
        except StageError as error:
            record.failure, ended = error, True
        if ended:
            done[seed] = record

    with (
        threadpool_limits(1),
        Progress(len(seeds), "seeds", progress) as bar,
        suppress(KeyboardInterrupt),
        closing(in_threads(work, seeds, workers, stop)) as finished,
    ):
        for seed in finished:
            bar.advance(failed=seed in done and done[seed].failure is not None)
    return [done[seed] for seed in seeds if seed in done]


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    several = (
        f"must be from 1 to {MOST_SEEDS:,} seeds; run more of them in several calls, the next with"
        f" seeds = range({MOST_SEEDS}, {2 * MOST_SEEDS})"
    )
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        return list(range(whole("seeds", seeds, lambda n: 1 <= n <= MOST_SEEDS, several)))
    accepted = "must be a number of seeds, or a sequence of different whole numbers >= 0"
    if isinstance(seeds, np.ndarray):
        seeds = seeds.tolist()
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Sequence):
        raise InvalidInput("seeds", seeds, accepted)
    # A range may be too long for len(): it is cut first.
    if not 1 <= len(seeds[: MOST_SEEDS + 1]) <= MOST_SEEDS:
        raise InvalidInput("seeds", seeds, several)
    chosen = [whole("seeds", seed, lambda n: 0 <= n < 2**63, accepted) for seed in seeds]
    if len(set(chosen)) < len(chosen):
        twice = next(seed for seed, count in Counter(chosen).items() if count > 1)
        raise InvalidInput("seeds", seeds, f"seed {twice} is given twice")
    return chosen


def _warn_if_idle(protocol: Protocol) -> None:
    """Warn of fits that cannot change the model: they have the labelled samples and the ridge of
    fit 0, and labels of sharpness 1, whose loss the previous model already minimises.
    """
    first, *later = protocol.fits

    def idle(fit: Fit) -> bool:
        given = [use for use in fit.uses if use.labels is None]
        made = [use.labels for use in fit.uses if use.labels is not None]
        soft = all(one.sharpness == 1 and one.labeler == SoftLabels() for one in made)
        return given == list(first.uses) and soft and fit.ridge == first.ridge

    if later and all(map(idle, later)):
        warnings.warn(
            "keep_labeled with sharpness 1 and lambda_u = lambda_l changes nothing: the model of "
            "step 0 already minimises every later objective",
            UserWarning,
            stacklevel=3,
        )
