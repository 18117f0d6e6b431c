"""`selftrain sweep`: compute a grid of points into a store; report, export and draw it.

Exit codes of `run` and `status`: 0 if every point is computed, 1 if some failed or are missing; 130
if a run was interrupted (ctrl-C, or the signal by which batch systems end a job).
"""

from __future__ import annotations

import signal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput, nearest
from .options import AsJson, Workers, completes, option
from .output import check_output, counted, print_json, remark, save_figure, writing

if TYPE_CHECKING:
    from ..sweeps import Sweep
    from ..sweeps.api import SweepPlan

INCOMPLETE = 1
SUFFIXES = {"csv": "csv", "netcdf": "nc", "parquet": "parquet"}

app = typer.Typer(
    help="Compute grids of points, on this machine or a cluster.", no_args_is_help=True
)

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="File of the points.")]


@app.command("run")
def run(
    grid: Annotated[Path, typer.Argument(metavar="GRID.toml", help="What to compute.")],
    store: Annotated[
        Path | None,
        option("SQLite file for the points; default: runs/ and the name of the grid, .db.", "FILE"),
    ] = None,
    workers: Workers = -1,
    scheduler: Annotated[
        str | None, option("Compute on the Dask cluster of this scheduler.", "ADDRESS")
    ] = None,
    retry: Annotated[
        str | None, option("Recompute failed points.", "failed", values=("failed",))
    ] = None,
    time_limit: Annotated[float | None, option("Seconds a point may take.", "S")] = None,
    memory_limit: Annotated[float | None, option("Megabytes a point may take.", "MB")] = None,
    check: Annotated[
        bool, option("Check the file, count and estimate; compute a sample only.", "", "--check")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute the missing grid points; run again to resume."""
    from ..runtime.parallel import whole_workers
    from ..sweeps.api import checked_limits, run_plan
    from .cost import sample
    from .gridfile import read_grid

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if retry not in (None, "failed"):
        raise InvalidInput("retry", retry, 'must be "failed"')
    plan = read_grid(grid)
    file = store or Path("runs", f"{grid.stem}.db")
    limits = checked_limits(time_limit, None if memory_limit is None else int(memory_limit * 1e6))
    processes = whole_workers(workers)
    remark(_size(plan))
    cluster = None
    if scheduler is not None:  # connect before anything is computed
        from ..sweeps.dask_cluster import DaskExecutor

        cluster = DaskExecutor(scheduler)
    try:
        cost = sample(plan, file, limits=limits, notice=remark)
        remark(cost.sentence(processes if cluster is None else cluster.slots))
        if check:
            if as_json:
                print_json({"grid": str(grid), "store": str(file), **cost.to_dict()})
            return
        data, failures = run_plan(
            plan, file, workers=processes, scheduler=cluster, retry=retry is not None,
            limits=limits, notice=remark,
        )  # fmt: skip
    except KeyboardInterrupt:
        remark("Interrupted: finished points are stored; run the same command again to resume.")
        raise
    for failure in failures[:5]:
        remark(f"failed: {failure}")
    if len(failures) > 5:
        remark(f"... and {len(failures) - 5} more; `selftrain sweep status {file}` lists them")
    _report(file, data, as_json)


@app.command("status")
def status(store: StoreArgument, as_json: AsJson = False) -> None:
    """Show how many points of a grid are in a store, and why points failed."""
    from ..sweeps import load

    data = load(store)
    if not as_json and "reason" in data:
        for point in failed_points(data):
            remark(f"failed: {point['reason']} at {point['at']}")
    _report(store, data, as_json)


@app.command("export")
def export(
    store: StoreArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="csv, netcdf or parquet.",
            autocompletion=completes(lambda: SUFFIXES),
        ),
    ],
    out: Annotated[Path | None, option("Default: the name of the store.", "FILE")] = None,
) -> None:
    """Write the points of a store to one file: a row per point (csv, parquet), or labelled arrays
    (netcdf).
    """
    from ..runtime.files import replacing, write_netcdf
    from ..sweeps import load

    if to not in SUFFIXES:
        raise InvalidInput("to", to, f"unknown format; {nearest(to, SUFFIXES)}")
    if to == "parquet" and find_spec("pyarrow") is None:
        raise InvalidInput("to", to, 'it needs pyarrow: pip install ".[parquet]" in a clone')
    data = load(store)
    target = out or Path(f"{store.resolve().stem}.{SUFFIXES[to]}")
    check_output("out", target)
    with writing(target):
        if to == "netcdf":
            write_netcdf(data, target)
        else:
            with replacing(target) as part:
                getattr(as_table(data), f"to_{to}")(part, index=False)
    remark(f"{counted(int(data['status'].size), 'point')} in {target}")


@app.command("plot")
def plot(
    store: StoreArgument,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[QUANTITY]", help="Default: the first.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, option("png, pdf or svg; default: the name of the store.", "FILE")
    ] = None,
    title: Annotated[str | None, option("Above the picture.", "TEXT")] = None,
) -> None:
    """Draw the points of a store: lines over one axis, a map over two."""
    from ..sweeps import load

    target = out or Path(f"{store.resolve().stem}.png")
    check_output("out", target, ("png", "pdf", "svg"))
    save_figure(load(store).plot(name, title=title), target)
    remark(f"Figure: {target}")


def as_table(data: Sweep) -> Any:
    """Return one row per point: its axes, values and status."""
    from ..sweeps.dataset import STATUS

    table = data.to_dataframe().reset_index()
    table["status"] = [STATUS[int(value)] for value in table["status"]]
    if "reason" not in table:
        table["reason"] = ""
    return table


def failed_points(data: Sweep) -> list[dict[str, str]]:
    """Return the parameters of each failed point, and the reason."""
    table = as_table(data)
    axes = [str(name) for name in data["status"].coords]
    failed = table[table["status"] == "failed"].drop_duplicates(subset=axes)
    return [
        {"at": ", ".join(f"{name}={row[name]}" for name in axes), "reason": str(row["reason"])}
        for _, row in failed.iterrows()
    ]


def _size(plan: SweepPlan) -> str:
    axes = " x ".join(
        f"{name} ({size})" for name, size in zip(plan.grid.axes, plan.grid.shape, strict=True)
    )
    return f"{counted(len(plan.grid), 'point')} of {plan.task}: {axes}"


def _report(file: Path, data: Sweep, as_json: bool) -> None:
    """Print the numbers of points that are done, failed and missing; exit with 1 unless all are
    done.
    """
    from ..sweeps.dataset import STATUS

    states = data["status"].values
    counts = {name: int((states == state).sum()) for state, name in enumerate(STATUS)}
    if as_json:
        reasons = failed_points(data) if counts["failed"] else []
        result = {"store": str(file), "points": int(states.size), **counts, "failures": reasons}
        print_json(result)
    else:
        typer.echo(", ".join(f"{count} {name}" for name, count in counts.items()) + f": {file}")
    if counts["done"] < states.size:
        raise typer.Exit(INCOMPLETE)
