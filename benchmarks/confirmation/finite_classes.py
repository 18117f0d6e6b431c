r"""The theory of K classes compared with finite systems: K = 3, 4 and 10, spheres and covariances,
every kind of label, data reuse and wrong labels.

The deviation of a mean over seeds from the theory consists of noise and a term in 1/N. For every
entry of every quantity at every step, $a + b/N$ is fitted to the deviations at all sizes. The score
is a in units of its standard error, converted to the standard normal number with the same tail
probability (with 16 seeds, Student's t has far longer tails and would exceed 4 by chance in a few
of the thousands of entries). Results are stored as they come; the same command resumes.

The deviation is a term in 1/N only if the biases of single runs are small compared with the spread
of the scores. In "ten, bias fixed", the weights shrink to a hundredth while the biases of step 0
stay, with a variance of 5/N; at step 2 the noise of a score has a variance of 0.0045, so the error
is in this regime only for N far above 1,000 (`docs/classes.md`). Sharpened labels keep the weights
large.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtri_exp, stdtr

from selftrain import Clusters, Problem, Recipe, simulate, solve
from selftrain.protocol import protocol_of
from selftrain.simulation.seed_record import seed_sem

from ..json_lines import JsonLines
from ..options import parser

GRAM = np.array([[3.0, 0.4, -0.6], [0.4, 2.4, 0.2], [-0.6, 0.2, 2.0]])
UNEVEN = {3: (0.5, 0.3, 0.2), 4: (0.4, 0.3, 0.2, 0.1)}
NOISY_ROWS = ((0.8, 0.2, 0.0), (0.0, 0.9, 0.1), (0.1, 0.1, 0.8))
VARIANCES = (0.3, 0.5, 0.8, 1.2)
"""Variances of the features of a covariance, each for a quarter of them."""

Words = dict[str, Any]
SETTINGS: dict[str, tuple[int, str, Words, Words]] = {
    "soft": (3, "gram", {}, {}),
    "soft, bias fixed, annealed": (3, "gram", {}, {"fix_bias": True, "annealing": 0.3}),
    "sharpened": (3, "gram", {}, {"sharpness": 3.0}),
    "hard": (3, "gram", {}, {"labeler": "hard"}),
    "hard, selection, bias fixed": (3, "gram", {}, {"labeler": "hard", "threshold": 0.3,
                                                    "fix_bias": True}),
    "soft, selection": (3, "gram", {}, {"threshold": 0.3}),
    "squared": (3, "gram", {"loss": "squared"}, {}),
    "squared, hard, reused": (3, "gram", {"loss": "squared", "batches": "reused"},
                              {"labeler": "hard"}),
    "reused": (3, "gram", {"batches": "reused"}, {}),
    "reused, kept, noise": (3, "gram",
                            {"batches": "reused", "keep_labeled": 0.5, "label_noise": 0.15}, {}),
    "relabelled, noise": (3, "gram", {"batches": "labeled", "label_noise": 0.2}, {}),
    "relabelled and fresh, noise by class": (3, "gram", {"batches": "labeled+fresh",
                                                         "label_noise": NOISY_ROWS}, {}),
    "covariance": (3, "covariance", {}, {}),
    "covariance, hard": (3, "covariance", {}, {"labeler": "hard", "fix_bias": True}),
    "covariance, reused, noise": (3, "covariance", {"batches": "reused", "label_noise": 0.1}, {}),
    "four": (4, "simplex", {}, {"fix_bias": True}),
    "four, hard, reused": (4, "simplex", {"batches": "reused"},
                           {"labeler": "hard", "fix_bias": True}),
    "four, returning batches": (4, "simplex", {"batches": ("a", "b", "a")}, {"annealing": 0.3}),
    "four, covariance, noise": (4, "covariance", {"label_noise": 0.2, "keep_labeled": 0.3}, {}),
    "ten, bias fixed": (10, "simplex", {}, {"fix_bias": True}),
    "ten, sharpened, bias fixed": (10, "simplex", {}, {"sharpness": 4.0, "fix_bias": True}),
    "ten, hard, bias fixed": (10, "simplex", {}, {"labeler": "hard", "fix_bias": True}),
    "ten, noise, relabelled and reused, bias fixed": (
        10, "simplex", {"batches": "labeled+reused", "label_noise": 0.2}, {"fix_bias": True}),
    "ten, covariance, bias fixed": (10, "covariance", {}, {"annealing": 0.3, "fix_bias": True}),
}  # fmt: skip

SIZES, SEEDS = (1_000, 2_000), 16
TOLERANCE, ROUGH_TOLERANCE = 5e-4, 1e-3
"""Tolerances of the theory, well below the standard error of a mean; the second is for labels that
jump and for ten classes."""

MANY_CLASSES = 10

LIMIT = 4.0
"""A larger score is a disagreement."""


def words(setting: str, features: int) -> tuple[Problem, Recipe]:
    """Return problem and recipe of a setting."""
    classes, shape, fields, recipe = SETTINGS[setting]
    problem = Problem(**{
        "alpha_l": 1.5, "alpha_u": 2.0, "rho": UNEVEN.get(classes, (0.1,) * classes),
        "steps": 3 if classes < MANY_CLASSES else 2,
        "clusters": _clusters(classes, shape, features), **fields,
    })  # fmt: skip
    return problem, Recipe(**{"lambda_l": 0.3, "lambda_u": 0.2, **recipe})


def _clusters(classes: int, shape: str, features: int) -> Clusters:
    if shape == "gram":
        return Clusters.from_gram(GRAM, 0.6)
    if shape == "simplex":
        return Clusters.simplex(classes, distance=2.0, delta=0.5)
    means = np.random.default_rng(classes).normal(size=(classes, features))
    noise = np.repeat(VARIANCES, features // len(VARIANCES))
    return Clusters(means=1.3 * means / np.sqrt(features), covariance=noise)


def measure(setting: str, features: int, seeds: int) -> dict[str, Any]:
    """Return the deviations of all means over seeds from the theory, with their standard errors, by
    name and t.
    """
    problem, recipe = words(setting, features)
    smooth = problem.classes < MANY_CLASSES and not protocol_of(problem, recipe).jumps
    tolerance = TOLERANCE if smooth else ROUGH_TOLERANCE
    begin = time.process_time()
    theory = solve(problem, recipe, tolerance)
    solved = time.process_time()
    own = problem.clusters is not None and problem.clusters.features == features
    ensemble = simulate(problem, recipe, None if own else features, seeds, probes=0, progress=False)
    errors, off = {}, {}
    for key, z in ensemble.compare(theory).z.items():
        name = key.partition("[")[0]
        error = seed_sem(ensemble.components(name)[key])
        for t in np.flatnonzero(np.isfinite(z) & (error > 0)).tolist():
            errors[f"{key} at {t}"] = float(error[t])
            off[f"{key} at {t}"] = float(z[t] * error[t])
    return {
        "setting": setting, "features": features, "seeds": seeds, "off": off, "errors": errors,
        "error": float(theory.error[-1]), "theory_seconds": solved - begin,
        "seconds": time.process_time() - begin,
    }  # fmt: skip


def scores(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the score of every entry (see above); `rows` are the results of one setting at one or
    more sizes. With one size, the deviation itself is scored.
    """
    found = {}
    for key in set.intersection(*(set(row["off"]) for row in rows)):
        off = np.array([row["off"][key] for row in rows])
        variance = np.array([row["errors"][key] for row in rows]) ** 2
        design = np.ones((len(rows), 1))
        if len(rows) > 1:
            design = np.column_stack([design, [1.0 / row["features"] for row in rows]])
        weighted = design.T / variance
        share = np.linalg.solve(weighted @ design, weighted)[0]
        parts = share**2 * variance
        freedom = parts.sum() ** 2 / (parts**2 / [row["seeds"] - 1 for row in rows]).sum()
        found[key] = _as_normal(float(share @ off / np.sqrt(parts.sum())), float(freedom))
    return found


def _as_normal(t: float, freedom: float) -> float:
    """Return the positive standard normal number with the tail probability of a Student's t."""
    tail = float(stdtr(freedom, -abs(t)))
    return -float(ndtri_exp(np.log(tail))) if tail > 0 else abs(t)


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--out", type=Path, default=Path("out/classes.jsonl"))
    given = options.parse_args(arguments)
    store = JsonLines(given.out)
    done = store.known("setting", "features", "seeds")
    for features in given.sizes:
        for setting in SETTINGS:
            if (setting, features, given.seeds) not in done:
                store.add(measure(setting, features, given.seeds))
    worst = show([row for row in store.rows if row["seeds"] == given.seeds])
    return 0 if worst < LIMIT else 1


def show(known: list[dict[str, Any]]) -> float:
    """Print the largest score of each setting, and return the largest of all."""
    table = Table("setting", "K", "N", "error", "entries", "largest |z|", "where", "seconds")
    worst, count = 0.0, 0
    for setting in SETTINGS:
        rows = [row for row in known if row["setting"] == setting]
        if not rows:
            continue
        found = scores(rows)
        where = max(found, key=lambda key: found[key])
        worst, count = max(worst, found[where]), count + len(found)
        table.add_row(
            setting, str(SETTINGS[setting][0]), ", ".join(str(row["features"]) for row in rows),
            f"{rows[-1]['error']:.4f}", str(len(found)), f"{found[where]:.2f}", where,
            f"{sum(row['seconds'] for row in rows):.0f}",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(f"largest |z| of {count}: {worst:.2f}")
    return worst
