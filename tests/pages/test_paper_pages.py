"""The pages of the papers are written from records, all or none, and contradict no quick run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pages.paper_pages import markdown, write
from selftrain.errors import InvalidInput
from selftrain.paper.papers import PAPERS, paper
from selftrain.paper.registry import IDS
from selftrain.paper.verdicts import contradictions


def _claim(quote: str, verdict: str) -> dict[str, Any]:
    about = {"case": "", "test": "T.", "found": "F.", "flips": "no"}
    return {"quote": quote, "verdict": verdict, **about}


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
            "claims": [_claim("It grows.", verdict) | {"case": name}],
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


def test_the_markdown_has_claims_and_findings_apart() -> None:
    claims = [_claim("It grows.", "holds"), _claim("It shrinks.", "does not hold")]
    finding = {"says": "It is ours.", "verdict": "holds", "found": "So.", "flips": "no bar"}
    record = {
        **dict.fromkeys(("title", "place", "caption", "from_paper", "chosen"), "Some words."),
        "figure": "cosine",
        "quick": False,
        "claims": [*claims, *2 * [_claim("It ends.", "cannot tell")]],
        "findings": [finding],
    }
    text = markdown([record])
    assert "Of 3 claims 1 holds, 1 does not hold, 1 cannot tell." in text
    assert "needs the full run" not in text.split("## Claims of the paper")[1]
    claimed, found = text.split("## Findings of our own")
    assert "“It shrinks.” | does not hold |" in claimed
    assert "It is ours. | holds |" in found
