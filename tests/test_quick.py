"""`make check` tests something of every package, and leaves out no test that is gone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FOLDERS = sorted({path.parent for path in TESTS.rglob("test_*.py")} - {TESTS})


def names_in(path: Path) -> list[str]:
    """The tests of a file."""
    return [
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def test_what_is_left_out_exists(slow_tests: list[str]) -> None:
    gone = []
    for entry in slow_tests:
        place, _, name = entry.partition("::")
        path = TESTS / f"{place}.py"
        if not path.is_file() or (name and name not in names_in(path)):
            gone.append(entry)
    assert gone == [], "take these lines out of tests/slow.txt, or give them their new names"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(TESTS).as_posix())
def test_every_folder_has_quick_tests(folder: Path, slow_tests: list[str]) -> None:
    places = [path.relative_to(TESTS).with_suffix("") for path in folder.rglob("test_*.py")]
    quick = [
        name
        for place in places
        if place.as_posix() not in slow_tests
        for name in names_in(TESTS / f"{place}.py")
        if f"{place.as_posix()}::{name}" not in slow_tests
    ]
    assert quick
