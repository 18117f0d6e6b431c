"""The page needs nothing from elsewhere, and says what the records say."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from selftrain.paper.formulas import to_html
from selftrain.paper.html_page import Section, claims_list, figure_section, page, write_page
from selftrain.paper.registry import figures
from selftrain.paper.verdicts import VERDICTS, contradictions

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8ff"
    "ff3f0005fe02fea72d1f0d0000000049454e44ae426082"
)


def claim(quote: str, verdict: str, found: str) -> dict[str, Any]:
    return {
        "quote": quote,
        "case": "",
        "test": "A test.",
        "verdict": verdict,
        "found": found,
        "numbers": {},
        "flips": "no",
    }


@pytest.fixture
def record() -> dict[str, Any]:
    return {
        "figure": "cosine",
        "title": "Cosines & more",
        "place": "Section 4.1, `fig: cosine similarity`",
        "caption": r"$m/\sqrt{q}$ at $\lambda_U \in (0, 0.1]$",
        "quick": True,
        "from_paper": r"$\rho = 1/2$.",
        "chosen": r"$\alpha_L = 0.5$.",
        "files": ["cosine.png", "cosine.nc"],
        "claims": [
            claim("It grows <always>.", "holds", "By 0.1."),
            claim("It shrinks.", "does not hold", "It grew by 0.1."),
            claim("It ends.", "cannot tell", "Too short."),
            claim("It ends.", "cannot tell", "Too short."),
        ],
        "findings": [
            {
                "says": "It is ours.",
                "verdict": "holds",
                "found": "So.",
                "numbers": {},
                "flips": "no bar",
            },
        ],
    }


class Links(HTMLParser):
    """Everything a page refers to, and whether its elements close."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.targets += [values[name] or "" for name in ("src", "href") if name in values]
        self.ids += [values["id"] or ""] if "id" in values else []
        if tag not in ("img", "meta", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_self_contained(tmp_path: Path, record: dict[str, Any]) -> None:
    (tmp_path / "cosine.png").write_bytes(PIXEL)
    text = page("A page", "", [figure_section(record, tmp_path), claims_list([record])])
    links = Links()
    links.feed(text)
    assert not links.open
    inlined = [target for target in links.targets if target.startswith("data:image/png;base64,")]
    inside = [target for target in links.targets if target.startswith("#")]
    beside = [target for target in links.targets if target in ("cosine.png", "cosine.nc")]
    assert len(inlined) == 1
    assert {target[1:] for target in inside} <= set(links.ids)
    assert len(beside) == 2
    assert len(inlined) + len(inside) + len(beside) == len(links.targets)
    assert not re.search(r"<script|<link|@import|url\(|https?:", text)


def test_a_phone_gets_a_picture_of_its_own_where_there_is_one(tmp_path: Path) -> None:
    """The others stay as large as on a desk, in a frame that scrolls and says so."""
    file = tmp_path / "one.png"
    file.write_bytes(PIXEL)
    text = page(
        "A page", "", [Section("a", "A", file, "", narrow=file), Section("b", "B", file, "")]
    )
    links = Links()
    links.feed(text)
    assert not links.open
    assert text.count('<source media="(max-width: 44rem)" srcset="data:image/png;base64,') == 1
    assert text.count('<p class="picture large"><img alt="B"') == 1
    assert "swipe" in text


def test_the_page_tells_claims_that_fail(tmp_path: Path, record: dict[str, Any]) -> None:
    (tmp_path / "cosine.png").write_bytes(PIXEL)
    text = page("A page", "", [figure_section(record, tmp_path), claims_list([record])])
    for kind, words in (
        ("holds", "1 holds"),
        ("fails", "1 does not hold"),
        ("open", "1 cannot tell"),
    ):
        assert f'<span class="{kind}">{words}</span>' in text
    assert "Of 1 findings of our own 1 holds, 0 do not hold, 0 cannot tell" in text
    assert text.count("It grew by 0.1.") == 2
    assert "It grows &lt;always&gt;." in text
    assert text.count("cannot tell (needs the full run)") == 3  # table and list
    assert "Parameters of the paper:" in text
    assert "Chosen here:" in text


def test_the_page_of_a_folder_shows_verdicts_of_the_full_run(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    """Claims that a quick run of the figure `cosine` leaves open have those of the full run."""
    told = json.loads(VERDICTS.read_text("utf-8"))
    full = next(one for one in told["full"] if one["figure"] == "cosine")
    record["claims"] = [claim(one["quote"], "cannot tell", "F.") | one for one in full["claims"]]
    for one in record["claims"]:
        one["verdict"] = "cannot tell"
    (tmp_path / "cosine.json").write_text(json.dumps(record))
    (tmp_path / "cosine.png").write_bytes(PIXEL)
    write_page(tmp_path, True, [])
    text = (tmp_path / "index.html").read_text("utf-8")
    assert "needs the full run" not in text
    assert text.count(f"(full run of {full['date']})") == 2 * len(full["claims"])
    write_page(tmp_path, False, [])
    assert "cosine" not in (tmp_path / "index.html").read_text("utf-8").split('id="next"')[0]


def test_contradictions_of_quick_and_full_are_found(record: dict[str, Any]) -> None:
    full = {**record, "quick": False, "claims": [claim("It grows <always>.", "does not hold", "")]}
    assert contradictions([record], [record]) == []
    assert contradictions([full], [record]) == ["cosine: It grows <always>. : does not hold"]
    assert contradictions([{**record, "figure": "other"}], [full]) == []


def test_every_text_of_every_figure_can_be_shown() -> None:
    for one in figures():
        place = str(one.place)
        if one.paper == "self-training":  # figures of the first paper are named by their labels
            assert "`fig: " in place or "`pred: " in place or place.startswith("beyond the paper")
            assert "<code>" in to_html(place)
        assert place in to_html(place) or "<code>" in to_html(place)


def test_formulas() -> None:
    shown = to_html(r"$\epsilon_g^{(T)}(\Gamma^*)$ & $(\alpha_L, \alpha_U) = (0.5, 2)$")
    assert shown == (
        "<i>ε<sub>g</sub><sup>(T)</sup>(Γ<sup>*</sup>)</i> &amp; "
        "<i>(α<sub>L</sub>, α<sub>U</sub>) = (0.5, 2)</i>"
    )
    with pytest.raises(ValueError, match="unheard"):
        to_html(r"$\unheard$")
