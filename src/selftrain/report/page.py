"""One HTML page that needs nothing else: figures inlined, captions, the table of claims, how to go on."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..symbols import to_html

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 3rem; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 0.9rem; width: 100%; }
td, th { border-bottom: 1px solid #ddd; padding: 0.35rem 0.6rem; text-align: left; vertical-align: top; }
.holds { color: #00664a; white-space: nowrap; } .not { color: #a33c00; white-space: nowrap; }
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
    body = f'<p class="place">{to_html(record["place"])}</p><p>{to_html(record["caption"])}</p>'
    if record["claims"]:
        body += claims_table(record["claims"])
    return Section(record["figure"], record["title"], folder / f"{record['figure']}.png", body)


def claims_table(claims: Sequence[Mapping[str, Any]]) -> str:
    """Claims, verdicts and what was found."""
    rows = "".join(
        f'<tr><td>{html.escape(claim["says"])}</td><td class="{_kind(claim)}">'
        f"{html.escape(claim['verdict'])}</td><td>{html.escape(claim['found'])}</td></tr>"
        for claim in claims
    )
    return f"<table><tr><th>claim</th><th>verdict</th><th>found</th></tr>{rows}</table>"


def summary(records: Iterable[Mapping[str, Any]]) -> Section:
    """How many claims hold, figure by figure, and those that do not."""
    rows, open_claims = "", ""
    for record in records:
        verdicts = [claim["verdict"] for claim in record["claims"]]
        rows += (
            f'<tr><td><a href="#{record["figure"]}">{record["figure"]}</a></td>'
            f"<td>{html.escape(record['title'])}</td>"
            f"<td>{verdicts.count('holds')} of {len(verdicts)}</td></tr>"
        )
        open_claims += "".join(
            f"<li><b>{record['figure']}</b>: {html.escape(claim['says'])} "
            f'<span class="{_kind(claim)}">{claim["verdict"]}</span>. {html.escape(claim["found"])}</li>'
            for claim in record["claims"]
            if claim["verdict"] != "holds"
        )
    body = f"<table><tr><th>figure</th><th></th><th>claims that hold</th></tr>{rows}</table>"
    if open_claims:
        body += (
            f"<p>What did not come out as claimed, or cannot be told from runs this short or this few:</p>"
            f"<ul>{open_claims}</ul>"
        )
    return Section("claims", "What the figures claim", None, body)


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


def _kind(claim: Mapping[str, Any]) -> str:
    return "holds" if claim["verdict"] == "holds" else "not"
