"""Thousands of random problems, each checked by an engine that shares no code with the package.

`make robustness` runs it. A problem is solved to the end, collapses, or raises a typed error. Step
0 and some other steps of every solved run are checked by `independent`: the distance of each from
the root of its equations, and whether the reported accuracy covers that distance. Problem i depends
on the seed and on i only, and every result is written as it comes, so the same command resumes. A
sample of the collapses is then simulated at finite size.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
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

from selftrain import Problem, Recipe, Trajectory, simulate, solve
from selftrain.errors import StageError

from .. import markdown
from ..options import parser
from .judging import CONFIRMED, WORDS, equations, judged
from .random_problems import draw

COLUMNS = (
    "index", "outcome", "step", "steps", "accuracy", "evaluations", "nodes", "seconds", "starts",
    "checked", "check", "distance", "said", "at", "message", "problem", "recipe",
)  # fmt: skip
MOST_ERRORS = 1e-3
"""Largest fraction of problems that may end in a typed error."""

CHECKED_STEPS = 2
"""Number of steps of a run that are checked besides step 0."""

MARKS = ("<!-- counts of make robustness -->", "<!-- end of counts -->")
"""Marks around the counts in a page of the docs."""


def check(run: Trajectory, rng: np.random.Generator) -> dict[str, Any]:
    """Check some steps of a run by `independent`; return the worst of them, and whether its
    reported accuracy covers the distance.
    """
    later = np.arange(1, run.good_steps)
    some = rng.choice(later, min(CHECKED_STEPS, later.size), replace=False)
    found: dict[str, Any] = {"checked": 0, "check": "none", "distance": 0.0, "said": 0.0, "at": -1}
    for t in [0, *sorted(some.tolist())][: run.good_steps]:
        said = float(run.stats.accuracy[t])
        verdict, found_word = judged(*equations(run, t), said)
        found["checked"] += 1
        worse = WORDS.index(found_word) - WORDS.index(found["check"])
        if worse > 0 or (worse == 0 and verdict.distance > found["distance"]):
            found |= {"check": found_word, "distance": verdict.distance, "said": said, "at": t}
    return found


def _warm_up() -> None:
    """Load or compile the kernels, so that this does not count in the time of a problem."""
    for recipe in (Recipe(), Recipe(threshold=0.5), Recipe(sharpness=math.inf)):
        solve(Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=2), recipe)


def attempt(seed: int, index: int) -> dict[str, Any]:
    """Solve and check one problem; return a row of the table."""
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
    """Solve the problems that are not in the file, and append them to it."""
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
    """Print the counts; return whether all solutions are confirmed and few problems raised."""
    counts = Counter(rows["outcome"])
    ended = rows[rows["outcome"].isin(["solved", "collapsed"])]
    raised = len(rows) - len(ended)
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
    few = raised <= MOST_ERRORS * len(rows)
    return len(unconfirmed) == 0 and len(wrong) == 0 and defects == 0 and few


def counted(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the counts as they appear in the docs."""
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
    counts = markdown.table(("what", "count"), counted(rows))
    page.write_text(markdown.between(page.read_text(), MARKS, counts))


def confirm_collapses(rows: pd.DataFrame, count: int, features: int, console: Console) -> bool:
    """Simulate some collapsed problems at finite size; return whether all end with one class."""
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
    """Return how one seed ends, in words, and whether it ends with one class."""
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
    """Yield the first `count` collapses that are cheap to simulate, truncated two steps after the
    collapse.
    """
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
    options.add_argument("--docs", type=Path, help="page whose table of counts is rewritten")
    asked = options.parse_args(arguments)
    console = Console()
    rows = collect(asked.count, asked.seed, asked.workers, asked.out)
    if asked.docs:
        write_counts(rows, asked.docs)
    good = report(rows, console)
    if asked.collapses:
        good &= confirm_collapses(rows, asked.collapses, asked.features, console)
    return 0 if good else 1
