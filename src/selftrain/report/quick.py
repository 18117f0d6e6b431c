"""`python -m selftrain.report.quick --out FOLDER`: the figures of the paper in their quick version.

The main results come first; the page is updated with each figure. Verdicts that need the full run
are those of the last one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..paper.registry import figures
from ..paper.run import FigureOutcome, run, writable
from ..runtime.files import write_text
from .counts import claims_of, count, findings_of
from .full_run import judged
from .page import claims_list, figure_section, page

TITLE = "The figures of the paper: quick versions"
FIRST = ("heuristics", "relative-error", "ablation", "annealing", "cosine")
"""Figures of the first round: the main results, which need no simulation."""

ABOUT = (
    "<p>The figures of T. Takahashi, <i>The Role of Pseudo-labels in Self-training Linear"
    " Classifiers on High-dimensional Gaussian Mixture Data</i> (arXiv 2205.07739), reproduced and"
    " judged. These are quick versions, with coarser grids and fewer seeds. Where they cannot judge"
    " a claim, the verdict is that of the last full run, with its date. Captions belong to the full"
    " versions, which have more panels, curves and steps.</p>"
)


@dataclass
class Report:
    """The page, written again whenever a figure is added."""

    folder: Path
    order: tuple[str, ...]
    records: dict[str, Any] = field(default_factory=dict)
    whole: bool = False

    @property
    def file(self) -> Path:
        return self.folder / "index.html"

    def add(self, outcome: FigureOutcome) -> None:
        """Add a finished figure."""
        if outcome.record is not None:
            self.records[outcome.id] = judged(outcome.record)
            self.write()

    def write(self) -> None:
        """Write the page: claims, then figures."""
        known = [self.records[name] for name in self.order if name in self.records]
        sections = [
            *([claims_list(known)] if known else []),
            *(figure_section(one, self.folder) for one in known),
        ]
        note = "" if self.whole else f"{len(known)} of {len(self.order)} figures are finished"
        write_text(self.file, page(TITLE, ABOUT, sections, note))


def main() -> None:
    """Make the figures, write the page, print the counts."""
    parser = argparse.ArgumentParser(prog="python -m selftrain.report.quick", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/report"), help="folder of the report")
    parser.add_argument("--figures", nargs="*", default=[], help="ids of figures; default: all")
    asked = parser.parse_args()
    begin = time.perf_counter()
    report = Report(writable(asked.out), tuple(one.id for one in figures(asked.figures)))
    report.write()
    print(f"Page: {report.file}, updated with each of {len(report.order)} figures", flush=True)
    outcomes = _figures(report)
    report.whole = True
    report.write()
    for one in outcomes:
        for failure in one.failures:
            print(f"{one.id}: {failure}")
    records = list(report.records.values())
    claims, found = claims_of(records), findings_of(records)
    print(f"Of {len(claims)} claims of the paper {count(claims)}.")
    print(f"Of {len(found)} findings of our own {count(found)}.")
    print(f"Report: {report.file} ({time.perf_counter() - begin:.0f} s)")


def _figures(report: Report) -> list[FigureOutcome]:
    """Make all figures, in two rounds."""
    rounds: Iterable[list[str]] = (
        [name for name in report.order if (name in FIRST) == first] for first in (True, False)
    )
    return [
        outcome
        for names in rounds
        if names
        for outcome in run(names, quick=True, out=report.folder, drawn=report.add)
    ]


if __name__ == "__main__":
    main()
