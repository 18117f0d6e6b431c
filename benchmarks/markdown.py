"""Tables in Markdown, and the part of a page of the docs that a command rewrites."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selftrain.errors import SelfTrainError


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    >>> print(table(("what", "figure"), [("a | b", "1")]))
    | what | figure |
    |---|---|
    | a \\| b | 1 |
    """
    return "\n".join([_row(head), "|" + "---|" * len(head), *map(_row, rows)])


def between(page: str, marks: tuple[str, str], text: str) -> str:
    """Return a page with the text between its two marks replaced.

    >>> between("a <b> old <e> c", ("<b>", "<e>"), "new").split()
    ['a', '<b>', 'new', '<e>', 'c']
    """
    begin, end = marks
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SelfTrainError(f"the page has no place for the tables: {begin} ... {end}")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
