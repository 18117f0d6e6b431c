"""The first page, in about a minute: `python -m pages.first README.md --out FOLDER`.

The headline is computed from theory in this process. Meanwhile the examples of the README run in
separate processes, exactly as printed there; the page shows their output.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from selftrain.paper.html_page import Section, page
from selftrain.paper.run import writable
from selftrain.runtime.files import replacing, write_text

from .headline import Headline, headline, simulated
from .headline_text import finding, remarks, table

TITLE = "Self-training a linear classifier: what it does, and what helps"
HEADLINE = ("headline.png", "headline-narrow.png", "headline.pdf")
"""Files of the picture: for the page, for a phone, and for print."""

EXAMPLES = ("On real data", "In theory")
"""Titles of the examples, in the order of the README."""

NEXT = """make report  every figure and claim of the paper, in out/report/index.html
make setup   adds `.venv/bin/selftrain explore`, a page where every curve follows a slider
make docs    the documentation as a site, in out/docs/index.html
make test    runs every test"""

LINKS = {
    "from a CSV to a saved model": "tutorial.md",
    "first run of the theory": "first-run.md",
    "every figure and claim of the paper": "paper.md",
    "gallery": "gallery.md",
    "questions": "faq.md",
}


@dataclass
class FirstPage:
    """The page; `write` is called again whenever a part is finished."""

    folder: Path
    links: str
    codes: Sequence[str]
    printed: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.folder / "index.html"

    def draw(self, story: Headline) -> None:
        """Draw the picture of the headline in all three versions."""
        from .headline_picture import NARROW, plot_headline

        wide, narrow = plot_headline(story), plot_headline(story, NARROW)
        for name, picture in zip(HEADLINE, (wide, narrow, wide), strict=True):
            with replacing(self.folder / name) as part:
                picture.savefig(part, format=name.rpartition(".")[2])

    def write(self, story: Headline) -> None:
        """Write the page: sentences, headline, the examples finished so far, links."""
        lead = " ".join(html.escape(sentence) for sentence in finding(story))
        details = "".join(f"<li>{html.escape(line)}</li>" for line in remarks(story))
        wide, narrow, _ = (self.folder / name for name in HEADLINE)
        numbers = (
            f"<details><summary>The numbers</summary>{table(story)}<ul>{details}</ul></details>"
        )
        sections = [Section("headline", "", wide, numbers, narrow)]
        for title, code, output in zip(EXAMPLES, self.codes, self.printed, strict=False):
            body = f"<pre>{html.escape(code)}</pre><p>Output:</p><pre>{html.escape(output)}</pre>"
            sections.append(Section(title.lower().replace(" ", "-"), title, None, body))
        sections.append(Section("read", "Read on", None, self.links))
        missing = len(self.codes) - len(self.printed)
        note = f"{missing} of {len(self.codes)} examples are still running" if missing else ""
        lead = f'<div class="lead"><p>{lead}</p></div>'
        write_text(self.file, page(TITLE, lead, sections, note, NEXT))


def main() -> None:
    """Compute the headline, run the examples, write the page, print both."""
    parser = argparse.ArgumentParser(prog="python -m pages.first", description=__doc__)
    parser.add_argument("readme", type=Path, help="the README whose examples run")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the page")
    parser.add_argument("--features", type=int, default=8192, help="size of simulated systems")
    parser.add_argument("--seeds", type=int, default=4, help="simulated systems; 0 for none")
    asked = parser.parse_args()
    begin = time.perf_counter()

    def say(text: str) -> None:
        print(text, flush=True)

    folder = writable(asked.out)
    first, second = codes = examples(asked.readme)
    result = FirstPage(folder, _links(asked.readme.resolve().parent / "docs", folder), codes)
    say("Computing the best settings of four methods. The first run compiles for 20 seconds.")
    with started(second) as theory:  # the longer one
        story = headline()
        with started(first) as data:
            result.draw(story)
            result.write(story)
            say("\n" + "\n".join(finding(story)) + "\n")
            say(f"Picture: {folder / HEADLINE[0]} ({time.perf_counter() - begin:.0f} s)")
            say("Running the two examples of the README.")
            second_output = output(theory)
            if asked.seeds:
                story = simulated(story, asked.features, asked.seeds, False)
                result.draw(story)
            result.printed += [output(data), second_output]
    result.write(story)
    for title, text in zip(EXAMPLES, result.printed, strict=True):
        say(f"\n{title}:\n{text.rstrip()}")
    say(f"\nPage: {result.file} ({time.perf_counter() - begin:.0f} s). Next:\n{NEXT}")


def examples(readme: Path) -> list[str]:
    """Return the Python blocks of a README: one with real data, one with theory."""
    found = re.findall(r"^```python\n(.*?)^```$", readme.read_text("utf-8"), re.DOTALL | re.M)
    if len(found) != len(EXAMPLES):
        raise SystemExit(f"{readme}: {len(EXAMPLES)} examples expected, found {len(found)}")
    return found


@contextmanager
def started(code: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python code in a process, which is ended at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()


def output(process: subprocess.Popen[str]) -> str:
    """Wait for an example and return what it printed; raise if it failed."""
    printed, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"an example of the README failed:\n{errors}")
    return printed


def _links(docs: Path, folder: Path) -> str:
    """Return links to pages of the documentation, relative to the folder of the page."""
    near = os.path.relpath(docs, folder.resolve())
    return "".join(
        f'<p><a href="{html.escape(near)}/{name}">{title}</a></p>'
        for title, name in LINKS.items()
        if (docs / name).is_file()
    )


if __name__ == "__main__":
    main()
