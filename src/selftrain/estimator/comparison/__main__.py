"""`python -m selftrain.estimator.comparison`: run what is missing, print and write the tables.

It continues where it was stopped: every run is kept in the folder `--out`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import SelfTrainError
from .run import cells, compute, stored
from .summary import as_frame, markdown
from .tasks import CONFIRMATION, DEVELOPMENT

BEGIN, END = "<!-- tables of the comparison -->", "<!-- end of the tables -->"


def main() -> None:
    """Parse, compute, report."""
    parser = argparse.ArgumentParser(
        prog="python -m selftrain.estimator.comparison", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=Path("out/comparison"), help="folder of runs")
    parser.add_argument("--seeds", type=int, default=20, help="draws of labels per task")
    parser.add_argument("--development", action="store_true", help="the tasks for development")
    parser.add_argument("--again", nargs="*", default=[], help="methods to compute anew")
    parser.add_argument("--stored", action="store_true", help="report what there is, run nothing")
    parser.add_argument("--page", type=Path, help="a page whose tables are replaced")
    parser.add_argument("--picture", type=Path, help="where to draw the comparison")
    asked = parser.parse_args()
    wanted = cells(DEVELOPMENT if asked.development else CONFIRMATION, asked.seeds)
    if not asked.stored:
        compute(wanted, asked.out, tuple(asked.again))
    frame = as_frame(stored(wanted, asked.out))
    text = markdown(frame)
    print(text)
    if asked.page is not None:
        asked.page.write_text(with_tables(asked.page.read_text(), text))
    if asked.picture is not None:
        from ...plots.comparison import draw_comparison

        draw_comparison(frame).savefig(asked.picture, dpi=150)


def with_tables(page: str, tables: str) -> str:
    """A page with the part between its two marks replaced.

    >>> with_tables(f"a {BEGIN} old {END} b", "new").split()[-2:]
    ['-->', 'b']
    """
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SelfTrainError(f"the page has no place for the tables: {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


if __name__ == "__main__":
    main()
