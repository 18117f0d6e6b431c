"""The page on real data runs from its file to its curves, and its commands are commands."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from selftrain.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "real-data.md").read_text()


def test_examples_and_commands_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/real-data.md", "exec"), names)
    theory, surrogate, real = names["theory"], names["surrogate"], names["real"]
    gap = surrogate.mean("error") - theory.error
    assert (np.abs(gap) < 5 * surrogate.sem("error")).all()
    assert real.method == "rows"
    assert np.abs(real.mean("error") / theory.error - 1).max() < 0.25
    assert names["limit"] < names["every_label"] < names["best"].error
    for line in re.findall(r"^selftrain .*$", PAGE, flags=re.MULTILINE):
        if "--data" in line:
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as ended:
                main.run()
            assert not ended.value.code, line
    assert (tmp_path / "run.png").is_file()
    assert (tmp_path / "runs.png").is_file()


def test_images_are_there() -> None:
    for image in re.findall(r"\]\((images/[\w.-]+)\)", PAGE):
        assert (DOCS / image).is_file(), image
