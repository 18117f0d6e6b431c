r"""Gradients of random runs compared with finite differences, and a third method where they differ.

For each random run, one quantity is differentiated with respect to ten or more entries of its
problem and recipe: by `gradient`, and by extrapolated central differences of `solve`. The error
estimate ("noise") of a difference is the last change of the extrapolation plus the accuracy of the
two runs over their distance. If the two derivatives do not agree, the equations of `extended`
decide, which share no code with the package: there the derivative is carried forward from step to
step, each step differentiated at its solution by complex steps in extended precision, without any
subtraction.

Rows are written as they come; the same command resumes.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from selftrain import Problem, Recipe, Trajectory, gradient, solve
from selftrain.errors import NoGradient, StageError

from ..options import parser
from . import extended, independent, judging, random_problems
from .extended_noise import REAL, gaussian

QUANTITIES = ("error", "one_minus_cosine", "q", "bias_to_norm", "chi")
SCALARS = ("lambda_l", "alpha_l", "annealing")
PER_STEP = ("lambda_u", "sharpness", "threshold", "alpha_u", "rho_u", "delta_u")
TOLERANCE = 1e-12
WIDTH = 2e-3
"""Largest distance of the two runs of a difference, relative to the entry; the extrapolation also
uses a half and a quarter of it."""

CLOSE = 1e-6
"""Two derivatives agree if their relative difference is below this, or within the noise."""

LOST = 1e-12
"""A derivative is lost in rounding if it is smaller than this, relative to the quantity divided by
the entry.
"""

AGREE = "agree"
NOISE = "differences too noisy; the third route agrees"
FAULT = "differences further off than their noise; the third route agrees"
WRONG = "gradient is wrong"
UNDECIDED = "undecided"

FIELDS = [
    name for name in independent.Step._fields if name not in ("loss", "first", "hard", "fixed_bias")
]
"""The numeric fields of a step."""

COLUMNS = ("index", "of", "entry", "step", "adjoint", "difference", "noise", "third", "outcome")


@dataclass(frozen=True)
class Entry:
    """The variable of a derivative: a field of problem or recipe, and the step (0 for a field that
    is one number).
    """

    name: str
    step: int

    def value(self, problem: Problem, recipe: Recipe) -> float:
        """Return the present value."""
        entry = getattr(_owner(self.name, problem, recipe), self.name)
        return float(entry[self.step - 1] if isinstance(entry, tuple) else entry)

    def moved(self, problem: Problem, recipe: Recipe, by: float) -> tuple[Problem, Recipe]:
        """Return problem and recipe with this entry moved."""
        owner = _owner(self.name, problem, recipe)
        entry = getattr(owner, self.name)
        if isinstance(entry, tuple):
            new: Any = tuple(x + by * (t == self.step) for t, x in enumerate(entry, 1))
        else:
            new = entry + by
        changed = owner.replace(**{self.name: new})
        return (problem, changed) if isinstance(changed, Recipe) else (changed, recipe)


def _owner(name: str, problem: Problem, recipe: Recipe) -> Any:
    return recipe if hasattr(recipe, name) else problem


def draw(seed: int, index: int) -> tuple[Problem, Recipe, str]:
    """Return a random problem and recipe with explicit values for every step, and the quantity.

    The ranges are those of `robustness`; losses are built-in ones, and there are at most six steps.
    """
    problem, recipe = random_problems.draw(seed, index)
    rng = np.random.default_rng([seed, index, 2])
    steps = min(problem.steps, 6)
    known = isinstance(problem.loss, str) and isinstance(problem.pseudo_loss, str | None)
    problem = problem.replace(
        steps=steps,
        loss=problem.loss if known else "logistic",
        pseudo_loss=problem.pseudo_loss if known else None,
        alpha_u=(problem.alpha_u,) * steps,
        rho_u=(problem.rho if problem.rho_u is None else problem.rho_u,) * steps,
        delta_u=(problem.delta if problem.delta_u is None else problem.delta_u,) * steps,
        test="labeled",
    )
    recipe = recipe.replace(
        lambda_u=(recipe.lambda_u,) * steps,
        threshold=(recipe.threshold,) * steps,
        sharpness=(recipe.sharpness,) * steps,
    )
    return problem, recipe, str(rng.choice(QUANTITIES))


def entries(problem: Problem, recipe: Recipe, rng: np.random.Generator) -> list[Entry]:
    """Return the entries of a run that are compared: each field once, at a random step."""
    hard = math.isinf(recipe.at_steps(problem.steps).sharpness[0])
    names = [*SCALARS, *PER_STEP]
    chosen = []
    for name in names:
        entry = Entry(name, 0 if name in SCALARS else int(rng.integers(1, problem.steps + 1)))
        labels = name in ("sharpness", "annealing")
        if (hard and labels) or entry.value(problem, recipe) == 0.0:
            continue
        chosen.append(entry)
    return chosen


def difference(
    problem: Problem, recipe: Recipe, of: str, entry: Entry, last: int
) -> tuple[float, float]:
    """Return the derivative by central differences, extrapolated twice, and its error estimate."""
    width = WIDTH * abs(entry.value(problem, recipe))
    slopes, noise = [], 0.0
    for part in (1.0, 0.5, 0.25):
        values = []
        for side in (1.0, -1.0):
            run = solve(*entry.moved(problem, recipe, side * part * width), tolerance=TOLERANCE)
            values.append(float(getattr(run, of)[last]))
            noise = max(noise, float(run.accuracy[last]) * _size(run, of, last) / (part * width))
        slopes.append((values[0] - values[1]) / (2.0 * part * width))
    once = [(4.0 * slopes[i + 1] - slopes[i]) / 3.0 for i in (0, 1)]
    twice = (16.0 * once[1] - once[0]) / 15.0
    return twice, abs(twice - once[1]) + noise


def _size(run: Trajectory, of: str, t: int) -> float:
    """Return the error of a quantity per unit of relative error in the state."""
    if of == "one_minus_cosine":
        return 2.0 * math.sqrt(float(run.v[t] / run.q[t]))
    if of == "bias_to_norm":
        return 1.0 + abs(float(run.bias_to_norm[t]))
    if of == "error":
        return 1.0
    return 2.0 * abs(float(getattr(run, of)[t]))


def third(run: Trajectory, of: str, entry: Entry, last: int) -> float:
    """Return the derivative, carried forward through the steps by the equations of `extended`."""
    move = np.zeros(4, dtype=REAL)  # of the state (m, v, B) and of chi
    for t in range(last + 1):
        move = _through(run, t, entry, move)
    return float(_outcome(run, of, last) @ move)


@cache
def _solved(run: Trajectory, t: int) -> tuple[independent.Step, Any, extended.Solved]:
    """Return step t in extended precision, its equations and their derivatives; cached for all
    entries.
    """
    step, z = judging.equations(run, t)
    step = extended.extended(step)
    return step, z.astype(REAL), extended.at(step, z)


def _through(run: Trajectory, t: int, entry: Entry, old: Any) -> Any:
    """Return the derivatives of (m, v, B, chi) of step t, from those of step t-1."""
    step, z, solved = _solved(run, t)
    fields = _moves(run, t, entry, step, old)
    rates = {name: rate for name, rate in fields.items() if rate}
    if not rates:
        return np.zeros(4, dtype=REAL)
    moved = extended.along(step, z, solved.panels, rates)
    dz = extended.newton(step, z, solved, -moved)
    a = step.anchor * step.omega + z[0]
    da = dz[0] + fields["anchor"] * step.omega + step.anchor * fields["omega"]
    bias = dz[2] + fields["bias_anchor"] * step.old_bias + step.bias_anchor * fields["old_bias"]
    mu, nu2, eta, deta = step.mu, step.nu2, z[1], dz[1]
    off, doff = a - mu * eta, da - fields["mu"] * eta - mu * deta
    r2, chi = np.exp(2 * z[3]), np.exp(z[4])
    m = fields["mu"] * a + mu * da + fields["nu2"] * eta + nu2 * deta
    v = fields["nu2"] * off * off + 2.0 * nu2 * off * doff + 2.0 * r2 * dz[3]
    return np.array([m, v, bias, chi * dz[4]])


def _moves(
    run: Trajectory, t: int, entry: Entry, step: independent.Step, old: Any
) -> dict[str, Any]:
    """Return the derivatives of the inputs of step t with respect to the entry, both direct and
    through the previous step (`old`).
    """
    moves: dict[str, Any] = dict.fromkeys(FIELDS, REAL(0))
    here = entry.step in (0, t)
    if t == 0:
        for name, field in (("lambda_l", "ridge"), ("alpha_l", "alpha")):
            moves[field] = float(entry.name == name)
        return moves
    m, v = REAL(run.m[t - 1]), REAL(run.v[t - 1])
    q = m * m + v
    moves["omega"] = (m * old[0] + 0.5 * old[1]) / np.sqrt(q)
    moves["mu"] = (v * old[0] - 0.5 * m * old[1]) / (q * np.sqrt(q))
    moves["nu2"] = (m * m * old[1] - 2.0 * m * v * old[0]) / q**2
    moves["old_bias"] = old[2]
    moving = 0.0 if step.bias_anchor else 1.0
    moves["bias"] = moving * old[2] if run.recipe.fix_bias else 0.0
    names = {"lambda_u": "ridge", "threshold": "threshold", "alpha_u": "alpha"}
    names |= {"rho_u": "rho", "delta_u": "delta"}
    if here and entry.name in names:
        moves[names[entry.name]] = 1.0
    sharpness = float(run.recipe.sharpness[t - 1])  # type: ignore[index]
    if entry.name == "annealing":
        moves["sharpness"] = sharpness * t
    elif here and entry.name == "sharpness":
        moves["sharpness"] = 1.0 + float(run.recipe.annealing) * t  # type: ignore[arg-type]
    moves["anchor"] = moves["sharpness"] if step.anchor else 0.0
    moves["bias_anchor"] = moves["sharpness"] if step.bias_anchor else 0.0
    if run.recipe.fix_bias and step.bias_anchor:
        # the unknown is B - gamma B', so a fixed bias B = B' depends on the sharpness gamma
        moves["bias"] = (1.0 - step.bias_anchor) * old[2] - moves["sharpness"] * step.old_bias
    return moves


def _outcome(run: Trajectory, of: str, t: int) -> Any:
    """Return the derivatives of a quantity with respect to (m, v, B, chi), from its definition."""
    m, v, bias = REAL(run.m[t]), REAL(run.v[t]), REAL(run.bias[t])
    q = m * m + v
    if of == "q":
        return np.array([2.0 * m, 1.0, 0.0, 0.0])
    if of == "chi":
        return np.array([0.0, 0.0, 0.0, 1.0])
    if of == "one_minus_cosine":
        return np.array([-v, 0.5 * m, 0.0, 0.0]) / (q * np.sqrt(q))
    if of == "bias_to_norm":
        return np.array([-bias * m / q, -0.5 * bias / q, 1.0, 0.0]) / np.sqrt(q)
    rho, delta = run.problem.test_mixture
    row = np.zeros(4, dtype=REAL)
    for sign, share in ((1.0, rho), (-1.0, 1.0 - rho)):
        k = (m + sign * bias) / np.sqrt(delta * q)
        density = share * gaussian(k)
        by_state = np.array([1.0 - (m + sign * bias) * m / q, -0.5 * (m + sign * bias) / q, sign])
        row[:3] -= density * by_state / np.sqrt(delta * q)
    return row


def study(seed: int, index: int) -> list[dict[str, Any]]:
    """Return the rows of one run; none if it has no gradient."""
    problem, recipe, of = draw(seed, index)
    rng = np.random.default_rng([seed, index, 3])
    try:
        run = solve(problem, recipe, tolerance=TOLERANCE)
        last = run.good_steps - 1
        slope = gradient(run, of, last)
    except (StageError, NoGradient):
        return []
    rows = []
    for entry in entries(problem, recipe, rng):
        adjoint = float(np.atleast_1d(slope[entry.name])[max(entry.step - 1, 0)])
        row = {"index": index, "of": of, "entry": entry.name, "step": entry.step}
        rows.append(row | {"adjoint": adjoint, **judged(run, of, entry, last, adjoint)})
    return rows


def judged(run: Trajectory, of: str, entry: Entry, last: int, adjoint: float) -> dict[str, Any]:
    """Compare a derivative (`adjoint`) with differences, and with the third method if they
    disagree.
    """
    try:
        other, noise = difference(run.problem, run.recipe, of, entry, last)
    except StageError:
        other, noise = math.nan, math.nan
    floor = LOST * _size(run, of, last) / abs(entry.value(run.problem, run.recipe))
    if abs(adjoint - other) <= max(CLOSE * abs(adjoint), floor):
        return {"difference": other, "noise": noise, "outcome": AGREE}
    settled = third(run, of, entry, last)
    outcome = UNDECIDED
    if abs(adjoint - settled) <= max(CLOSE * abs(adjoint), floor):
        outcome = NOISE if abs(adjoint - other) <= noise else FAULT
    elif abs(other - settled) <= max(CLOSE * abs(other), noise):
        outcome = WRONG
    return {"difference": other, "noise": noise, "third": settled, "outcome": outcome}


def collect(seed: int, wanted: int, path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return all rows, including those in the file, and the number of problems drawn for them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    done = [int(row["index"]) for row in rows]
    runs, index = len(set(done)), max(done, default=-1) + 1
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not rows:
            writer.writeheader()
        while runs < wanted:
            found = study(seed, index)
            _solved.cache_clear()
            index, runs = index + 1, runs + bool(found)
            writer.writerows(found)
            file.flush()
            rows += found
    return rows, index


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--runs", type=int, default=226)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("out/gradient-study.csv"))
    asked = options.parse_args(arguments)
    rows, drawn = collect(asked.seed, asked.runs, asked.out)
    counts = Counter(row["outcome"] for row in rows)
    for row in rows:
        if row["outcome"] in (FAULT, WRONG, UNDECIDED):
            print(row)
    print(f"{asked.runs} runs of {drawn} drawn, {len(rows)} entries: {dict(counts)}")
    return int(counts[UNDECIDED] + counts[WRONG] > 0)
