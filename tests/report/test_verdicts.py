"""The quick report and the full one never contradict each other: verdicts of the committed runs,
and the rule that keeps it so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from selftrain.errors import InvalidInput
from selftrain.paper.registry import IDS
from selftrain.report.counts import contradictions
from selftrain.report.document import write

DOCS = Path(__file__).parents[2] / "docs"
COMMITTED = DOCS / "paper-verdicts.json"


def records(folder: Path, quick: bool, verdict: str) -> Path:
    """A run of every figure, with one claim each."""
    folder.mkdir()
    for name in IDS:
        record: dict[str, Any] = {
            "figure": name,
            "title": name,
            "place": "here",
            "quick": quick,
            "caption": "",
            "from_paper": "",
            "chosen": "",
            "claims": [
                {
                    "quote": "It grows.",
                    "case": name,
                    "test": "T.",
                    "verdict": verdict,
                    "found": "F.",
                    "numbers": {},
                    "flips": "no",
                }
            ],
            "findings": [],
        }
        (folder / f"{name}.json").write_text(json.dumps(record))
        (folder / f"{name}.png").write_bytes(b"")
    return folder


def test_verdicts_are_written_next_to_the_page(tmp_path: Path) -> None:
    full = records(tmp_path / "full", False, "holds")
    quick = records(tmp_path / "quick", True, "cannot tell")
    docs = tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    write(full, docs, quick)
    told = json.loads((docs / "paper-verdicts.json").read_text())
    assert [one["figure"] for one in told["full"]] == list(IDS)
    assert contradictions(told["quick"], told["full"]) == []
    assert {one["claims"][0]["verdict"] for one in told["quick"]} == {"cannot tell"}


def test_a_contradiction_is_not_written(tmp_path: Path) -> None:
    full = records(tmp_path / "full", False, "holds")
    quick = records(tmp_path / "quick", True, "does not hold")
    with pytest.raises(InvalidInput, match="contradicts the full run"):
        write(full, tmp_path, quick)
    assert not (tmp_path / "paper.md").exists()


@pytest.mark.skipif(not COMMITTED.exists(), reason="written by `make paper`")
def test_the_committed_runs_agree_with_each_other_and_with_the_page() -> None:
    told = json.loads(COMMITTED.read_text("utf-8"))
    assert {one["figure"] for one in told["full"]} <= set(IDS)
    assert [one["figure"] for one in told["quick"]] == [one["figure"] for one in told["full"]]
    assert contradictions(told["quick"], told["full"]) == []
    page = (DOCS / "paper.md").read_text("utf-8")
    for one in told["full"]:
        for claim in one["claims"]:
            assert f"“{claim['quote']}”" in page
        for verdict in ("holds", "does not hold", "cannot tell"):
            entries = [*one["claims"], *one["findings"]]
            section = page.split(f"\n## {one['figure']}\n")[1].split("\n## ")[0]
            found = sum(entry["verdict"] == verdict for entry in entries)
            assert section.count(f"- **{verdict}**") == found
