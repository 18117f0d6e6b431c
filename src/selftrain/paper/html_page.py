"""A self-contained HTML page: inlined figures, captions, claims in three colours, next commands.

`write_page` writes the page of a folder of figures.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..runtime.files import write_text
from .formulas import to_html
from .registry import IDS
from .ruling import FAILS, HOLDS, OPEN
from .run import read_record
from .verdicts import Record, claims_of, count, findings_of, judged, key_of, verdict

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 3rem; }
.lead p { font-size: 1.15rem; margin: 0.6rem 0; }
img { max-width: 100%; height: auto; } picture img { max-width: min(100%, 46rem); }
table { border-collapse: collapse; font-size: 0.9rem; width: 100%; }
td, th { border-bottom: 1px solid #ddd; padding: 0.35rem 0.6rem; text-align: left; vertical-align: top; }
.wide { overflow-x: auto; } .numbers td + td, .numbers th + th { text-align: right; white-space: nowrap; }
.holds { color: #00664a; } .fails { color: #a33c00; } .open { color: #6a6a6a; }
.mark { font-weight: 600; } .counts span { margin-right: 1.2rem; font-weight: 600; }
ul.claims { list-style: none; padding: 0; } ul.claims li { border-left: 0.35rem solid; padding: 0.1rem 0 0.1rem 0.8rem; margin: 0.7rem 0; }
ul.claims li > div { color: #222; }
.case { color: #666; } q { font-style: italic; }
.place { color: #666; font-size: 0.9rem; } pre { background: #f5f5f5; padding: 0.8rem; overflow-x: auto; }
.note { background: #fff4d6; padding: 0.5rem 0.8rem; } summary { cursor: pointer; color: #00507d; margin: 0.6rem 0; }
@media (max-width: 44rem) {
  body { margin: 1rem auto; } h1 { font-size: 1.4rem; } .lead p { font-size: 1.05rem; }
  pre { white-space: pre-wrap; }
  .picture.large { overflow-x: auto; } .large img { max-width: none; width: 42rem; }
  .large::before { content: "swipe for the rest \\2192"; position: sticky; left: 0; display: block; color: #666; font-size: 0.9rem; }
  table:not(.numbers), table:not(.numbers) tbody, table:not(.numbers) tr, table:not(.numbers) td { display: block; }
  table:not(.numbers) th { display: none; } table:not(.numbers) td { border: none; padding: 0.15rem 0; }
  table:not(.numbers) tr { border-bottom: 1px solid #ddd; padding: 0.5rem 0; }
}
"""

NEXT = """selftrain paper list                   figures, and what each costs
selftrain paper run                    everything in full: half an hour on two cores
selftrain paper run fig4               one figure, by its number or its id
selftrain paper run fig4 --set rho=0.3 the same with another parameter
selftrain solve --help                 a run of your own"""

ABOUT_QUICK = (
    "<p>Quick versions have coarser grids and fewer seeds. Where they cannot judge a claim, the"
    " verdict is that of the last full run, with its date. Captions belong to the full versions,"
    " which have more panels, curves and steps.</p>"
)

RENEW = 5
"""Seconds after which an unfinished page reloads."""


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, a picture, and text as HTML.

    Attributes:
        narrow: another version of the picture for phones; by default the picture scrolls there.
    """

    id: str
    title: str
    picture: Path | None
    body: str
    narrow: Path | None = None


def write_page(folder: Path, quick: bool, made: Iterable[str]) -> None:
    """Write the page of all figures of full or of quick runs in a folder.

    Arguments:
        made: ids of figures with changed parameters, which are not in `IDS`.
    """
    names = dict.fromkeys([*IDS, *made])
    found = [read_record(folder, name) for name in names if (folder / f"{name}.png").is_file()]
    records = [judged(one) for one in found if one is not None and one["quick"] == quick]
    sections = [figure_section(one, folder) for one in records]
    if any(one["claims"] or one["findings"] for one in records):
        sections.append(claims_list(records))
    title = "The paper, figure by figure" + (": quick versions" if quick else "")
    write_text(folder / "index.html", page(title, ABOUT_QUICK if quick else "", sections))


def figure_section(record: Record, folder: Path) -> Section:
    """Return the section of a figure, from its record and its picture."""
    files = ", ".join(
        f'<a href="{html.escape(name)}">{html.escape(name)}</a>' for name in record.get("files", ())
    )
    body = (
        f'<p class="place">{to_html(record["place"])}</p><p>{to_html(record["caption"])}</p>'
        f"<p><b>Parameters of the paper:</b> {to_html(record['from_paper'])} "
        f"<b>Chosen here:</b> {to_html(record['chosen'])}</p>"
    )
    if record["claims"] or record["findings"]:
        kinds = {"Claims of the paper": "claims", "Findings of our own": "findings"}
        summary = " ".join(
            f"{words}: {count(record[kind])}." for words, kind in kinds.items() if record[kind]
        )
        tables = _table(record, "claims") + _table(record, "findings")
        body += f"<details><summary>{summary}</summary>{tables}</details>"
    if files:
        body += f'<p class="place">Picture, PDF, data: {files}</p>'
    return Section(record["figure"], record["title"], folder / f"{record['figure']}.png", body)


def _table(record: Record, kind: str) -> str:
    """Return the table of claims or of findings; empty if there are none."""
    claims = kind == "claims"
    rows = ""
    for one in record[kind]:
        said = f"<q>{to_html(one['quote'])}</q>{_case(one)}" if claims else html.escape(one["says"])
        tested = f"<td>{html.escape(one['test'])}</td>" if claims else ""
        found = "".join(f"<td>{html.escape(one[name])}</td>" for name in ("found", "flips"))
        rows += f"<tr><td>{said}</td>{tested}{_verdict(one, record)}{found}</tr>"
    titles = ("the paper says", "tested") if claims else ("we find",)
    titles = (*titles, "verdict", "found", "at twice or half the bar")
    head = "".join(f"<th>{title}</th>" for title in titles)
    return f"<table><tr>{head}</tr>{rows}</table>" if rows else ""


def claims_list(records: Iterable[Record]) -> Section:
    """Return a section with every claim once, coloured by its verdict; failed claims first, open
    ones last.
    """
    known = list(records)
    claims, findings = claims_of(known), findings_of(known)
    counts = count(claims)
    marks = "".join(
        f'<span class="{kind}">{words}</span>'
        for kind, words in zip(("holds", "fails", "open"), counts.words, strict=True)
    )
    body = (
        f'<p class="counts">Of {counts.total} claims of the paper {marks}</p>'
        f"<p>Of {len(findings)} findings of our own {count(findings)}: under the figures.</p>"
    )
    homes = {key_of(claim): record for record in reversed(known) for claim in record["claims"]}
    for kind, verdict_word in (("fails", FAILS), ("holds", HOLDS), ("open", OPEN)):
        entries = "".join(
            f'<li class="{kind}"><div><q>{to_html(claim["quote"])}</q>{_case(claim)} <span'
            f' class="mark {kind}">{verdict(claim, homes[key_of(claim)])}</span>. {html.escape(claim["found"])} <a'
            f' href="#{homes[key_of(claim)]["figure"]}">{homes[key_of(claim)]["figure"]}</a></div></li>'
            for claim in claims
            if claim["verdict"] == verdict_word
        )
        if entries and kind == "open":
            entries = (
                f"<details><summary>{counts.open} that the numbers do not decide</summary><ul"
                f" class=claims>{entries}</ul></details>"
            )
        elif entries:
            entries = f'<ul class="claims">{entries}</ul>'
        body += entries
    return Section("claims", "What the paper claims", None, body)


def _case(claim: Mapping[str, Any]) -> str:
    return f' <span class="case">({html.escape(claim["case"])})</span>' if claim["case"] else ""


def _verdict(entry: Mapping[str, Any], record: Record) -> str:
    kind = {HOLDS: "holds", FAILS: "fails", OPEN: "open"}[entry["verdict"]]
    return f'<td class="{kind}">{html.escape(verdict(entry, record))}</td>'


def page(
    title: str, lead: str, sections: Iterable[Section], note: str = "", commands: str = NEXT
) -> str:
    """Return the whole page.

    Arguments:
        lead: text under the title, as HTML.
        note: progress of an unfinished page, which reloads until it is finished.
        commands: commands to run next, as text.
    """
    body = "".join(f"{_heading(part)}{_picture(part)}{part.body}" for part in sections)
    renew = f'<meta http-equiv="refresh" content="{RENEW}">' if note else ""
    state = f'<p class="note">{html.escape(note)}; this page reloads.</p>' if note else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{renew}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1>{state}{lead}{body}"
        f'<h2 id="next">Next</h2><pre>{html.escape(commands)}</pre></body></html>\n'
    )


def _heading(part: Section) -> str:
    return f'<h2 id="{part.id}">{html.escape(part.title)}</h2>' if part.title else ""


def _picture(part: Section) -> str:
    if part.picture is None:
        return ""
    alt = html.escape(part.title or part.id)
    image = f'<img alt="{alt}" src="{_inline(part.picture)}">'
    if part.narrow is None:
        return f'<p class="picture large">{image}</p>'
    source = f'<source media="(max-width: 44rem)" srcset="{_inline(part.narrow)}">'
    return f'<p class="picture"><picture>{source}{image}</picture></p>'


def _inline(file: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}"
