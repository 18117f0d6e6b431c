"""The pages of the papers in the documentation, from a full run.

    python -m pages.paper_pages FOLDER DOCS [QUICK]

reads the records that `selftrain paper run` left in FOLDER and writes a page for each paper that has
some (DOCS/paper.md, DOCS/distillation.md), its images, and the verdicts that quick runs show
(`selftrain/paper/verdicts.json`). With QUICK, the folder of a quick run, it compares the verdicts of both, and raises
if they contradict each other.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from selftrain.errors import InvalidInput
from selftrain.paper.papers import PAPERS, Paper, paper
from selftrain.paper.run import read_record
from selftrain.paper.verdicts import (
    VERDICTS,
    claims_of,
    contradictions,
    count,
    findings_of,
    flipping,
    key_of,
    verdict,
)
from selftrain.runtime.files import write_text

HEAD = """# The paper, figure by figure

`selftrain paper run` reproduces every figure of T. Takahashi, *The Role of Pseudo-labels in
Self-training Linear Classifiers on High-dimensional Gaussian Mixture Data*, and judges its claims by
the numbers. This page was written from such a run.

```text
selftrain paper list                       # ids, place in the paper, cost, state
selftrain paper run                        # all, in full, into out/paper
selftrain paper run cosine fig5            # some, by id or by number
selftrain paper run cosine --set rho=0.3,alpha_l=0.2     # other parameters
selftrain paper run --quick                # coarser grids and fewer seeds, into out/quick
```

Each figure has a PNG, a PDF, its data as netCDF with symbols and units, and a JSON record with the
claims, parameters, seeds and versions. Computed points are stored in `points.db`: an interrupted run
resumes and ends with the same files; a damaged point is noticed and recomputed; a change of a
parameter, or of the code that a point depends on, recomputes that point and no other. A figure with
other parameters has its own files, and its claims are not judged. In Python:
`selftrain.paper.figure("cosine", rho=0.3).plot(quick=True)`. Under each figure stands which
parameters the paper fixes and which were chosen here.

A claim is a sentence of the paper, quoted, with what was tested and what was found; if one sentence
is tested in several cases, each case is a claim. A finding is a statement of our own. A verdict is
"holds", "does not hold" or "cannot tell". Where the quick version cannot judge, it shows the verdict
of the last full run with its date.

A verdict compares measured numbers, with their uncertainties, with bars. The bars are ours: a
sentence like “almost compatible” has none. So each verdict was repeated with each of its bars
doubled and halved, the others unchanged. The last column has the result: “no” if nothing changes,
“no bar” if a sign or an order decides. The record of a figure has the reason for each bar.
"""

OWN_HEAD = """# {title}

`selftrain paper run {id}` computes the figures of this page and judges what we say about them.
Findings, verdicts and bars are explained on [the page of the first paper](paper.md).
"""

OTHER_HEAD = """# {title}

`selftrain paper run {id}` computes the figures of this page and judges sentences of {authors},
*{title}* ([arXiv {arxiv}](https://arxiv.org/abs/{arxiv})), by the numbers. Claims, findings, verdicts
and bars are explained on [the page of the first paper](paper.md).
"""

FIRST = "self-training"
"""The paper whose page explains claims, findings, verdicts and bars."""

PREDICTIONS = "predictions"
"""The figure whose claims are the numbered predictions, which have their own table."""

OTHER_BARS = "another verdict at twice or half the bar?"


def markdown(
    records: Iterable[Mapping[str, Any]], paper: Paper | None = None, images: str = "images/paper-"
) -> str:
    """Return the page of a paper, the first one by default; pictures are linked as
    `<images><id>.png`.
    """
    known = list(records)
    claims, findings = claims_of(known), findings_of(known)
    parts = [
        _head(paper),
        *_claims_head(claims),
        *_predictions([record for record in known if record["figure"] == PREDICTIONS]),
        *(
            [f"| figure | the paper says | verdict | {OTHER_BARS} |\n|---|---|---|---|"]
            if claims
            else []
        ),
    ]
    shown: set[tuple[str, str, str]] = set()
    for record in known:
        for claim in record["claims"] if record["figure"] != PREDICTIONS else ():
            key = key_of(claim)
            if key not in shown:
                name = record["figure"]
                parts.append(
                    f"| [{name}](#{name}) | {_cell(_quoted(claim))} | {verdict(claim, record)} |"
                    f" {claim['flips']} |"
                )
                shown.add(key)
    parts += [
        "\n## Findings of our own",
        f"Of {len(findings)} statements {count(findings)}. {_flipping(findings)}\n",
        f"| figure | we find | verdict | {OTHER_BARS} |\n|---|---|---|---|",
        *(
            f"| [{record['figure']}](#{record['figure']}) | {_cell(finding['says'])} |"
            f" {verdict(finding, record)} | {finding['flips']} |"
            for record in known
            for finding in record["findings"]
        ),
        "",
    ]
    return "\n".join(parts) + "\n" + "\n".join(_figure(record, images) for record in known)


def _head(paper: Paper | None) -> str:
    if paper is None or paper.id == FIRST:
        return HEAD
    return (OTHER_HEAD if paper.arxiv else OWN_HEAD).format(**paper._asdict())


def _claims_head(claims: list[Mapping[str, Any]]) -> list[str]:
    """Return the heading of the claims and the counts of their verdicts; empty if there are none."""
    said = f"Of {len(claims)} claims {count(claims)}. {_flipping(claims)}\n"
    return ["## Claims of the paper", said] if claims else []


def _flipping(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence on how many verdicts depend on a bar."""
    barred, flip = flipping(entries)
    return f"{barred} depend on a bar; {flip} of these would change at twice or half of one."


def _predictions(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the numbered predictions and related claims as a table."""
    lines = [
        f"| [{PREDICTIONS}](#{PREDICTIONS}) | status | test | number | {OTHER_BARS} |",
        "|---|---|---|---|---|",
        *(
            f"| {_cell(claim['case'])} | {verdict(claim, record)} | {_cell(claim['test'])} |"
            f" {_cell(claim['found'])} | {claim['flips']} |"
            for record in records
            for claim in record["claims"]
        ),
        "",
    ]
    return lines if len(lines) > 3 else []


def _figure(record: Mapping[str, Any], images: str) -> str:
    """Return a figure: picture, caption, parameters, claims, findings."""
    name = record["figure"]
    lines = [
        f"## {name}\n",
        f"{record['title']} ({record['place']}).\n",
        f"![{record['title']}]({images}{name}.png)\n",
        f"{record['caption']}\n",
        f"Parameters of the paper: {record['from_paper']} Chosen here: {record['chosen']}\n",
    ]
    for claim in record["claims"]:
        lines.append(
            f"- **{verdict(claim, record)}**: {_quoted(claim)}\n"
            f"  Tested: {claim['test']} Found: {claim['found']}"
            f" At twice or half the bar: {claim['flips']}."
        )
    if record["claims"]:
        lines.append("")
    if record["findings"]:
        lines.append("Findings:\n")
        lines += [
            f"- **{verdict(finding, record)}**: {finding['says']} {finding['found']}"
            f" At twice or half the bar: {finding['flips']}."
            for finding in record["findings"]
        ]
        lines.append("")
    return "\n".join(lines)


def _quoted(claim: Mapping[str, Any]) -> str:
    case = f" ({claim['case']})" if claim["case"] else ""
    return f"“{claim['quote']}”{case}"


def write(
    folder: Path, docs: Path, quick: Path | None = None, verdicts: Path = VERDICTS
) -> list[Path]:
    """Write the pages of all papers that have records in a folder, their images and the verdicts;
    verdicts of other papers stay unchanged.

    Returns:
        The files of the pages.
    """
    full = {name: _records(folder, name) for name in PAPERS}
    made = {name: records for name, records in full.items() if records}
    if not made:
        raise InvalidInput("folder", str(folder), "no record of a full run")
    brief: dict[str, list[Mapping[str, Any]]] = {}
    for name, records in made.items():
        missing = set(paper(name).figures) - {record["figure"] for record in records}
        if missing:
            accepted = f"no record of a full run of: {', '.join(sorted(missing))}"
            raise InvalidInput("folder", str(folder), accepted)
        brief[name] = [] if quick is None else _records(quick, name, True)
        found = contradictions(brief[name], records)
        if found:
            raise InvalidInput("quick", str(quick), f"contradicts the full run: {'; '.join(found)}")
    for record in (record for records in made.values() for record in records):
        name = record["figure"]
        shutil.copyfile(folder / f"{name}.png", docs / "images" / f"paper-{name}.png")
    known = json.loads(verdicts.read_text("utf-8")) if verdicts.exists() else {}
    before = {
        kind: {one["figure"]: one for one in known.get(kind, [])} for kind in ("full", "quick")
    }
    found_in: dict[str, list[Any]] = {"full": [], "quick": []}
    for name in PAPERS:
        if name in made:
            found_in["full"] += [
                _verdicts(one) | {"date": _date(folder, one)} for one in made[name]
            ]
            found_in["quick"] += [_verdicts(one) for one in brief[name]]
        else:
            for kind, entries in found_in.items():
                entries += [one for id, one in before[kind].items() if id in paper(name).figures]
    write_text(verdicts, json.dumps(found_in, indent=1) + "\n")
    return [
        write_text(docs / f"{paper(name).page}.md", markdown(records, paper(name)))
        for name, records in made.items()
    ]


def _records(folder: Path, name: str, quick: bool = False) -> list[Mapping[str, Any]]:
    """Return the records of a paper's figures in a folder, of full or of quick runs."""
    records = [read_record(folder, figure) for figure in paper(name).figures]
    return [record for record in records if record is not None and record["quick"] == quick]


def _date(folder: Path, record: Mapping[str, Any]) -> str:
    """Return the day on which a record was written."""
    written = (folder / f"{record['figure']}.json").stat().st_mtime
    return datetime.fromtimestamp(written, UTC).date().isoformat()


def _verdicts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdicts of a record, without numbers."""
    return {
        "figure": record["figure"],
        "claims": [
            {name: one[name] for name in ("quote", "case", "verdict", "flips")}
            for one in record["claims"]
        ],
        "findings": [
            {name: one[name] for name in ("says", "verdict", "flips")} for one in record["findings"]
        ],
    }


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python -m pages.paper_pages FOLDER DOCS [QUICK]")
    print(*write(*(Path(argument) for argument in sys.argv[1:])), sep="\n")
