"""Labels of the paper are in the source, beside their equations; the errata are all listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text("utf-8")
SOURCE = "".join(path.read_text() for path in (ROOT / "src" / "selftrain").rglob("*.py"))
OF_STEP_0 = "uhat0 local-field0 q0 chi0 m0 qhat0 chihat0 mhat0 b0"
OF_STEP_T = "uhat local-field1 local-field2 q chi m r hatq hatchi hatm hatr b"


@pytest.mark.parametrize("name", f"{OF_STEP_0} {OF_STEP_T}".split())
def test_a_reader_with_the_paper_open_finds_the_equation_in_the_source(name: str) -> None:
    assert re.search(rf"`eq:rs-saddle-{name}`", SOURCE)


def test_all_errata_are_listed() -> None:
    errata = PAGE.split("## Misprints and slips")[1].split("## Remarks")[0]
    assert re.findall(r"^(\d+)\. ", errata, flags=re.MULTILINE) == [str(i) for i in range(1, 24)]


TABLE = (ROOT / "docs" / "tour.md").read_text("utf-8").split("## From equation to file")[1]


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w/]+\.py)`", TABLE))))
def test_the_table_from_equation_to_file_names_files(file: str) -> None:
    assert (ROOT / "src" / "selftrain" / file).is_file()


@pytest.mark.parametrize(
    "label", sorted(set(re.findall(r"`((?:eq|pred|prop|def): ?[^`]+)`", TABLE)))
)
def test_every_label_of_the_table_is_in_the_source(label: str) -> None:
    assert f"`{label}`" in " ".join(SOURCE.split())
