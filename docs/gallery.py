"""Draw the pictures of the gallery: `python docs/gallery.py` runs the code of docs/gallery.md."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

PAGE = Path(__file__).with_suffix(".md")
PICTURES = PAGE.parent / "images" / "gallery"
RESOLUTION = 100
"""Dots per inch: thumbnails of one panel, of about 20 kB, that are legible at 300 pixels."""


def blocks(text: str) -> list[str]:
    """Return the Python code of a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def draw(folder: Path) -> None:
    """Run the code of the page in a folder, where it leaves its pictures."""
    names: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        with mpl.rc_context({"savefig.dpi": RESOLUTION}):
            for code in blocks(PAGE.read_text("utf-8")):
                exec(compile(code, str(PAGE), "exec"), names)
    finally:
        os.chdir(before)
        pyplot.close("all")


if __name__ == "__main__":
    mpl.use("Agg")
    PICTURES.mkdir(exist_ok=True)
    draw(PICTURES)
