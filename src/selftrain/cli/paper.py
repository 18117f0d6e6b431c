"""`selftrain paper`: the figures of the paper, listed, regenerated and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput
from .output import counted, print_json, print_table, remark, terminal

if TYPE_CHECKING:
    from ..paper.run import FigureOutcome

app = typer.Typer(help="Regenerate the figures of the paper.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Quick = Annotated[bool, typer.Option("--quick", help="Coarser grids, fewer seeds: two minutes.")]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of the figures; default: out/paper, out/quick with --quick.",
        show_default=False,
    ),
]


@app.command("list")
def list_figures(quick: Quick = False, out: Out = None, as_json: AsJson = False) -> None:
    """All figures: id, what it is in the paper, what it costs, whether it was made."""
    from ..paper.registry import figures

    folder = _folder(out, quick)
    rows = [_about(one, quick, folder) for one in figures()]
    if as_json:
        print_json({"figures": rows, "out": str(folder)})
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("id", "what it shows", "in the paper", "cost", "state"):
        table.add_column(name, no_wrap=name in ("id", "cost", "state"))
    for one in rows:
        table.add_row(
            one["id"], one["title"], one["place"], f"{one['seconds']:.0f} s", one["state"]
        )
    print_table(terminal(), table)
    remark(
        "Cost: seconds of one core, points that figures share counted with each. State: in"
        f" {folder}."
    )


@app.command("run")
def run_figures(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...",
            help="Ids, or numbers in the paper (fig4); all if none is given.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE,...",
            help=(
                "Other parameters: rho=0.3,alpha_l=0.2; several values where a figure has several:"
                " rho=0.3,0.1."
            ),
            show_default=False,
        ),
    ] = None,
    quick: Quick = False,
    out: Out = None,
    workers: Annotated[
        int, typer.Option(metavar="W", help="Processes at once; -1: all cores, 0: this one alone.")
    ] = -1,
    as_json: AsJson = False,
) -> None:
    """Compute, draw and judge figures; what was computed before is not computed again."""
    from ..paper.run import run

    folder = _folder(out, quick)
    if not -1 <= workers <= 1024:
        raise InvalidInput("workers", workers, "-1, or a whole number from 0 to 1024, is accepted")
    try:
        outcomes = run(
            figures or (),
            quick,
            folder,
            workers=workers,
            notice=remark,
            changes=_changes(changes or []),
        )
    except KeyboardInterrupt:
        remark("Interrupted: finished points are kept, and the same command goes on from there.")
        raise
    _write_page(folder, quick, [one.id for one in outcomes])
    if as_json:
        print_json({"figures": [_plain(one) for one in outcomes], "out": str(folder)})
    else:
        _show(outcomes, folder)
    if any(one.record is None for one in outcomes):
        raise typer.Exit(1)


def _changes(given: list[str]) -> dict[str, tuple[float, ...]]:
    """What --set says: names with their values.

    >>> _changes(["rho=0.3,0.1,alpha_l=0.2"])
    {'rho': (0.3, 0.1), 'alpha_l': (0.2,)}
    """
    found: dict[str, tuple[float, ...]] = {}
    name = ""
    for part in ",".join(given).split(",") if given else ():
        before, equals, value = part.rpartition("=")
        name = before.strip().replace("-", "_") if equals else name
        try:
            number = float(value)
        except ValueError:
            number = None
        if not name or number is None:
            raise InvalidInput("set", part, "NAME=VALUE is accepted, as in rho=0.3,alpha_l=0.2")
        found[name] = (*found.get(name, ()), number)
    return found


def _write_page(folder: Path, quick: bool, made: list[str]) -> None:
    """One HTML page of all figures of this kind that the folder has, and of those just made."""
    from ..paper.registry import IDS
    from ..paper.run import read_record
    from ..report.page import claims_list, figure_section, page
    from ..runtime.files import write_text

    names = dict.fromkeys([*IDS, *made])
    found = [read_record(folder, name) for name in names if (folder / f"{name}.png").is_file()]
    records = [one for one in found if one is not None and one["quick"] == quick]
    sections = [*(figure_section(one, folder) for one in records), claims_list(records)]
    title = "The paper, figure by figure" + (": quick versions" if quick else "")
    write_text(folder / "index.html", page(title, "", sections))


def _folder(out: Path | None, quick: bool) -> Path:
    return out or Path("out", "quick" if quick else "paper")


def _about(one: Any, quick: bool, folder: Path) -> dict[str, Any]:
    from ..paper.run import read_record
    from ..paper.variation import parameters
    from ..sweeps import Store

    store = Store(folder / "points.db")
    tasks = one.tasks(quick).values()
    points = sum(len(task.grid) for task in tasks)
    stored = sum(task.stored(store) for task in tasks)
    record = read_record(folder, one.id)
    state = "not made"
    if stored == points and record is not None and record["quick"] == quick:
        state = f"made, {_score(record)}"
    elif stored:
        state = f"{stored} of {points} points"
    return {
        "id": one.id,
        "title": one.title,
        "place": str(one.place),
        "parameters": {name: list(values) for name, values in parameters(one).items()},
        "seconds": round(sum(task.seconds for task in tasks), 1),
        "points": points,
        "stored": stored,
        "state": state,
    }


def _score(record: Any) -> str:
    from ..report.counts import count

    return f"claims: {count(record['claims'])}"


def _plain(one: FigureOutcome) -> dict[str, Any]:
    return {"id": one.id, "record": one.record, "failures": list(one.failures)}


def _show(outcomes: list[FigureOutcome], folder: Path) -> None:
    from rich import box
    from rich.table import Table

    from ..paper.variation import NOT_JUDGED
    from ..report.counts import claims_of, count, findings_of, verdict

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_lines=True)
    for name, width in (
        ("figure", 18),
        ("the paper says, or we find", 54),
        ("verdict", 13),
        ("found", None),
    ):
        table.add_column(name, width=width)
    for one in outcomes:
        if one.record is not None:
            for claim in one.record["claims"]:
                case = f" ({claim['case']})" if claim["case"] else ""
                quoted = f"“{claim['quote']}”{case}"
                table.add_row(one.id, quoted, verdict(claim, one.record), claim["found"])
            for finding in one.record["findings"]:
                judged = verdict(finding, one.record)
                table.add_row(one.id, f"(ours) {finding['says']}", judged, finding["found"])
        for failure in one.failures:
            table.add_row(one.id, "could not be computed", "", failure)
    if table.row_count:
        console = terminal()
        console.width = max(console.width, 140)
        print_table(console, table)
    made = [one.record for one in outcomes if one.record is not None]
    claims, findings = claims_of(made), findings_of(made)
    if claims or findings:
        remark(
            f"Of {counted(len(claims), 'claim')} of the paper {count(claims)}; of"
            f" {counted(len(findings), 'finding')} {count(findings)}."
        )
    elif made:
        remark(NOT_JUDGED)
    remark(
        f"{counted(len(made), 'figure')} with data and records in {folder}; page:"
        f" {folder}/index.html"
    )
