"""The examples of the page on simulation run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()


def test_examples_run_in_order() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/simulation.md", "exec"), names)
    assert names["comparison"].consistent()
    assert names["runs"].problem.batches == "reused"


def test_images_are_there() -> None:
    docs = Path(__file__).parents[2] / "docs"
    both = PAGE + (docs / "simulation-engines.md").read_text("utf-8")
    images = re.findall(r"\]\((images/[\w.-]+)\)", both)
    assert len(images) == 3
    for image in images:
        assert (docs / image).is_file(), image
