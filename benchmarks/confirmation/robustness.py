"""Thousands of random problems, each checked by an engine that shares no code with the package.

`make robustness` runs it. A problem is solved to the end, collapses, or is refused by type. Of
every solved run step 0 and some of the others are put to `independent`: how far is each from the
root of its equations, and does the accuracy that the run reports cover that? Problem number i
depends on the seed and on i alone, and every result is written as it comes, so an interrupted run
continues where it stopped. A sample of the collapses is then repeated at finite size.
"""

from __future__ import annotations

import csv
import json
import math
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from selftrain import Problem, Recipe, Trajectory, losses, simulate, solve
from selftrain.errors import StageError
from selftrain.losses import Loss

from ..options import parser
from . import extended, independent
from .user_losses import Huber, Steep

COLUMNS = (
    "index", "outcome", "step", "steps", "accuracy", "evaluations", "nodes", "seconds", "starts",
    "checked", "check", "distance", "said", "at", "message", "problem", "recipe",
)  # fmt: skip
CONFIRMED = 1e-8
MOST_ERRORS = 1e-3
CHECKED_STEPS = 2
"""Steps of a run that are checked besides step 0."""

PATIENCE = 2.0
"""Seconds of processor time that extended precision may take for a step; else it is undecided."""

MARKS = ("<!-- counts of make robustness -->", "<!-- end of counts -->")
"""Where a page of the docs has the counts."""

COVERED = 10.0
"""A reported accuracy covers a distance up to this many times larger: it is the size of a Newton
step, not a bound.
"""


def draw(seed: int, index: int) -> tuple[Problem, Recipe]:
    """Problem and recipe number `index`; scale parameters are uniform in the logarithm."""
    rng = np.random.default_rng([seed, index])

    def scale(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    def half() -> bool:
        return bool(rng.random() < 0.5)

    loss, pseudo_loss = draw_losses(rng)
    own = not all(isinstance(name, str) for name in (loss, pseudo_loss or loss))
    shifted = rng.random() < 0.25
    problem = Problem(
        alpha_l=scale(0.05, 50),
        alpha_u=scale(0.05, 50),
        rho=scale(0.001, 0.5),
        delta=scale(0.05, 20),
        steps=int(rng.integers(1, 3 if own else 13)),
        loss=loss,
        pseudo_loss=pseudo_loss,
        rho_u=scale(0.001, 0.5) if shifted else None,
        delta_u=scale(0.05, 20) if shifted else None,
    )
    soft = 1.0 if half() else scale(0.5, 100)
    recipe = Recipe(
        lambda_l=scale(1e-8, 1e3),
        lambda_u=scale(1e-8, 1e3),
        threshold=rng.uniform(0, 2) if half() else 0.0,
        sharpness=math.inf if rng.random() < 0.2 else soft,
        annealing=rng.uniform(0, 1) if half() else 0.0,
        fix_bias=half(),
    )
    return problem, recipe


def draw_losses(rng: np.random.Generator) -> tuple[str | Loss, str | Loss | None]:
    """The losses of the labelled step and of the others; one in 50 problems has losses of the
    user's own.
    """
    kind = rng.random()
    if kind < 0.66:
        return "logistic", None
    if kind < 0.84:
        return "squared", None
    if kind < 0.98:
        pair = ("logistic", "squared")
        return pair if rng.random() < 0.5 else (pair[1], pair[0])
    if kind < 0.99:
        return losses.register(Steep(float(f"{10 ** rng.uniform(-2, 3):.3g}"))), None
    huber: Any = Huber(float(f"{10 ** rng.uniform(-1, 1):.3g}"))  # its kinks are a method
    return losses.register(huber), None


def _as_independent(loss: Loss) -> independent.Loss:
    if isinstance(loss, Steep):
        return independent.Loss(independent.LOGISTIC, loss.k)
    if isinstance(loss, Huber):
        return independent.Loss(independent.HUBER, 1.0, loss.width)
    kinds = {"logistic": independent.LOGISTIC, "squared": independent.SQUARED}
    return independent.Loss(kinds[loss.name])


def equations(run: Trajectory, t: int) -> tuple[independent.Step, Any]:
    """Step t of a run as the other engine has it, and the solution in its unknowns."""
    problem, recipe, chi = run.problem, run.recipe, run.chi[t]
    loss, eta = _as_independent(problem.loss_at(t)), run.m_hat[t] * chi
    log_r = 0.5 * math.log(run.chi_hat[t]) + math.log(chi)
    if t == 0:
        given = problem.alpha_l, problem.rho, problem.delta, recipe.lambda_l, 0.0, 1.0
        step = independent.Step(
            loss,
            True,
            0.0,
            0.0,
            1.0,
            0.0,
            *given,
            hard=True,
            fixed_bias=False,
            bias=0.0,
            anchor=0.0,
            bias_anchor=0.0,
        )
        return step, np.array([0.0, eta, run.bias[0], log_r, math.log(chi)])
    values, i = recipe.at_steps(problem.steps), t - 1
    omega, bias = math.hypot(run.m[i], math.sqrt(run.v[i])), float(run.bias[i])
    gamma, a = float(values.sharpness[i]), float(run.overlap[t]) / omega
    hard, keep, keep_bias = math.isinf(gamma), 0.0, 0.0
    if hard:
        gamma = 1.0
    else:
        keep = gamma if abs(a - gamma * omega) < 0.5 * gamma * omega else 0.0
        keep_bias = gamma if abs(run.bias[t] - gamma * bias) <= 0.5 * gamma * abs(bias) else 0.0
    alpha, rho, delta = (float(column[i]) for column in problem.unlabeled)
    step = independent.Step(
        loss, False, omega, run.m[i] / omega, run.v[i] / omega**2, bias, alpha, rho, delta,
        float(values.lambda_u[i]), float(values.threshold[i]), gamma, hard, recipe.fix_bias,
        (1.0 - keep_bias) * bias, keep, keep_bias,
    )  # fmt: skip
    z = [a - keep * omega, eta, run.bias[t] - keep_bias * bias, log_r, math.log(chi)]
    return step, np.array(z)


def check(run: Trajectory, rng: np.random.Generator) -> dict[str, Any]:
    """Put some steps of a run to the other engine: the worst of them, and whether its accuracy says
    so.
    """
    later = np.arange(1, run.good_steps)
    some = rng.choice(later, min(CHECKED_STEPS, later.size), replace=False)
    found: dict[str, Any] = {"checked": 0, "check": "none", "distance": 0.0, "said": 0.0, "at": -1}
    words = ["none", "confirmed", "covered", "undecided", "wrong"]
    for t in [0, *sorted(some.tolist())][: run.good_steps]:
        said = float(run.stats.accuracy[t])
        verdict, found_word = judged(*equations(run, t), said)
        found["checked"] += 1
        worse = words.index(found_word) - words.index(found["check"])
        if worse > 0 or (worse == 0 and verdict.distance > found["distance"]):
            found |= {"check": found_word, "distance": verdict.distance, "said": said, "at": t}
    return found


def judged(step: independent.Step, z: Any, said: float) -> tuple[independent.Verdict, str]:
    """The distance of a solved step and a word for it; what the other engine does not confirm goes
    to the equations in extended precision.
    """
    verdict = independent.correction(step, z)
    if word(verdict, said) != "confirmed" and step.loss.kind != independent.HUBER:
        try:
            with limited(PATIENCE):
                verdict = extended.correction(step, z)
        except TimeoutError:
            return verdict, "undecided"
    return verdict, word(verdict, said)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Work in here raises `TimeoutError` after so many seconds of processor time."""

    def over(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def word(verdict: independent.Verdict, said: float) -> str:
    """What a distance says of a step whose reported accuracy is `said`."""
    if not verdict.settled or not math.isfinite(verdict.distance):
        return "undecided"
    if verdict.distance <= CONFIRMED:
        return "confirmed"
    return "covered" if verdict.distance <= COVERED * said else "wrong"


def _warm_up() -> None:
    """Load or compile the kernels (milliseconds once done), so that no problem is charged for
    it.
    """
    for recipe in (Recipe(), Recipe(threshold=0.5), Recipe(sharpness=math.inf)):
        solve(Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=2), recipe)


def attempt(seed: int, index: int) -> dict[str, Any]:
    """One row of the table."""
    problem, recipe = draw(seed, index)
    row: dict[str, Any] = {
        "index": index,
        "steps": problem.steps,
        "problem": problem.to_json(),
        "recipe": recipe.to_json(),
    }
    _warm_up()
    begin = time.perf_counter()
    try:
        run = solve(problem, recipe)
    except StageError as error:
        row |= {"outcome": type(error).__name__, "step": error.step, "message": str(error)}
    except Exception as error:  # anything else is a defect: it is counted, not hidden
        row |= {"outcome": f"defect: {type(error).__name__}", "message": str(error)}
    else:
        summary = run.stats.summary()
        row |= {
            "outcome": "solved" if run.collapsed_at is None else "collapsed",
            "step": run.collapsed_at,
            "accuracy": float(np.nanmax(run.stats.accuracy)),
            "evaluations": summary["evaluations"],
            "nodes": summary["nodes_max"],
            "starts": json.dumps(summary["starts"]),
        }
        row["seconds"] = round(time.perf_counter() - begin, 5)
        row |= check(run, np.random.default_rng([seed, index, 1]))
        return row
    row["seconds"] = round(time.perf_counter() - begin, 5)
    return row


def collect(count: int, seed: int, workers: int, path: Path) -> pd.DataFrame:
    """Solve what the file does not have yet, appending to it."""
    _warm_up()
    path.parent.mkdir(parents=True, exist_ok=True)
    done = set(pd.read_csv(path)["index"]) if path.exists() else set()
    todo = [index for index in range(count) if index not in done]
    todo.sort(key=lambda index: isinstance(draw(seed, index)[0].loss, str), reverse=True)
    columns = (
        TextColumn("random problems"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with path.open("a", newline="") as file, Progress(*columns) as progress:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        bar = progress.add_task("", total=count, completed=count - len(todo))
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=8)
        for row in parallel(delayed(attempt)(seed, index) for index in todo):
            writer.writerow(row)
            file.flush()
            progress.advance(bar)
    rows = pd.read_csv(path)
    return rows[rows["index"] < count].sort_values("index")


def report(rows: pd.DataFrame, console: Console) -> bool:
    """Print the counts; whether every problem was confirmed or refused, and few were refused."""
    counts = Counter(rows["outcome"])
    ended = rows[rows["outcome"].isin(["solved", "collapsed"])]
    refused = len(rows) - len(ended)
    unconfirmed = ended[~(ended["accuracy"] <= CONFIRMED)]
    starts: Counter[str] = Counter()
    for entry in ended["starts"]:
        starts.update(json.loads(entry))
    table = Table(title=f"{len(rows)} random problems", show_header=False)
    for outcome, number in counts.most_common():
        table.add_row(outcome, str(number))
    for word, number in Counter(ended["check"]).most_common():
        table.add_row(f"by the other engine: {word}", str(number))
    table.add_row("steps put to the other engine", str(int(ended["checked"].sum())))
    agreed = ended[ended["check"] == "confirmed"]
    table.add_row("  largest distance confirmed", f"{agreed['distance'].max():.2g}")
    wrong = ended[ended["check"] == "wrong"]
    table.add_row("worst confirmed accuracy", f"{ended['accuracy'].max():.2g}")
    table.add_row(f"not confirmed to {CONFIRMED:g}", str(len(unconfirmed)))
    table.add_row("steps solved", f"{sum(starts.values())}")
    for name, number in starts.most_common():
        table.add_row(f"  from {name}", str(number))
    table.add_row(
        "evaluations per step", f"{ended['evaluations'].sum() / sum(starts.values()):.2f}"
    )
    levels = [0.5, 0.9, 0.99, 1.0]
    for level, seconds in zip(levels, np.quantile(rows["seconds"], levels), strict=True):
        table.add_row(f"seconds, quantile {level:g}", f"{seconds:.3g}")
    console.print(table)
    for _, row in rows.drop(ended.index).iterrows():
        console.print(f"{row['index']}: {row['outcome']}: {row['message']}", style="red")
        console.print(f"    {row['problem']}\n    {row['recipe']}", highlight=False)
    for _, row in ended[ended["check"].isin(["wrong", "undecided", "covered"])].iterrows():
        words = (
            f"{row['check']}: step {row['at']} is {row['distance']:.2g} off, said {row['said']:.2g}"
        )
        console.print(f"{row['index']}: {words}", style="red")
        console.print(f"    {row['problem']}\n    {row['recipe']}", highlight=False)
    defects = sum(number for name, number in counts.items() if name.startswith("defect"))
    few = refused <= MOST_ERRORS * len(rows)
    return len(unconfirmed) == 0 and len(wrong) == 0 and defects == 0 and few


def counted(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """The counts as the docs have them."""
    ended = rows[rows["outcome"].isin(["solved", "collapsed"])]
    outcomes, checks = Counter(rows["outcome"]), Counter(ended["check"])
    confirmed = ended[ended["check"] == "confirmed"]["distance"]
    table = [("problems", f"{len(rows):,}")]
    table += [(f"outcome: {name}", f"{count:,}") for name, count in outcomes.most_common()]
    table += [
        (f"runs with steps put to the other equations: {name}", f"{count:,}")
        for name, count in checks.most_common()
    ]
    return [
        *table,
        ("steps put to the other equations", f"{int(ended['checked'].sum()):,}"),
        ("largest distance in the confirmed runs", f"{confirmed.max():.1e}"),
        ("of them above 1e-10", f"{int((confirmed > 1e-10).sum()):,}"),
        ("worst accuracy that the solver reports", f"{ended['accuracy'].max():.1e}"),
    ]


def write_counts(rows: pd.DataFrame, page: Path) -> None:
    """Put the counts between the two marks of a page."""
    before, rest = page.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    lines = ["| what | count |", "|---|---|", *(f"| {a} | {b} |" for a, b in counted(rows))]
    table = "\n".join(["", "", *lines, "", ""])
    page.write_text(before + MARKS[0] + table + MARKS[1] + after)


def confirm_collapses(rows: pd.DataFrame, count: int, features: int, console: Console) -> bool:
    """Repeat some collapses at finite size: do the seeds end with one class, and when?"""
    table = Table(title=f"collapses, simulated with {features} features")
    for name in ("problem", "theory: step", "error", "simulated: step, error of each seed"):
        table.add_column(name)
    every = True
    for index, problem, recipe in _small_collapses(rows, count):
        run = solve(problem, recipe)
        seeds = [simulated_end(problem, recipe, features, seed) for seed in range(4)]
        every &= all(one_class for _, one_class in seeds)
        words = "; ".join(text for text, _ in seeds)
        table.add_row(str(index), str(run.collapsed_at), f"{run.error[-1]:.4f}", words)
    console.print(table)
    return every


def simulated_end(problem: Problem, recipe: Recipe, features: int, seed: int) -> tuple[str, bool]:
    """How one seed ends, in words, and whether with one class."""
    try:
        ensemble = simulate(problem, recipe, features, [seed], probes=0, progress=False)
    except StageError as error:
        # soft labels are never all equal: the weights vanish against the bias instead
        vanished = error.state["norm"] < 1e-9 * abs(error.state["bias"])
        return f"{error.step} (no weights)", vanished
    last, rho, at = ensemble.error[0, -1], problem.test_mixture.rho, ensemble.collapsed_at[0]
    one_class = min(abs(last - rho), abs(last - (1 - rho))) < 0.01
    return f"{at if at >= 0 else 'soft'}, {last:.4f}", bool(one_class)


def _small_collapses(rows: pd.DataFrame, count: int) -> Iterator[tuple[int, Problem, Recipe]]:
    """The first `count` collapses that are cheap to simulate, cut two steps after the collapse."""
    collapsed = rows[(rows["outcome"] == "collapsed") & rows["step"].between(2, 20)]
    for _, row in collapsed.iterrows():
        problem, recipe = Problem.from_json(row["problem"]), Recipe.from_json(row["recipe"])
        if count and max(problem.alpha_l, *problem.unlabeled.alpha) <= 10:
            count -= 1
            yield (
                row["index"],
                problem.replace(steps=min(problem.steps, int(row["step"]) + 2)),
                recipe,
            )


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--count", type=int, default=5000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--collapses", type=int, default=8, help="how many to simulate")
    options.add_argument("--features", type=int, default=1500)
    options.add_argument("--out", type=Path, default=Path("out/robustness.csv"))
    options.add_argument("--docs", type=Path, help="page whose table of counts is written anew")
    asked = options.parse_args(arguments)
    console = Console()
    rows = collect(asked.count, asked.seed, asked.workers, asked.out)
    if asked.docs:
        write_counts(rows, asked.docs)
    good = report(rows, console)
    if asked.collapses:
        good &= confirm_collapses(rows, asked.collapses, asked.features, console)
    return 0 if good else 1
