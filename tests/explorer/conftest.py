"""A real server and a real browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, serving


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the page is; at the end, nothing on stderr may be a traceback."""
    with serving() as (place, _, lines):
        yield place
    assert not [line for line in lines if "Traceback" in line], "".join(lines)


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(downloads, tmp_path_factory.mktemp("profile")) as window:
        yield window
