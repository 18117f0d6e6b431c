"""The page needs nothing from elsewhere, and says what the records say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from selftrain.paper.registry import figures
from selftrain.report.document import markdown
from selftrain.report.page import figure_section, page, summary
from selftrain.symbols import to_html

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8ff"
    "ff3f0005fe02fea72d1f0d0000000049454e44ae426082"
)


@pytest.fixture
def record() -> dict[str, Any]:
    return {
        "figure": "cosine",
        "title": "Cosines & more",
        "place": "Section 4.1, `fig: cosine similarity`",
        "caption": r"$m/\sqrt{q}$ at $\lambda_U \in (0, 0.1]$",
        "quick": True,
        "claims": [
            {"says": "It grows <always>.", "verdict": "holds", "found": "By 0.1."},
            {"says": "It shrinks.", "verdict": "does not hold", "found": "It grew by 0.1."},
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
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_self_contained(tmp_path: Path, record: dict[str, Any]) -> None:
    (tmp_path / "cosine.png").write_bytes(PIXEL)
    text = page("A page", "", [summary([record]), figure_section(record, tmp_path)])
    links = Links()
    links.feed(text)
    assert not links.open
    inlined = [target for target in links.targets if target.startswith("data:image/png;base64,")]
    inside = [target for target in links.targets if target.startswith("#")]
    assert len(inlined) == 1
    assert {target[1:] for target in inside} <= set(links.ids)
    assert len(inlined) + len(inside) == len(links.targets)
    assert not re.search(r"<script|<link|@import|url\(|https?:", text)


def test_the_page_tells_claims_that_fail(tmp_path: Path, record: dict[str, Any]) -> None:
    (tmp_path / "cosine.png").write_bytes(PIXEL)
    text = page("A page", "", [summary([record]), figure_section(record, tmp_path)])
    assert "1 of 2" in text
    assert text.count("It grew by 0.1.") == 2
    assert "It grows &lt;always&gt;." in text
    assert "does not hold" in markdown([record])


def test_every_text_of_every_figure_can_be_shown() -> None:
    for one in figures():
        assert "`fig: " in one.place or one.place.startswith("beyond the paper")
        assert "<code>" in to_html(one.place)


def test_formulas() -> None:
    shown = to_html(r"$\epsilon_g^{(T)}(\Gamma^*)$ & $(\alpha_L, \alpha_U) = (0.5, 2)$")
    assert shown == (
        "<i>ε<sub>g</sub><sup>(T)</sup>(Γ<sup>*</sup>)</i> &amp; "
        "<i>(α<sub>L</sub>, α<sub>U</sub>) = (0.5, 2)</i>"
    )
    with pytest.raises(ValueError, match="unheard"):
        to_html(r"$\unheard$")
