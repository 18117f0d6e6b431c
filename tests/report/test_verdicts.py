"""The quick report and the full one never contradict each other: verdicts of the committed runs,
and the rule that keeps it so.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from selftrain.errors import InvalidInput
from selftrain.paper.papers import PAPERS, paper
from selftrain.paper.registry import IDS, figure
from selftrain.report.counts import contradictions, count, verdict
from selftrain.report.document import write
from selftrain.report.full_run import KEYS, VERDICTS, judged

DOCS = Path(__file__).parents[2] / "docs"


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
    os.utime(full / f"{IDS[0]}.json", (0, 86400 * 365))
    write(full, docs, quick, tmp_path / "verdicts.json")
    told = json.loads((tmp_path / "verdicts.json").read_text())
    assert told["full"][0]["date"] == "1971-01-01"
    assert [one["figure"] for one in told["full"]] == list(IDS)
    assert contradictions(told["quick"], told["full"]) == []
    assert {one["claims"][0]["verdict"] for one in told["quick"]} == {"cannot tell"}


def test_a_paper_without_records_keeps_its_verdicts_and_an_incomplete_one_is_rejected(
    tmp_path: Path,
) -> None:
    full = records(tmp_path / "full", False, "holds")
    docs, verdicts = tmp_path / "docs", tmp_path / "verdicts.json"
    (docs / "images").mkdir(parents=True)
    write(full, docs, None, verdicts)
    for name in paper("self-training").figures:
        (full / f"{name}.json").unlink()
    pages = write(full, docs, None, verdicts)
    assert [page.stem for page in pages] == [paper(name).page for name in PAPERS[1:]]
    told = json.loads(verdicts.read_text())
    assert [one["figure"] for one in told["full"]] == list(IDS)
    (full / f"{IDS[-1]}.json").unlink()
    with pytest.raises(InvalidInput, match=f"no record of a full run of: {IDS[-1]}"):
        write(full, docs, None, verdicts)


def test_a_contradiction_is_not_written(tmp_path: Path) -> None:
    full = records(tmp_path / "full", False, "holds")
    quick = records(tmp_path / "quick", True, "does not hold")
    with pytest.raises(InvalidInput, match="contradicts the full run"):
        write(full, tmp_path, quick, tmp_path / "verdicts.json")
    assert not (tmp_path / "paper.md").exists()


def test_the_committed_runs_agree_with_each_other_and_with_the_page() -> None:
    told = json.loads(VERDICTS.read_text("utf-8"))
    assert {one["figure"] for one in told["full"]} <= set(IDS)
    assert [one["figure"] for one in told["quick"]] == [one["figure"] for one in told["full"]]
    assert contradictions(told["quick"], told["full"]) == []
    pages = {name: (DOCS / f"{paper(name).page}.md").read_text("utf-8") for name in PAPERS}
    for one in told["full"]:
        page = pages[figure(one["figure"]).paper]
        for claim in one["claims"]:
            assert f"“{claim['quote']}”" in page
        for word in ("holds", "does not hold", "cannot tell"):
            entries = [*one["claims"], *one["findings"]]
            section = page.split(f"\n## {one['figure']}\n")[1].split("\n## ")[0]
            found = sum(entry["verdict"] == word for entry in entries)
            assert section.count(f"- **{word}**") == found


def test_what_a_quick_run_cannot_judge_has_the_verdict_of_the_full_run() -> None:
    """Open verdicts of the committed quick run against the committed full run, figure by figure."""
    told = json.loads(VERDICTS.read_text("utf-8"))
    for quick, full in zip(told["quick"], told["full"], strict=True):
        record = judged({**quick, "quick": True})
        for kind in ("claims", "findings"):
            expected = {tuple(one[key] for key in KEYS[kind]): one["verdict"] for one in full[kind]}
            for before, after in zip(quick[kind], record[kind], strict=True):
                assert after["verdict"] == expected[tuple(after[key] for key in KEYS[kind])]
                dated = f"(full run of {full['date']})" in verdict(after, record)
                assert dated == (before["verdict"] == "cannot tell")
    assert count(claim for one in told["quick"] for claim in one["claims"]).open > 50


def test_a_claim_that_the_full_run_does_not_know_stays_open() -> None:
    claim = {"quote": "Never said.", "case": "", "verdict": "cannot tell"}
    record = judged({"figure": "cosine", "quick": True, "claims": [claim], "findings": []})
    assert record["claims"] == [claim]
    assert verdict(record["claims"][0], record) == "cannot tell (needs the full run)"
    full = {"figure": "cosine", "quick": False, "claims": [claim], "findings": []}
    assert judged(full) == full
