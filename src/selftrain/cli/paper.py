"""`selftrain paper`: list the figures of the papers, reproduce them, check their claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput
from .options import AsJson, Workers, completes, option
from .output import counted, print_json, print_table, remark, terminal

if TYPE_CHECKING:
    from ..paper.run import FigureOutcome

app = typer.Typer(help="Reproduce the figures of the papers.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="Coarser grids, fewer seeds: two minutes.")]
Out = Annotated[
    Path | None, option("Folder of the figures; default: out/paper, out/quick with --quick.", "DIR")
]


def _ids() -> tuple[str, ...]:
    from ..paper.registry import IDS

    return tuple(IDS)


@app.command("list")
def list_figures(quick: Quick = False, out: Out = None, as_json: AsJson = False) -> None:
    """List all figures, paper by paper: id, place in the paper, time, state."""
    from ..paper.papers import PAPERS, paper
    from ..paper.registry import figures

    folder = _folder(out, quick)
    rows = [_about(one, quick, folder) for one in figures()]
    if as_json:
        print_json({"figures": rows, "out": str(folder)})
        return
    titles = ("id", "what it shows", "in the paper", "cost", "state")
    for name in PAPERS:
        about = paper(name)
        where = f", arXiv {about.arxiv}" if about.arxiv else ""
        remark(f"{name}: {about.authors}, {about.title}{where}")
        cells = (
            (one["id"], one["title"], one["place"], f"{one['seconds']:.0f} s", one["state"])
            for one in rows
            if one["paper"] == name
        )
        whole = dict.fromkeys(("id", "cost", "state"))
        print_table(terminal(), titles, cells, left=titles, widths=whole)
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
            help="Ids, numbers (fig4), or a paper (distillation); all if none is given.",
            show_default=False,
            autocompletion=completes(_ids),
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        option(
            "Other parameters: rho=0.3,alpha_l=0.2; several values where a figure has several:"
            " rho=0.3,0.1.",
            "NAME=VALUE,...",
            "--set",
        ),
    ] = None,
    quick: Quick = False,
    out: Out = None,
    workers: Workers = -1,
    as_json: AsJson = False,
) -> None:
    """Compute and draw figures, and check the claims of the paper; stored points are reused."""
    from ..paper.html_page import write_page
    from ..paper.run import run
    from ..runtime.parallel import whole_workers

    folder, varied = _folder(out, quick), _changes(changes or [])
    workers = whole_workers(workers)
    try:
        outcomes = run(figures or (), quick, folder, workers=workers, notice=remark, changes=varied)
    except KeyboardInterrupt:
        remark("Interrupted: finished points are stored; run the same command again to resume.")
        raise
    write_page(folder, quick, [one.id for one in outcomes])
    if as_json:
        made = [{**vars(one), "failures": list(one.failures)} for one in outcomes]
        print_json({"figures": made, "out": str(folder)})
    else:
        _show(outcomes, folder)
    if any(one.record is None for one in outcomes):
        raise typer.Exit(1)


def _changes(given: list[str]) -> dict[str, tuple[float, ...]]:
    """Read --set: names with their values.

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
            raise InvalidInput("set", part, "must be NAME=VALUE, as in rho=0.3,alpha_l=0.2")
        found[name] = (*found.get(name, ()), number)
    return found


def _folder(out: Path | None, quick: bool) -> Path:
    return out or Path("out", "quick" if quick else "paper")


def _about(one: Any, quick: bool, folder: Path) -> dict[str, Any]:
    from ..paper.run import read_record
    from ..paper.variation import parameters
    from ..paper.verdicts import count, judged
    from ..sweeps import Store

    store = Store(folder / "points.db")
    tasks = one.tasks(quick).values()
    points = sum(len(task.grid) for task in tasks)
    stored = sum(task.stored(store) for task in tasks)
    record = read_record(folder, one.id)
    state = "not made"
    if stored == points and record is not None and record["quick"] == quick:
        state = f"made, claims: {count(judged(record)['claims'])}"
    elif stored:
        state = f"{stored} of {points} points"
    return {
        "id": one.id,
        "paper": one.paper,
        "title": one.title,
        "place": str(one.place),
        "parameters": {name: list(values) for name, values in parameters(one).items()},
        "seconds": round(sum(task.seconds for task in tasks), 1),
        "points": points,
        "stored": stored,
        "state": state,
    }


def _show(outcomes: list[FigureOutcome], folder: Path) -> None:
    from ..paper.variation import NOT_JUDGED, not_changed
    from ..paper.verdicts import claims_of, count, findings_of, judged, verdict

    rows: list[tuple[str, ...]] = []
    for one in outcomes:
        if one.record is not None:
            record = judged(one.record)
            for claim in record["claims"]:
                case = f" ({claim['case']})" if claim["case"] else ""
                quoted = f"“{claim['quote']}”{case}"
                rows.append((one.id, quoted, verdict(claim, record), claim["found"]))
            for finding in record["findings"]:
                word = verdict(finding, record)
                rows.append((one.id, f"(ours) {finding['says']}", word, finding["found"]))
        rows += [(one.id, "could not be computed", "", failure) for failure in one.failures]
    if rows:
        titles = ("figure", "the paper says, or we find", "verdict", "found")
        console, widths = terminal(), dict(zip(titles, (18, 54, 13), strict=False))
        console.width = max(console.width, 140)
        print_table(console, titles, rows, left=titles, widths=widths, show_lines=True)
    made = [judged(one.record) for one in outcomes if one.record is not None]
    claims, findings = claims_of(made), findings_of(made)
    if claims or findings:
        remark(
            f"Of {counted(len(claims), 'claim')} of the paper {count(claims)}; of"
            f" {counted(len(findings), 'finding')} {count(findings)}."
        )
    elif made:
        remark(NOT_JUDGED)
    for record in made:
        if record["unchanged"]:
            remark(f"{record['figure']}: {not_changed(record['unchanged'])}")
    remark(
        f"{counted(len(made), 'figure')} with data and records in {folder}; page:"
        f" {folder}/index.html"
    )
