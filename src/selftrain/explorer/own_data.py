"""A visitor's own table: the text of `plan`, and the theory of its clusters compared with runs on
its rows.

The table arrives as the text of a CSV file. It is written to a temporary file, which is read by the
same functions as on the command line and then deleted; nothing is stored.
"""

from __future__ import annotations

import base64
import binascii
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidInput, SelfTrainError
from ..mixture.clusters import Clusters
from ..tables import Table, standardised
from . import charts
from .answers import theme_of
from .cluster_texts import write_shape
from .drawing import Theme
from .page_state import PageState

LARGEST_FILE = 5 * 2**20
"""Largest size of a visitor's table in bytes; its base64 encoding is a third longer."""

MOST_COLUMNS = 2000
"""Largest number of columns of a table: memory and time grow with its square."""

COMMAND_LINE = "`selftrain plan` on the command line takes more"

LEADING = 60
"""Number of leading directions that the theory uses: enough for its curve, and fast enough for a
page.
"""

FEWEST = 80
"""Smallest number of labelled rows with which runs on real rows are shown: with fewer, none can be
held out."""

SEEDS, MOST_STEPS = 6, 6

Send = Callable[[dict[str, Any]], object]


def own_data(data: dict[str, Any], send: Send) -> None:
    """Send progress, `answer` (the text of `plan`) and `own` (a figure), in this order."""
    state, theme = PageState.from_store(data["state"]), theme_of(data["state"])
    with _file(data) as (path, target):
        send({"progress": "reading the rows and planning"})
        send({"answer": _planned(path, target)})
        send({"progress": "solving the theory of these clusters, training on real rows"})
        send(_curve(path, target, state, theme))


def own_shape(data: dict[str, Any], send: Send) -> None:
    """Set the controls to the clusters and the class proportion of the visitor's rows."""
    state = PageState.from_store(data["state"])
    with _file(data) as (path, target):
        send({"progress": "reading the rows"})
        table = _labelled(path, target)
    clusters = _shape_of(table)
    values = {"shape": write_shape(clusters), "rho": round(table.rho, 4), "delta_u": None}
    values["classes"] = None
    kept = f", {clusters.kept:.0%} of their separation" if clusters.kept < 0.995 else ""
    said = (
        f"the clusters are those of {len(table.y)} rows along {clusters.features} "
        f"directions{kept}; one covariance, columns of variance 1, positive: {table.positive}"
    )
    send({"texts": state.with_values(values).texts, "progress": said})


@contextmanager
def _file(data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the path of the visitor's table as a temporary file, and the name of its target."""
    text, target = _decoded(data.get("contents")), data.get("target")
    name = _file_name(data.get("filename"))
    if not isinstance(target, str) or not target.strip():
        raise InvalidInput("target", target, "must be the name of the column with the classes")
    _check_columns(text, name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(text)
        try:
            yield path, target.strip()
        except InvalidInput as error:
            raise _without_folder(error, folder) from None


def _decoded(contents: Any) -> bytes:
    """Return the bytes of an upload, which the browser sends as a data URL."""
    accepted = "must be a CSV file with a line of names"
    if not isinstance(contents, str) or "," not in contents:
        raise InvalidInput("file", None, accepted)
    try:
        text = base64.b64decode(contents.split(",", 1)[1], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("file", "damaged", accepted) from None
    if len(text) > LARGEST_FILE:
        most = f"must have at most {LARGEST_FILE / 2**20:g} MB here, {COMMAND_LINE}"
        raise InvalidInput("file", f"{len(text) / 2**20:.1f} MB", most)
    return text


def _file_name(sent: Any) -> str:
    """Return the name of the visitor's file, made safe for a temporary file; messages show it."""
    name = sent.replace("\\", "/").rsplit("/", 1)[-1] if isinstance(sent, str) else ""
    name = "".join(letter for letter in name if letter.isprintable())[-60:].strip()
    return name if name.strip(".") else "rows.csv"


def _check_columns(text: bytes, name: str) -> None:
    """Reject a table so wide that its covariances would fill the memory."""
    columns = text.split(b"\n", 1)[0].count(b",") + 1
    if columns > MOST_COLUMNS:
        accepted = f"must have at most {MOST_COLUMNS} columns here, {COMMAND_LINE}"
        raise InvalidInput("file", f"{name}, {columns} columns", accepted)


def _without_folder(error: InvalidInput, folder: str) -> InvalidInput:
    """Return the same error with the name of the file instead of its temporary path."""

    def short(text: Any) -> Any:
        return str(text).replace(folder + os.sep, "") if isinstance(text, (str, Path)) else text

    return InvalidInput(error.field, short(error.value), short(error.accepted))


def _planned(path: Path, target: str) -> list[str]:
    """Return the lines of the text of `plan`."""
    from ..estimator.planning.plan import plan_file

    try:
        return str(plan_file(path, target, progress=False)).splitlines()
    except InvalidInput as error:
        return [f"There is no plan for this table: {_without_folder(error, str(path.parent))}"]


def _curve(path: Path, target: str, state: PageState, theme: Theme) -> dict[str, Any]:
    """Return a figure of the theory's error for the page's recipe and of runs on real rows."""
    from .. import Problem, simulate, solve

    table = _labelled(path, target)
    y = table.y
    if len(y) < FEWEST:
        sentence = f"Only {len(y)} rows have a class: a real curve needs {FEWEST} or more."
        return {"progress": sentence}
    clusters = _shape_of(table)
    steps = min(max(state.problem.steps, 1), MOST_STEPS)
    labels = max(20, len(y) // 5)
    batch = (len(y) - labels - len(y) // 5) // steps
    recipe = state.recipe
    n = clusters.features
    problem = Problem(labels / n, batch / n, table.rho, clusters=clusters, steps=steps)
    run = solve(problem, recipe.replace(**_constant(recipe)))
    real = simulate(problem, run.recipe, rows=(table.X, table.y), seeds=SEEDS, progress=False)
    return {
        "own": charts.own_rows(theme, run, np.asarray(real.error)),
        "progress": f"{labels} labels and {steps} batches of {batch} of your rows, {SEEDS} draws: "
        f"theory {run.error[-1]:.4f}, real {np.nanmean(real.error[:, -1]):.4f} at the last step.",
    }


def _constant(recipe: Any) -> dict[str, Any]:
    """Return the first entries of schedules, because a table may have fewer steps than the page."""
    names = ("lambda_u", "threshold", "sharpness", "annealing")
    values = {name: getattr(recipe, name) for name in names}
    return {name: value[0] for name, value in values.items() if isinstance(value, tuple)}


def _shape_of(table: Table) -> Clusters:
    """Return the clusters estimated from the rows, along their leading directions."""
    directions = min(table.X.shape[1], LEADING)
    return Clusters.from_data(table.X, table.y, directions=directions)


def _labelled(path: Path, target: str) -> Table:
    """Return the labelled rows, with columns scaled to variance 1; raise unless there are two
    classes.
    """
    import pandas as pd

    from ..estimator.planning.csv_rows import read_csv_rows

    rows = read_csv_rows(path, target, progress=False)
    known = np.array([name is not None and name == name for name in rows.y])
    X = rows.X[known].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    y = rows.y[known].astype(str)
    if not np.isfinite(X).all():
        raise SelfTrainError("All columns must be finite numbers, none missing.")
    if len(set(y)) != 2:
        raise SelfTrainError(f"Two classes are needed; this table has {len(set(y))}.")
    names = tuple(f"column {i}" for i in range(X.shape[1]))
    return standardised(Table(X, y, names))
