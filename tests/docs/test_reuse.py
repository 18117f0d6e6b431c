"""The examples of the page on rows used again run, and say what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reuse.md").read_text()


def test_examples_run_in_order() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/reuse.md", "exec"), names)
    runs, theory = names["ensemble"].q, names["run"].q
    assert np.all(np.abs(runs.mean(axis=0) / theory - 1) < 0.3)
    assert names["seen"].cdf(0.0, y=1) < names["new"].cdf(0.0, y=1)


def test_links_and_images_are_there() -> None:
    for name in re.findall(r"\]\(([\w./-]+)\)", PAGE):
        assert (DOCS / name).is_file(), name
