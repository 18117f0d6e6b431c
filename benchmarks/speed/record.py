"""All benchmarks in one record: every part in a process of its own, with the noise of each figure.

A figure is the median over the rounds of its part. Its noise is the range of the rounds, relative
to the median, and at least the drift of the machine: a fixed piece of work, the yardstick, is timed
before every part and after the last. Short parts are measured in several rounds, long ones once.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .measure import Line, seconds

PARTS = (
    "theory", "gradients", "covariance", "reuse", "distillation", "multiclass", "estimator",
    "sweep", "simulation",
)  # fmt: skip
"""All parts, short ones first."""

ROOT = Path(__file__).resolve().parents[2]
"""The folder of the clone; benchmarks are not installed."""

LIBRARIES = ("selftrain", "numpy", "scipy", "numba", "scikit-learn", "xarray", "joblib")

ROUNDS, ROUND_LIMIT = 3, 60.0
"""Largest number of rounds of a part; no further round is begun after this many seconds."""

LEAST_NOISE = 0.1
"""Smallest noise: two runs of a program on a quiet machine differ by this much, because the layout
of memory differs."""

YARDSTICK_TRIES = 5

Record = dict[str, Any]


def yardstick() -> float:
    """Return the processor time of a fixed piece of work, about a tenth of a second: exponentials
    of an array that fits into the cache, and a loop in Python.
    """
    values = np.linspace(-5.0, 5.0, 20_000)

    def work() -> None:
        for _ in range(400):
            np.exp(values)
        sum(k * k for k in range(500_000))

    return seconds(work, repeat=YARDSTICK_TRIES)


def measure(
    parts: Sequence[str] = PARTS,
    finished: Callable[[Record], None] = lambda _: None,
    notice: Callable[[str], None] = print,
) -> Record:
    """Measure parts one after the other; `finished` is called with the record after each of them.

    If a part fails, the record has the reason, and the other parts are still measured.
    """
    record: Record = {**setting(), "parts": {}}
    before = yardstick()
    for part in parts:
        begin = time.perf_counter()
        rounds: list[list[dict[str, Any]]] = []
        try:
            while not rounds or (
                len(rounds) < ROUNDS and time.perf_counter() - begin < ROUND_LIMIT
            ):
                rounds.append(_measured(part))
            found: Record = {"rounds": len(rounds), "lines": summary(rounds)}
        except subprocess.CalledProcessError as error:
            found = {"rounds": 0, "lines": [], "failed": _reason(error)}
        found["seconds"] = round(time.perf_counter() - begin, 1)
        after = yardstick()
        record["parts"][part] = found | {"yardstick": [before, after]}
        before = after
        notice(f"{part}: {found.get('failed') or _counted(found)}, {found['seconds']:.0f} s")
        finished(record)
    return record


def setting() -> Record:
    """Return the machine and the versions of the libraries."""
    return {
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in LIBRARIES},
    }


def summary(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the lines of the first round with the median figure of all rounds and its noise.

    >>> rounds = [[Line("speed", figure, "x", 3.0).to_dict()] for figure in (2.0, 4.0, 3.2)]
    >>> line = summary(rounds)[0]
    >>> line["figure"], line["noise"], line["met"]
    (3.2, 0.625, True)
    """
    lines = []
    for line in rounds[0]:
        figures = [
            other["figure"] for one in rounds for other in one if other["what"] == line["what"]
        ]
        known = [figure for figure in figures if _is_number(figure)]
        if not known:
            lines.append({**line, "noise": None})
            continue
        middle = median(known)
        spread = abs((max(known) - min(known)) / middle) if middle else 0.0
        whole = {name: line[name] for name in line if name != "met"} | {"figure": middle}
        lines.append({**Line(**whole).to_dict(), "noise": round(spread, 3)})
    return lines


def yardsticks(record: Record) -> list[float]:
    """Return the yardstick before and after every part of the record."""
    return [taken for found in record["parts"].values() for taken in found["yardstick"]]


def drift(record: Record) -> float:
    """Return the relative range of the yardstick over the record; at least `LEAST_NOISE`."""
    times = yardsticks(record)
    return float(max(LEAST_NOISE, max(times) / min(times) - 1))


def read(path: Path) -> Record:
    """Read a record."""
    found: Record = json.loads(path.read_text("utf-8"))
    return found


def merged(old: Record | None, new: Record) -> Record:
    """Return the new record, with the parts of an old one that were not measured now, if machine
    and versions are the same.
    """
    same = old is not None and all(old[key] == new[key] for key in ("machine", "versions"))
    if old is None or not same:
        return new
    parts = {**old["parts"], **new["parts"]}
    return {**new, "parts": {part: parts[part] for part in PARTS if part in parts}}


def _measured(part: str) -> list[dict[str, Any]]:
    """Measure one round of a part, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks", part, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    lines: list[dict[str, Any]] = json.loads(done.stdout)["lines"]
    return lines


def _reason(error: subprocess.CalledProcessError) -> str:
    lines = (error.stderr or "").strip().splitlines()
    return f"failed: {lines[-1] if lines else f'exit code {error.returncode}'}"


def _is_number(value: Any) -> bool:
    """Return whether a figure is a finite number; JSON has null or text for others."""
    return isinstance(value, (int, float))


def _counted(found: Record) -> str:
    return f"{len(found['lines'])} figures, rounds: {found['rounds']}"


def _processor() -> str:
    """Return the name of the processor, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
