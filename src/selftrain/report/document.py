"""The same for the documentation: a Markdown page with the claims table and the pictures of a full run.

    python -m selftrain.report.document FOLDER DOCS

reads the records that `selftrain paper run` left in FOLDER and writes DOCS/paper.md and its images.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidInput

HEAD = """# The paper, figure by figure

`selftrain paper run` regenerates every figure of T. Takahashi, *The Role of Pseudo-labels in Self-training Linear
Classifiers on High-dimensional Gaussian Mixture Data*, from scratch, and judges what each one claims by the numbers. This page was written from such a run.

```text
selftrain paper list                       # ids, what each is in the paper, cost, state
selftrain paper run                        # all, in full, into out/paper
selftrain paper run cosine selection       # some
selftrain paper run --quick                # coarser grids and fewer seeds, into out/quick
```

For each figure there are a PNG, a PDF, the data as netCDF with symbols and units, and a JSON record with the claims, parameters, seeds and
versions. Computed points are kept under `points/`: a run that was stopped goes on where it was and ends with the same files; a point that was
damaged on disk is noticed and computed anew; a change of a parameter, or of the code that a point depends on, recomputes that point and no other. The
paper's captions are followed where they fix a parameter; what was chosen stands under the figure. A criterion in brackets says how a claim was judged.
"""


def markdown(records: Iterable[Mapping[str, Any]], images: str = "images/paper-") -> str:
    """The page; pictures are linked as `<images><id>.png`."""
    told = list(records)
    table = ["| figure | claim | verdict |", "|---|---|---|"]
    for record in told:
        table += [
            f"| [{record['figure']}](#{record['figure']}) | {_cell(claim['says'])} | {claim['verdict']} |"
            for claim in record["claims"]
        ]
    count = sum(len(record["claims"]) for record in told)
    held = sum(claim["verdict"] == "holds" for record in told for claim in record["claims"])
    parts = [HEAD, f"\n## Claims\n\n{held} of {count} hold.\n", "\n".join(table), ""]
    for record in told:
        found = "\n".join(
            f"- **{claim['verdict']}**: {claim['says']} {claim['found']}"
            for claim in record["claims"]
        )
        name = record["figure"]
        parts.append(
            f"## {name}\n\n{record['title']} ({record['place']}).\n\n"
            f"![{record['title']}]({images}{name}.png)\n\n{record['caption']}\n\n{found}\n"
        )
    return "\n".join(parts)


def write(folder: Path, docs: Path) -> Path:
    """Write DOCS/paper.md and its images from the records in a folder."""
    from ..paper.registry import IDS
    from ..paper.run import read_record

    records = [read_record(folder, name) for name in IDS]
    there = [record for record in records if record is not None and not record["quick"]]
    missing = set(IDS) - {record["figure"] for record in there}
    if missing:
        raise InvalidInput(
            "folder", str(folder), f"no record of a full run of: {', '.join(sorted(missing))}"
        )
    for record in there:
        name = record["figure"]
        shutil.copyfile(folder / f"{name}.png", docs / "images" / f"paper-{name}.png")
    target = docs / "paper.md"
    target.write_text(markdown(there), encoding="utf-8")
    return target


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m selftrain.report.document FOLDER DOCS")
    print(write(Path(sys.argv[1]), Path(sys.argv[2])))
