"""The examples of the pages on continuous time run, and say what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("continuum.md", "continuum-derivation.md")
PAGE = "\n".join((DOCS / page).read_text("utf-8") for page in PAGES)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/continuum*.md", "exec"), made)
    return made


def test_numbers_in_the_comments(names: dict[str, Any]) -> None:
    path, form = names["path"], names["form"]
    assert path.best.tau == pytest.approx(0.0639, abs=5e-5)
    assert path.best.error == pytest.approx(0.1708, abs=5e-5)
    assert path.best.where == "interior"
    assert path.half_aligned == pytest.approx(0.024, abs=5e-4)
    assert path.aligned is None
    scales = (form.tau_m, form.tau_v, form.tau_squared_cosine)
    assert scales == pytest.approx((1.52, 0.28, 0.45), abs=5e-3)
    assert form.floor() == pytest.approx(0.0049, abs=5e-5)
    last = names["last"]
    assert (last.q, last.one_minus_squared_cosine, last.error) == (
        pytest.approx(8.46, abs=5e-3),
        pytest.approx(0.0019, abs=5e-5),
        pytest.approx(0.08918, abs=5e-6),
    )
    fixed, wrong = names["fixed"], names["wrong"]
    assert fixed.rates[0] == pytest.approx(-7.27, abs=5e-3)
    assert (fixed.always_positive, fixed.reached, wrong.reversed) == (False, True, True)


def test_images_are_there() -> None:
    images = re.findall(r"\]\((images/[\w.-]+)\)", PAGE)
    assert len(images) == 4
    for image in images:
        assert (DOCS / image).is_file(), image
