"""The quick report and the full one never contradict each other: verdicts of the committed runs,
and the rule that keeps it so.
"""

from __future__ import annotations

import json
from pathlib import Path

from selftrain.paper.papers import PAPERS, paper
from selftrain.paper.registry import IDS, figure
from selftrain.paper.verdicts import KEYS, VERDICTS, contradictions, count, judged, verdict

DOCS = Path(__file__).parents[2] / "docs"


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
