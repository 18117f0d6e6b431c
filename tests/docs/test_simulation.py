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
    for image in re.findall(r"\]\((images/[\w.-]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / image).is_file(), image
