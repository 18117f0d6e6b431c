"""The report of `make report`: a page that grows with the figures, and ends with the counts."""

import json
import sys

from selftrain.paper.run import FigureOutcome
from selftrain.report.full_run import VERDICTS
from selftrain.report.quick import main


def test_the_page_grows_and_shows_verdicts_of_the_full_run(monkeypatch, capsys, tmp_path):
    """Claims that a quick run of the figure `cosine` leaves open have those of the full run."""
    told = json.loads(VERDICTS.read_text("utf-8"))
    full = next(one for one in told["full"] if one["figure"] == "cosine")
    left = {"test": "T.", "found": "F.", "numbers": {}, "flips": "no", "verdict": "cannot tell"}
    record = {
        "figure": "cosine", "title": "Cosines", "place": "here", "quick": True, "caption": "",
        "from_paper": "", "chosen": "", "files": [],
        "claims": [claim | left for claim in full["claims"]], "findings": [],
    }  # fmt: skip
    seen = []

    def computed(names, quick, out, drawn):
        seen.append((out / "index.html").read_text("utf-8"))
        (out / "cosine.png").write_bytes(b"")
        drawn(FigureOutcome("cosine", record))
        return [FigureOutcome("cosine", record)]

    monkeypatch.setattr("selftrain.report.quick.run", computed)
    monkeypatch.setattr(sys, "argv", ["quick", "--out", str(tmp_path), "--figures", "cosine"])
    main()
    assert "0 of 1 figures are finished; this page reloads" in seen[0]
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "this page reloads" not in page
    assert "needs the full run" not in page
    assert page.count(f"(full run of {full['date']})") == 2 * len(full["claims"])
    held = sum(claim["verdict"] == "holds" for claim in full["claims"])
    assert f"{held} hold" in capsys.readouterr().out
