"""`python -m selftrain.report --out FOLDER`: the quick report, one HTML page in that folder.

The finding comes first: three sentences on the terminal and the headline picture on the page, from
theory alone, while another process compiles what the figures need. Then the figures of the paper in
their quick version; the page is updated with each of them, and with the finite systems of the
headline.
"""

from __future__ import annotations

import argparse
import html
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..paper.registry import figures
from ..paper.run import FigureOutcome, run, writable
from ..runtime.files import replacing, write_text
from ..runtime.parallel import local_processes, stop_now
from .counts import claims_of, count, findings_of
from .finding import finding, remarks
from .headline import Headline, headline, simulated
from .page import Section, claims_list, figure_section, page
from .table import for_page, for_terminal

if TYPE_CHECKING:
    from rich.console import Console

TITLE = "Self-training a linear classifier: what it does, and what helps"
FIRST = ("heuristics", "relative-error", "ablation", "annealing", "cosine")
"""Figures of the first round: the main results, which need no simulation."""

HEADLINE = ("headline.png", "headline-narrow.png", "headline.pdf")
"""The picture, its version for a phone, and for print."""

ABOUT = (
    "<p>Theory and simulation of self-training on Gaussian mixtures in high dimension, and the"
    " figures of T. Takahashi, <i>The Role of Pseudo-labels in Self-training Linear Classifiers on"
    " High-dimensional Gaussian Mixture Data</i> (arXiv 2205.07739), regenerated and judged. These"
    " are quick versions, with coarser grids and fewer seeds than most claims need: where the full"
    " run could say something else, the verdict is <i>cannot tell (needs the full run)</i>. The"
    " texts below the figures belong to the full versions, with more panels, curves and steps.</p>"
)


@dataclass
class Report:
    """The page, written again whenever something is added."""

    folder: Path
    order: tuple[str, ...]
    story: Headline
    records: dict[str, Any] = field(default_factory=dict)
    whole: bool = False

    @property
    def file(self) -> Path:
        return self.folder / "index.html"

    def headline(self, story: Headline) -> None:
        """Draw the headline, and write the page with it."""
        from ..plots.headline import plot_headline, plot_headline_narrow

        self.story = story
        whole, narrow = plot_headline(story), plot_headline_narrow(story)
        for name, picture in zip(HEADLINE, (whole, narrow, whole), strict=True):
            with replacing(self.folder / name) as part:
                picture.savefig(part, format=name.rpartition(".")[2])
        self.write()

    def add(self, outcome: FigureOutcome) -> None:
        """Add a finished figure."""
        if outcome.record is not None:
            self.records[outcome.id] = outcome.record
            self.write()

    def write(self) -> None:
        """Write the page: sentences, headline, figures, claims."""
        known = [self.records[name] for name in self.order if name in self.records]
        lead = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in finding(self.story))
        details = "".join(f"<li>{html.escape(line)}</li>" for line in remarks(self.story))
        numbers = (
            "<details><summary>The"
            f" numbers</summary>{for_page(self.story)}<ul>{details}</ul></details>"
        )
        files = ", ".join(f'<a href="{name}">{name}</a>' for name in HEADLINE[::2])
        files = f'<p class="place">Picture, PDF: {files}</p>'
        wide, narrow, _ = (self.folder / name for name in HEADLINE)
        first = Section("headline", "", wide, numbers + files + ABOUT, narrow)
        sections = [
            first,
            *(figure_section(one, self.folder / "quick", "quick/") for one in known),
            *([claims_list(known)] if known else []),
        ]
        note = "" if self.whole else f"{len(known)} of {len(self.order)} figures are finished"
        write_text(self.file, page(TITLE, f'<div class="lead">{lead}</div>', sections, note))


def main() -> None:
    """Compute the findings, write the page, print the numbers."""
    parser = argparse.ArgumentParser(prog="python -m selftrain.report", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the report")
    parser.add_argument("--features", type=int, default=8192, help="size of simulated systems")
    parser.add_argument("--seeds", type=int, default=4, help="systems per competitor; 0 for none")
    parser.add_argument("--figures", nargs="*", default=[], help="ids of figures; default: all")
    asked = parser.parse_args()

    from rich.console import Console

    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal
    begin = time.perf_counter()
    folder = writable(asked.out)
    order = tuple(one.id for one in figures(asked.figures))
    beside = local_processes(1)
    try:
        if asked.seeds:
            beside.submit(_compile_simulator)
        with console.status("compiling the solver (once), and tuning four methods"):
            story = headline()
        report = Report(folder, order, story)
        report.headline(story)
        for sentence in finding(story):
            console.print(sentence)
        console.print(f"Page: {report.file} ({time.perf_counter() - begin:.0f} s); figures follow.")
        if "real-data" in order:
            beside.submit(_compile_shapes)
        finite = (story, asked.features, asked.seeds, False)
        systems = beside.submit(simulated, *finite) if asked.seeds else None
        outcomes = _figures(order, folder / "quick", report)
        if systems is not None:
            report.headline(systems.result())
        beside.shutdown()
    except BaseException:
        stop_now(beside)
        raise
    report.whole = True
    report.write()
    _close(report, outcomes, console)
    console.print(f"Report: {report.file} ({time.perf_counter() - begin:.0f} s)")


def _figures(order: Iterable[str], folder: Path, report: Report) -> list[FigureOutcome]:
    """Make all figures, in two rounds."""
    rounds = [[name for name in order if (name in FIRST) == first] for first in (True, False)]
    return [
        outcome
        for names in rounds
        if names
        for outcome in run(names, quick=True, out=folder, drawn=report.add)
    ]


def _compile_simulator() -> None:
    """Run a small system, so that its code is compiled and cached."""
    from ..recipe import Recipe
    from ..simulation.simulate import simulate
    from .headline import PROBLEM

    simulate(PROBLEM.replace(steps=1), Recipe(), features=64, seeds=1, progress=False)


def _compile_shapes() -> None:
    """Compute a small point of the figure of real data, so that its code is compiled and cached."""
    from ..paper.computations.real_rows import real_rows

    real_rows("cancer", labels=100, batches=1, rows=100, recipe="naive", seeds=2)


def _close(report: Report, outcomes: list[FigureOutcome], console: Console) -> None:
    """Print table, failures and counts."""
    console.width = max(console.width, 120)
    console.print(for_terminal(report.story), soft_wrap=False)
    for line in remarks(report.story):
        console.print(line)
    for one in outcomes:
        for failure in one.failures:
            console.print(f"{one.id}: {failure}")
    records = list(report.records.values())
    claims, found = claims_of(records), findings_of(records)
    console.print(
        f"{len(records)} figures, quick versions. Of {len(claims)} claims of the paper"
        f" {count(claims)} (needs the full run); of {len(found)} findings {count(found)}.",
    )


if __name__ == "__main__":
    main()
