"""Rows from a file: what is read, and the sentence for each thing that is wrong with it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from selftrain.errors import InvalidInput
from selftrain.estimator.planning.csv_rows import read_csv_rows
from selftrain.tables import Table, read_table, standardised

GOOD = "a,b,c,y\n1,2,5,no\n3,4,5,yes\n5,0,5,no\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def test_a_table_is_read_and_standardised(file: Path) -> None:
    file.write_text(GOOD)
    table = read_table(file, "y")
    np.testing.assert_array_equal(table.X, [[1, 2, 5], [3, 4, 5], [5, 0, 5]])
    assert (table.names, table.positive, table.rho) == (("a", "b", "c"), "yes", 1 / 3)
    scaled = standardised(table)
    assert (scaled.names, scaled.constant) == (("a", "b"), ("c",))
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(scaled.X.std(axis=0), 1)


@pytest.mark.parametrize(
    ("text", "target", "sentence"),
    [
        (GOOD, "label", "no such column"),
        (GOOD.replace(",", ";"), "y", "separated by ';': convert it to commas"),
        (GOOD.replace(",", "\t"), "y", r"separated by '\\t': convert it to commas"),
        ("", "y", "a CSV file with a line of names"),
        ("a,y\n1,no\n2,yes\n3,maybe\n", "y", "two classes; it has 3"),
        ("a,y\n1,no\n2,no\n", "y", "two classes; it has 1: no"),
        ("a,y\n1,no\n2,\n3,yes\n", "y", "1 rows have no class"),
        ("a,b,y\n1,x,no\n2,z,yes\n", "y", "these columns have other entries: b"),
        ("a,b,y\n1,,no\n2,3,yes\n", "y", "1 are missing or infinite, in: b"),
        ("y\nno\nyes\n", "y", "a column of numbers besides the target"),
    ],
)
def test_what_is_wrong_is_said(file: Path, text: str, target: str, sentence: str) -> None:
    file.write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        read_table(file, target)


def test_columns_that_never_change_are_no_table(file: Path) -> None:
    file.write_text("a,y\n1,no\n1,yes\n")
    with pytest.raises(InvalidInput, match="must have a column that is not constant"):
        standardised(read_table(file, "y"))


@pytest.mark.parametrize("head", [b"a,b,y\n1,2,no\n", b"a,b,y\n1,2,no\n" + b"3,4,yes\n" * 60_000])
def test_a_byte_that_is_not_utf_8_is_named_with_its_line(file: Path, head: bytes) -> None:
    """In the first piece of a long file and in a later one."""
    file.write_bytes(head + b"3,caf\xe9,yes\n")
    line = head.count(b"\n") + 1
    sentence = rf"rows\.csv.*0xE9 in line {line} is not UTF-8.*iconv"
    with pytest.raises(InvalidInput, match=sentence):
        read_table(file, "y")
    with pytest.raises(InvalidInput, match=sentence):
        read_csv_rows(file, "y")


def test_a_byte_of_a_compressed_file_is_named_without_a_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv.gz"
    file.write_bytes(gzip.compress(b"a,b,y\n1,caf\xe9,no\n"))
    with pytest.raises(InvalidInput, match="a byte 0xE9 is not UTF-8"):
        read_csv_rows(file, "y")


def test_a_line_with_too_many_cells_is_named_in_every_piece(file: Path) -> None:
    file.write_text("a,b,y\n" + "3,4,yes\n" * 60_000 + "3,4,5,6,no\n")
    with pytest.raises(InvalidInput, match="line 60002, saw 5"):
        read_csv_rows(file, "y")


def test_offset_and_unit_of_a_column_do_not_matter() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 4))
    moved = rows * [1.0, 1e200, 1e-200, 1.0] + [0.0, 0.0, 0.0, 1e10]
    names, y = ("a", "b", "c", "d"), np.arange(500) % 2
    found, expected = (standardised(Table(X, y, names)).X for X in (moved, rows))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
