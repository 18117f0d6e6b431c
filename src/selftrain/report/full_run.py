"""Verdicts of the last full run, for claims and findings that a quick run cannot judge.

`paper-verdicts.json` is written by `make paper` (`document.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..paper.ruling import OPEN

VERDICTS = Path(__file__).with_name("paper-verdicts.json")
KEYS = {"claims": ("quote", "case"), "findings": ("says",)}
"""What identifies a claim and a finding of a figure in two runs."""


@cache
def full_run() -> dict[str, Mapping[str, Any]]:
    """Return the verdicts of the last full run, by figure."""
    found = json.loads(VERDICTS.read_text("utf-8"))["full"]
    return {one["figure"]: one for one in found}


def judged(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record whose open verdicts are those of the last full run, with its date.

    A record of a full run comes back as it is. A claim that the full run does not know stays open.
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
