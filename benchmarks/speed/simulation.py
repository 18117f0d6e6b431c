"""Time of the simulation, compared with dense matrices and with scikit-learn, and its growth with
N."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selftrain.protocol import protocol_of
from selftrain.simulation.designs.design import Stored
from selftrain.simulation.linear.fit import fit
from selftrain.simulation.random_streams import generator
from selftrain.simulation.run_plan import plan_run
from selftrain.simulation.simulate import simulate

from .measure import Line, seconds
from .record import ROOT
from .reference import PROBLEM as REFERENCE
from .reference import RECIPE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEATURES = 8192
SIZES = tuple(2**k for k in range(10, 24))
SPREAD_SIZES = tuple(2**k for k in range(7, 17))


def measurements(out: Path | None = None) -> Iterator[Line]:
    """Measure all lines; figures go to the folder `out`, if one is given."""
    simulate(REFERENCE, RECIPE, 256, 1)
    yield from _against_dense()
    yield from _many_seeds()
    yield from _large()
    yield from _growth(out)
    yield from _spread(out)
    if out is not None:
        yield _picture(out)


def _against_dense() -> Iterator[Line]:
    """Measure one seed of the reference problem, matrix-free and as a user would write it."""
    whole = seconds(lambda: simulate(REFERENCE, RECIPE, FEATURES, 1, probes=0), repeat=5)
    probed = seconds(lambda: simulate(REFERENCE, RECIPE, FEATURES, 1), repeat=3)
    yield Line("matrix-free step", 1e3 * whole / 17, "ms", 10, False, "N = 8192, 17 fits, 1 core")
    yield Line("the same with chi", 1e3 * probed / 17, "ms", None, note="one probe per step")
    one = REFERENCE.replace(steps=1)
    ours = seconds(lambda: simulate(one, RECIPE, FEATURES, 1, probes=0), repeat=5)
    dense = seconds(lambda: simulate(one, RECIPE, FEATURES, 1, "dense", probes=0))
    note = f"steps 0 and 1, drawing the matrix included: {dense:.1f} s"
    yield Line("dense Newton-CG", dense / ours, "x", 300, True, note)
    slow, error, tol = _scikit_learn()
    first = seconds(lambda: simulate(REFERENCE.replace(steps=0), RECIPE, FEATURES, 1, probes=0), 5)
    note = (
        f"lbfgs, tol {tol:g}, rows with both labels; one step: {slow:.1f} s, error of q {error:.0e}"
    )
    yield Line("scikit-learn", slow / ((whole - first) / 16), "x", 1000, True, note)


def _scikit_learn() -> tuple[float, float, float]:
    """Fit step 1 with LogisticRegression on dense data; return time, relative error of q,
    tolerance.

    A soft target becomes two weighted rows. The tolerance is the loosest with which q is accurate
    to 1e-6, like ours.
    """
    from sklearn.linear_model import LogisticRegression

    plan = plan_run(protocol_of(REFERENCE.replace(steps=1), RECIPE), FEATURES)
    count, ridge = plan.rows(1), plan.ridge(1)
    center = np.full(FEATURES, FEATURES**-0.5)
    loss = REFERENCE.loss_at(0)
    before = 0.95 * center + 1.13 * _across(center)
    made: list[Any] = []

    def data() -> None:
        random = generator(0, 1)
        signs = np.where(random.random(count) < REFERENCE.rho, 1.0, -1.0)
        rows = np.sqrt(REFERENCE.delta) * random.standard_normal((count, FEATURES))
        rows += signs[:, None] * center
        targets = loss.link(rows @ before - 0.48)
        shares = np.concatenate([targets, 1 - targets])
        made[:] = [np.concatenate([rows, rows]), np.repeat([1, 0], count), shares]

    drawing = seconds(data)
    rows, labels, shares = made
    exact = fit(Stored(rows[:count]), shares[:count], loss, ridge).weights
    for tol in (1e-4, 1e-5, 1e-6, 1e-7):
        model = LogisticRegression(C=1 / ridge, tol=tol, max_iter=5000)
        fitting = seconds(partial(model.fit, rows, labels, sample_weight=shares))
        weights = model.coef_[0]
        error = abs(float(weights @ weights) / float(exact @ exact) - 1)
        if error < 1e-6:
            break
    return drawing + fitting, error, tol


def _across(center: np.ndarray) -> np.ndarray:
    vector = np.random.default_rng(1).standard_normal(center.size)
    vector -= (vector @ center) * center
    return np.asarray(vector / np.linalg.norm(vector))


def _many_seeds() -> Iterator[Line]:
    begin = time.process_time()
    wall = seconds(
        lambda: simulate(REFERENCE, RECIPE, FEATURES, 1000, probes=0, workers=-1), wall=True
    )
    used = time.process_time() - begin
    note = f"N = 8192, all cores, wall clock; {used:.0f} s of processor time"
    yield Line("1000 seeds x 16 steps", wall, "s", 180, False, note)


def _large() -> Iterator[Line]:
    """Measure sizes that do not fit into memory as dense matrices, each in its own process."""
    used = _fresh_process(2**20, 16)
    yield Line("N = 2^20, 16 steps: time", used["seconds"], "s", 30, False, "1 core")
    yield Line(
        "N = 2^20, 16 steps: memory", used["gigabytes"], "GB", 1, False, "peak of the process"
    )
    used = _fresh_process(10**7, 1)
    yield Line("N = 10^7, one step: time", used["seconds"], "s", None, note="step 0 included")
    yield Line(
        "N = 10^7, one step: memory", used["gigabytes"], "GB", 5, False, "peak of the process"
    )


def _growth(out: Path | None) -> Iterator[Line]:
    """Measure time and memory of one step against N."""
    used = {features: _fresh_process(features, 1) for features in SIZES}
    large = [features for features in SIZES if features >= 2**14]
    slope = np.polyfit(np.log(large), np.log([used[n]["seconds"] for n in large]), 1)[0]
    yield Line("growth of time with N", float(slope), "", 1.15, False, "exponent, N = 2^14 to 2^23")
    if out is not None:
        times = [used[n]["seconds"] for n in SIZES]
        memory = [used[n]["gigabytes"] for n in SIZES]
        series = {"seconds (steps 0 and 1)": times, "GB (peak of the process)": memory}
        figure = _log_log(SIZES, series, 1.0, "time and memory")
        figure.savefig(out / "simulation-growth.png")


def _spread(out: Path | None) -> Iterator[Line]:
    """Measure the standard deviation of q over 200 seeds against N."""
    problem = REFERENCE.replace(steps=1)
    deviations = [
        float(simulate(problem, RECIPE, features, 200, probes=0).std("q")[1])
        for features in SPREAD_SIZES
    ]
    slope = np.polyfit(np.log(SPREAD_SIZES), np.log(deviations), 1)[0]
    note = "exponent, 200 seeds a point, N = 2^7 to 2^16; theory -1/2"
    yield Line("spread of q with N", float(slope), "", None, note=note)
    if out is not None:
        series = {"standard deviation of q, t = 1": deviations}
        figure = _log_log(SPREAD_SIZES, series, -0.5, f"slope {slope:.3f}")
        figure.savefig(out / "simulation-spread.png")


def _picture(out: Path) -> Line:
    """Draw theory and runs from N = 128 to 2^20; return the largest z-score of the largest N."""
    from selftrain.plots.ensemble import plot_ensemble
    from selftrain.theory.solve import solve

    sizes = {128: 64, 1024: 32, 8192: 16, 2**20: 3}
    runs = [simulate(REFERENCE, RECIPE, n, seeds, probes=0) for n, seeds in sizes.items()]
    theory = solve(REFERENCE, RECIPE)
    plot_ensemble(runs, theory).savefig(out / "simulation-theory.png")
    shift = np.abs(runs[-1].mean("q") / theory.q - 1).max()
    return Line(
        "theory and N = 2^20", float(shift), "", None, note="largest relative gap of q, 3 seeds"
    )


def _fresh_process(features: int, steps: int) -> dict[str, float]:
    """Return processor seconds and peak memory of one seed in a new process, after compilation."""
    code = (
        "import json, re, time\n"
        "from selftrain import simulate\n"
        "from benchmarks.speed.reference import PROBLEM, RECIPE\n"
        f"problem = PROBLEM.replace(steps={steps})\n"
        "simulate(problem.replace(steps=1), RECIPE, 64, 1, probes=0)\n"
        "begin = time.process_time()\n"
        f"simulate(problem, RECIPE, {features}, 1, probes=0)\n"
        "used = time.process_time() - begin\n"
        "status = open('/proc/self/status').read()\n"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', status).group(1))\n"
        "print(json.dumps({'seconds': used, 'gigabytes': peak * 1024 / 1e9}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return dict(json.loads(done.stdout))


def _log_log(
    sizes: tuple[int, ...], series: dict[str, list[float]], slope: float, title: str
) -> Figure:
    from matplotlib.figure import Figure

    from selftrain.plots.style import BLUE, GREY, ORANGE, styled

    with styled():
        figure = Figure(figsize=(5.2, 3.6), dpi=150, layout="constrained")
        ax = figure.subplots()
        for color, (label, values) in zip((BLUE, ORANGE), series.items(), strict=False):
            ax.loglog(sizes, values, color=color, marker="o", label=label)
        first = next(iter(series.values()))
        guide = first[-1] * (np.array(sizes) / sizes[-1]) ** slope
        ax.loglog(sizes, guide, color=GREY, linestyle="dashed", label=f"slope {slope:g}")
        ax.set_xlabel("features N")
        ax.set_title(title)
        ax.legend()
    return figure
