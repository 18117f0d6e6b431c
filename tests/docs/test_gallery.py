"""Thumbnails of the gallery: one panel each, so that a reader can make out what they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = 300
"""Width of a thumbnail on the page, in pixels."""

LETTER, DOTS = 8 / 72, 100
"""Height of the letters of labels in inches, and dots per inch."""

SMALLEST = 5
"""Height in pixels below which letters cannot be read."""


@pytest.mark.parametrize(
    "name", re.findall(r"images/gallery/(\w+\.png)", (DOCS / "gallery.md").read_text("utf-8"))
)
def test_letters_of_a_thumbnail_can_be_read(name: str) -> None:
    with Image.open(DOCS / "images" / "gallery" / name) as picture:
        assert SHOWN / picture.width * LETTER * DOTS >= SMALLEST
