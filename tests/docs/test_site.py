"""The documentation as a site: no warning, no dead link, nothing asked of another host."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from benchmarks.page.browser import chromium, wait

pytest.importorskip("sphinx", reason="the site needs the group docs: pip install --group docs")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("index", "theory", "limits", "api/selftrain", "gallery", "examples/first-run")


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


class Page(HTMLParser):
    """Links, anchors, texts of literals and the loaded files of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.literals: list[str] = []
        self.inside = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        elif tag in ("script", "link", "img") and (place := found.get("src") or found.get("href")):
            self.loaded.append(place)
        self.inside += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag == "code"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.literals.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; a warning is an error."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(place)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return place


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    files = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    return {path.relative_to(site).as_posix(): Page(path.read_text("utf-8")) for path in files}


def test_warnings_are_not_suppressed() -> None:
    assert "suppress_warnings" not in (DOCS / "conf.py").read_text("utf-8")


def test_links_lead_to_pages_files_and_headings(site: Path, pages: dict[str, Page]) -> None:
    dead = []
    for name, page in pages.items():
        for link in page.links:
            split = urlsplit(urljoin(f"http://site/{name}", link))
            if split.netloc != "site" or split.scheme != "http":
                continue
            target = unquote(split.path.lstrip("/"))
            heading = unquote(split.fragment)
            there = target in pages and (not heading or heading in pages[target].anchors)
            if not there and not (target not in pages and (site / target).is_file()):
                dead.append((name, link))
    assert not dead


def test_no_page_loads_from_another_host(pages: dict[str, Page]) -> None:
    elsewhere = ("http:", "https:", "//")
    loaded = [place for page in pages.values() for place in page.loaded]
    assert len(loaded) > 100
    assert not [place for place in loaded if place.startswith(elsewhere)]


def test_literals_and_signatures_of_the_api(site: Path, pages: dict[str, Page]) -> None:
    literals = [text for name, page in pages.items() if "api/" in name for text in page.literals]
    assert len(literals) > 500
    assert not [text for text in literals if text.startswith("\\ ") or "``" in text]
    text = html.unescape(re.sub(r"<[^>]+>", "", (site / "api/selftrain.html").read_text("utf-8")))
    assert "solve(problem: Problem, recipe: Recipe" in " ".join(text.split()).replace("( ", "(")


def test_a_browser_asks_no_other_host_and_sets_the_formulas(
    site: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    folders = tmp_path_factory.mktemp("downloads"), tmp_path_factory.mktemp("profile")
    try:
        with chromium(*folders) as browser:
            browser.get("about:blank")
            browser.get_log("performance")  # what the browser did by itself
            for name in PAGES:
                browser.get(f"{address}{name}.html")
                formulas = browser.execute_script(
                    "return document.querySelectorAll('.math').length"
                )
                if formulas:
                    count = "return document.querySelectorAll('mjx-container').length"
                    wait(browser, lambda: browser.execute_script(count) >= formulas)  # noqa: B023
                    wrong = "return document.querySelectorAll('mjx-merror').length"
                    assert browser.execute_script(wrong) == 0, name
                assert formulas or name not in ("theory", "limits")
            asked = list(requests(browser))
    finally:
        server.shutdown()
        server.server_close()
    assert any("tex-chtml.js" in one for one in asked)
    assert [one for one in asked if not one.startswith((address, "data:", "about:"))] == []


def requests(browser: Any) -> Iterator[str]:
    """Addresses that the pages asked for."""
    for line in browser.get_log("performance"):
        event = json.loads(line["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            yield event["params"]["request"]["url"]
