"""The theory of data reuse compared with finite systems, in every mode, at two sizes.

Runs have eight steps. Every mean over seeds is compared with the theory in units of its standard
error. `--growth` runs small systems with many seeds instead, whose deviations are larger than their
standard errors, to check that they fall as 1/N. Results are stored as they come; the same command
resumes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from selftrain import Problem, Recipe, simulate, solve

from ..json_lines import JsonLines
from ..options import parser

BASE = {"alpha_l": 0.8, "alpha_u": 2.2, "rho": 0.35, "delta": 0.6, "steps": 8}
POOL = ("a+b", "b+c", "c+a", "a+b", "b+c", "c+a", "a+b", "b+c")
RETURNING = ("a", "b", "a", "b", "a", "b", "a", "b")
MODES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "kept": ({"keep_labeled": 1.0}, {}),
    "reused": ({"batches": "reused"}, {}),
    "both": ({"batches": "reused", "keep_labeled": 1.0}, {}),
    "pool": ({"batches": POOL}, {}),
    "returning, kept from step 4": (
        {"batches": RETURNING, "keep_labeled": (0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.5)}, {},
    ),
    "hard labels": ({"batches": "reused", "keep_labeled": 1.0}, {"sharpness": float("inf")}),
    "selection": ({"batches": "reused"}, {"threshold": 0.4}),
    "annealed, bias fixed": (
        {"batches": "reused", "keep_labeled": 1.0}, {"annealing": 0.3, "fix_bias": True},
    ),
    "squared": ({"batches": "reused", "keep_labeled": 0.5, "loss": "squared"}, {}),
}  # fmt: skip
SIZES = (2_000, 8_192)
GROWTH_SIZES, GROWTH_MODES, GROWTH_SEEDS = (64, 128, 256), ("reused", "both"), 1_024
COMPARED = ("q", "m", "bias", "overlap", "error", "fraction_selected", "pseudo_label_accuracy")
TOLERANCE = 3e-4
"""Tolerance of the theory, well below the standard error of a mean; runs with labels that jump
cannot be solved much more accurately.
"""


def words(mode: str) -> tuple[Problem, Recipe]:
    """Return problem and recipe of a mode."""
    fields, recipe = MODES[mode]
    return Problem(**{**BASE, **fields}), Recipe(**{"lambda_l": 0.05, "lambda_u": 0.03, **recipe})


def measure(mode: str, features: int, seeds: int) -> dict[str, Any]:
    """Return the largest |z| of a mode with its quantity and step, and the relative deviation of q
    at the last step.
    """
    problem, recipe = words(mode)
    begin = time.process_time()
    ensemble = simulate(problem, recipe, features, seeds, probes=0, progress=False)
    comparison = ensemble.compare(solve(problem, recipe, TOLERANCE))
    theory = comparison.theory
    scores = {
        f"{name} at {t}": abs(float(z))
        for name in COMPARED
        for t, z in enumerate(comparison.z[name])
        if np.isfinite(z)
    }
    where = max(scores, key=lambda key: scores[key])
    deviations = ensemble.q / theory.q - 1
    return {
        "mode": mode,
        "features": features,
        "seeds": seeds,
        "worst": scores[where],
        "where": where,
        "scores": len(scores),
        "deviation": float(np.mean(deviations[:, -1])),
        "error_of_deviation": float(np.std(deviations[:, -1], ddof=1) / np.sqrt(seeds)),
        "accuracy": theory.summary()["accuracy"],
        "seconds": time.process_time() - begin,
    }


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--seeds", type=int, default=16)
    options.add_argument("--out", type=Path, default=Path("out/reuse.jsonl"))
    options.add_argument("--growth", action="store_true")
    given = options.parse_args(arguments)
    runs = [(mode, features, given.seeds) for features in SIZES for mode in MODES]
    if given.growth:
        runs = [(mode, size, GROWTH_SEEDS) for mode in GROWTH_MODES for size in GROWTH_SIZES]
    store = JsonLines(given.out)
    done = store.known("mode", "features", "seeds")
    for run in runs:
        if run not in done:
            store.add(measure(*run))
    show([row for row in store.rows if (row["mode"], row["features"], row["seeds"]) in runs])
    return 0


def show(known: list[dict[str, Any]]) -> None:
    table = Table(
        "mode", "N", "largest |z|", "where", "q - theory, last step", "times N", "seconds"
    )
    for row in known:
        gap = f"{row['deviation']:+.2%} ± {row['error_of_deviation']:.2%}"
        table.add_row(
            row["mode"], str(row["features"]), f"{row['worst']:.2f}", row["where"], gap,
            f"{row['deviation'] * row['features']:+.1f} ± "
            f"{row['error_of_deviation'] * row['features']:.1f}",
            f"{row['seconds']:.0f}",
        )  # fmt: skip
    Console().print(table)
