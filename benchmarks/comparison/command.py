"""Compare the classifier with its competitors: compute missing runs, print and write the tables.

Every run is stored in the folder `--out`; the same command resumes an interrupted comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..markdown import between
from ..options import parser
from .run import cells, compute, stored
from .summary import as_frame, markdown
from .tasks import CONFIRMATION, DEVELOPMENT

MARKS = ("<!-- tables of the comparison -->", "<!-- end of the tables -->")


def main(command: str, arguments: Sequence[str]) -> int:
    """Parse, compute, report."""
    options = parser(command, __doc__)
    options.add_argument("--out", type=Path, default=Path("out/comparison"), help="folder of runs")
    options.add_argument("--seeds", type=int, default=20, help="draws of labels per task")
    options.add_argument("--development", action="store_true", help="the tasks for development")
    options.add_argument("--again", nargs="*", default=[], help="methods to compute again")
    options.add_argument("--methods", nargs="*", default=[], help="methods (default: all)")
    options.add_argument("--stored", action="store_true", help="report stored runs only")
    options.add_argument("--page", type=Path, help="a page whose tables are replaced")
    options.add_argument("--picture", type=Path, help="where to draw the comparison")
    asked = options.parse_args(arguments)
    wanted = cells(DEVELOPMENT if asked.development else CONFIRMATION, asked.seeds)
    if not asked.stored:
        compute(wanted, asked.out, tuple(asked.again), tuple(asked.methods))
    frame = as_frame(stored(wanted, asked.out))
    text = markdown(frame)
    print(text)
    if asked.page is not None:
        asked.page.write_text(between(asked.page.read_text(), MARKS, text))
    if asked.picture is not None:
        from .drawing import draw_comparison

        draw_comparison(frame).savefig(asked.picture, dpi=150)
    return 0
