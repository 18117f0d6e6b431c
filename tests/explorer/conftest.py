"""A real server and a real browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.page.browser import chromium, serving


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[str, int]]:
    """Where the page is, and the process behind it; nothing it writes may be a traceback."""
    with serving() as (place, process, lines):
        yield place, process
    assert not [line for line in lines if "Traceback" in line], "".join(lines)


@pytest.fixture(scope="session")
def address(server: tuple[str, int]) -> str:
    return server[0]


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(downloads, tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture(scope="session")
def rows_csv() -> str:
    """Two Gaussian classes of 80 rows each and six columns; 40 rows have no class."""
    draw = np.random.default_rng(5)
    y = np.repeat([0, 1], 80)
    X = draw.standard_normal((160, 6)) + np.outer(2 * y - 1, [1.0, 0.5, 0, 0, 0, 0])
    names = [f"x{i}" for i in range(6)]
    lines = [",".join([*names, "kind"])]
    for place, row in enumerate(draw.permutation(160)):
        label = "" if place < 40 else "ab"[y[row]]
        lines.append(",".join([*(f"{value:.6f}" for value in X[row]), label]))
    return "\n".join(lines) + "\n"
