"""The page of the benchmarks: machine, versions, every ratio, then every figure by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..markdown import table
from .record import PARTS, Record, drift, yardsticks

INTRODUCTION = """\
# Benchmarks

`make bench` measures everything and writes this page and `benchmarks.json`, which has the same
figures. `make bench-check` measures again and names what became slower than here by more than its
noise. `python -m benchmarks PART` measures one part, `python -m benchmarks all PART` puts it on
this page.

A figure is the median over the rounds of its part. Its noise is the range of the rounds, and at
least the drift of the machine: a fixed piece of work, the yardstick, timed before every part and
after the last. Ratios are taken within one process; times are processor times, unless a line
states another clock.
"""


def page(record: Record) -> str:
    """Return the whole page, in Markdown."""
    return "\n".join(
        [
            INTRODUCTION,
            *_setting(record),
            "",
            "## Ratios",
            "",
            table(("part", "ratio", "measured", "asked", ""), _ratios(record)),
            *(line for part, found in record["parts"].items() for line in _part(part, found)),
            "",
        ]
    )


def _setting(record: Record) -> Iterator[str]:
    machine, versions = record["machine"], record["versions"]
    yield f"Machine: {machine['processor']}, {machine['cores']} cores, {machine['system']}."
    yield "Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + "."
    yield (
        f"Yardstick: {1e3 * min(yardsticks(record)):.0f} ms; noise of a figure at least"
        f" {100 * drift(record):.0f} %."
    )
    left_out = [part for part in PARTS if part not in record["parts"]]
    if left_out:
        yield f"Not measured: {', '.join(left_out)}."


def _ratios(record: Record) -> Iterator[tuple[str, ...]]:
    for part, found in record["parts"].items():
        for line in found["lines"]:
            if line["unit"] == "x":
                yield (f"[{part}](#{part})", line["what"], _figure(line), _asked(line), _met(line))


def _part(part: str, found: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## {part.capitalize()}", "")
    rounds = "one round" if found["rounds"] == 1 else f"{found['rounds']} rounds"
    yield f"`python -m benchmarks {part}`: {rounds}, {found['seconds']:.0f} s in all."
    if "failed" in found:
        yield f"**It {found['failed']}**"
        return
    yield ""
    rows = (
        (line["what"], _figure(line), _noise(line), _asked(line), _met(line), line["note"])
        for line in found["lines"]
    )
    yield table(("what", "measured", "noise", "asked", "", "how"), rows)


def _figure(line: Mapping[str, Any]) -> str:
    figure = line["figure"]
    if not isinstance(figure, (int, float)):
        return "not finite"
    return f"{figure:,.4g} {line['unit']}".strip()


def _noise(line: Mapping[str, Any]) -> str:
    return f"{100 * line['noise']:.0f} %" if line["noise"] else ""


def _asked(line: Mapping[str, Any]) -> str:
    if line["target"] is None:
        return ""
    bound = "at least" if line["at_least"] else "at most"
    return f"{bound} {line['target']:g} {line['unit']}".strip()


def _met(line: Mapping[str, Any]) -> str:
    return {None: "", True: "met", False: "**missed**"}[line["met"]]
