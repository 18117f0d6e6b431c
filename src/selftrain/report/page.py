"""One HTML page that needs nothing else: figures inlined, captions, the table of claims, how to go on."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..paper.figure import FAILS, HOLDS, OPEN
from ..symbols import to_html
from .counts import claims_of, count, findings_of, verdict

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 3rem; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 0.9rem; width: 100%; }
td, th { border-bottom: 1px solid #ddd; padding: 0.35rem 0.6rem; text-align: left; vertical-align: top; }
.holds { color: #00664a; } .fails { color: #a33c00; } .open { color: #6a6a6a; }
.case { color: #666; } q { font-style: italic; }
.place { color: #666; font-size: 0.9rem; } pre { background: #f5f5f5; padding: 0.8rem; overflow-x: auto; }
nav a { margin-right: 0.8rem; white-space: nowrap; }
"""

GO_ON = """selftrain paper list                   what there is, what it costs
selftrain paper run                    everything in full: half an hour on two cores
selftrain paper run cosine --out DIR   one figure
selftrain solve --help                 a run of your own"""


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, a picture, and what stands around it, as HTML."""

    id: str
    title: str
    picture: Path | None
    body: str


def figure_section(record: Mapping[str, Any], folder: Path) -> Section:
    """A figure by its record and its picture."""
    body = (
        f'<p class="place">{to_html(record["place"])}</p><p>{to_html(record["caption"])}</p>'
        f"<p><b>Parameters of the paper:</b> {to_html(record['from_paper'])} "
        f"<b>Chosen here:</b> {to_html(record['chosen'])}</p>"
    )
    if record["claims"]:
        body += claims_table(record)
    if record["findings"]:
        body += findings_table(record)
    return Section(record["figure"], record["title"], folder / f"{record['figure']}.png", body)


def claims_table(record: Mapping[str, Any]) -> str:
    """The sentences of the paper, what was tested, verdicts and what was found."""
    rows = "".join(
        f"<tr><td><q>{to_html(claim['quote'])}</q>{_case(claim)}</td><td>{html.escape(claim['test'])}</td>"
        f"{_verdict(claim, record)}<td>{html.escape(claim['found'])}</td></tr>"
        for claim in record["claims"]
    )
    return f"<table><tr><th>the paper says</th><th>tested</th><th>verdict</th><th>found</th></tr>{rows}</table>"


def findings_table(record: Mapping[str, Any]) -> str:
    """Our own statements."""
    rows = "".join(
        f"<tr><td>{html.escape(finding['says'])}</td>{_verdict(finding, record)}"
        f"<td>{html.escape(finding['found'])}</td></tr>"
        for finding in record["findings"]
    )
    return f"<table><tr><th>we find</th><th>verdict</th><th>found</th></tr>{rows}</table>"


def summary(records: Iterable[Mapping[str, Any]]) -> Section:
    """How many claims hold, do not hold, and are open, figure by figure, and those that do not hold."""
    known = list(records)
    rows, failing = "", ""
    for record in known:
        told = count(record["claims"])
        ours = count(record["findings"])
        rows += (
            f'<tr><td><a href="#{record["figure"]}">{record["figure"]}</a></td>'
            f"<td>{html.escape(record['title'])}</td>"
            + "".join(f"<td>{number}</td>" for number in (*told, *ours))
            + "</tr>"
        )
        failing += "".join(
            f"<li><b>{record['figure']}</b>: <q>{to_html(claim['quote'])}</q>{_case(claim)} "
            f'<span class="fails">{FAILS}</span>. {html.escape(claim["found"])}</li>'
            for claim in record["claims"]
            if claim["verdict"] == FAILS
        )
    body = (
        f"<p>Of {count(claims_of(known)).total} claims of the paper <b>{count(claims_of(known))}</b>"
        f"{_why_open(known)}. Of {count(findings_of(known)).total} findings of our own {count(findings_of(known))}.</p>"
        "<table><tr><th>figure</th><th></th><th colspan=3>claims: hold, do not, cannot tell</th>"
        f"<th colspan=3>findings: hold, do not, cannot tell</th></tr>{rows}</table>"
    )
    if failing:
        body += f"<p>What the paper says and the numbers do not bear out:</p><ul>{failing}</ul>"
    return Section("claims", "What the figures claim", None, body)


def _why_open(records: Sequence[Mapping[str, Any]]) -> str:
    quick = any(record["quick"] for record in records)
    return " (these need the full run: <code>selftrain paper run</code>)" if quick else ""


def _case(claim: Mapping[str, Any]) -> str:
    return f' <span class="case">({html.escape(claim["case"])})</span>' if claim["case"] else ""


def _verdict(entry: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    kind = {HOLDS: "holds", FAILS: "fails", OPEN: "open"}[entry["verdict"]]
    return f'<td class="{kind}">{html.escape(verdict(entry, record))}</td>'


def page(title: str, introduction: str, sections: Iterable[Section]) -> str:
    """The whole page; `introduction` is HTML."""
    parts = list(sections)
    links = "".join(f'<a href="#{part.id}">{html.escape(part.title)}</a> ' for part in parts)
    body = "".join(
        f'<h2 id="{part.id}">{html.escape(part.title)}</h2>{_picture(part)}{part.body}'
        for part in parts
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1>{introduction}<nav>{links}</nav>{body}"
        f'<h2 id="go-on">How to go on</h2><pre>{html.escape(GO_ON)}</pre></body></html>\n'
    )


def _picture(part: Section) -> str:
    if part.picture is None:
        return ""
    content = base64.b64encode(part.picture.read_bytes()).decode()
    return f'<p><img alt="{html.escape(part.title)}" src="data:image/png;base64,{content}"></p>'
