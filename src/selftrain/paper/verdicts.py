"""The verdicts in records: count them, compare them, and complete them by the last full run.

`make paper` writes `verdicts.json`, the verdicts of the last full run, which a quick run shows for
claims that it cannot judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .ruling import FAILS, HOLDS, NO_BAR, OPEN

Record = Mapping[str, Any]
VERDICTS = Path(__file__).with_suffix(".json")
KEYS = {"claims": ("quote", "case"), "findings": ("says",)}
"""Entries by which a claim and a finding are identified in different runs of a figure."""

NEEDS_THE_FULL_RUN = "needs the full run"


class Counts(NamedTuple):
    """Numbers of verdicts.

    >>> str(Counts(53, 3, 20))
    '53 hold, 3 do not hold, 20 cannot tell'
    >>> str(Counts(1, 1, 1))
    '1 holds, 1 does not hold, 1 cannot tell'
    """

    holds: int
    fails: int
    open: int

    def __str__(self) -> str:
        return ", ".join(self.words)

    @property
    def words(self) -> tuple[str, str, str]:
        """Each number with its verdict."""
        return (
            f"{self.holds} {'holds' if self.holds == 1 else 'hold'}",
            f"{self.fails} {'does' if self.fails == 1 else 'do'} not hold",
            f"{self.open} cannot tell",
        )

    @property
    def total(self) -> int:
        return sum(self)


def count(entries: Iterable[Mapping[str, Any]]) -> Counts:
    """Count the verdicts of claims, or of findings."""
    verdicts = [entry["verdict"] for entry in entries]
    return Counts(*(verdicts.count(word) for word in (HOLDS, FAILS, OPEN)))


def claims_of(records: Iterable[Record]) -> list[Mapping[str, Any]]:
    """Return all claims; one that several figures test in the same case is returned once."""
    seen: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for record in records:
        for claim in record["claims"]:
            seen.setdefault(key_of(claim), claim)
    return list(seen.values())


def key_of(claim: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the entries by which a claim is recognised in another figure."""
    return claim["quote"], claim["case"], claim["test"]


def findings_of(records: Iterable[Record]) -> list[Mapping[str, Any]]:
    """Return all findings."""
    return [finding for record in records for finding in record["findings"]]


def flipping(entries: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the number of verdicts that depend on a threshold (a bar), and the number of these
    that would change with half or twice that threshold.

    >>> flipping([{"flips": "no"}, {"flips": "no bar"}, {"flips": "half of 0.1: does not hold"}])
    (2, 1)
    """
    barred = [entry["flips"] for entry in entries if entry["flips"] != NO_BAR]
    return len(barred), sum(words != "no" for words in barred)


def verdict(entry: Mapping[str, Any], record: Record) -> str:
    """Return the verdict in words, with the date if it is that of the full run (`judged`)."""
    word = str(entry["verdict"])
    if "full_run" in entry:
        return f"{word} (full run of {entry['full_run']})"
    return f"{word} ({NEEDS_THE_FULL_RUN})" if word == OPEN and record["quick"] else word


@cache
def full_run() -> dict[str, Mapping[str, Any]]:
    """Return the verdicts of the last full run, by figure."""
    found = json.loads(VERDICTS.read_text("utf-8"))["full"]
    return {one["figure"]: one for one in found}


def judged(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a quick run with open verdicts replaced by those of the last full run.

    These have the date of the full run. A record of a full run is returned unchanged; a claim that
    the full run does not contain stays open.
    """
    full = full_run().get(record["figure"])
    if full is None or not record["quick"]:
        return dict(record)
    changed: dict[str, Any] = {}
    for kind, names in KEYS.items():
        seen = {tuple(entry[name] for name in names): entry["verdict"] for entry in full[kind]}
        changed[kind] = [
            entry | {"verdict": seen[key], "full_run": full["date"]}
            if entry["verdict"] == OPEN and (key := tuple(entry[n] for n in names)) in seen
            else entry
            for entry in record[kind]
        ]
    return {**record, **changed}


def contradictions(quick: Iterable[Record], full: Iterable[Record]) -> list[str]:
    """Return verdicts of quick records that full ones of the same figures contradict."""
    known = {record["figure"]: record for record in full}
    found = []
    for record in quick:
        other = known.get(record["figure"])
        if other is None:
            continue
        for kind, names in KEYS.items():
            seen = {tuple(entry[name] for name in names): entry["verdict"] for entry in other[kind]}
            for entry in record[kind]:
                key = tuple(entry[name] for name in names)
                if entry["verdict"] not in (OPEN, seen.get(key, entry["verdict"])):
                    found.append(f"{record['figure']}: {' '.join(key)}: {entry['verdict']}")
    return found
