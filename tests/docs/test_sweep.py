"""The examples of the page on sweeps run, its grid file is one, and so are those of the
diagrams.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from selftrain import Recipe, solve
from selftrain.cli.gridfile import read_grid

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sweep.md").read_text()


def test_examples_run_in_order(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)))
    names: dict[str, Any] = {}
    exec(compile(script.read_text(), str(script), "exec"), names)
    assert names["data"]["error"].shape == (3, 4)
    run = solve(names["problem"].replace(rho=0.5), Recipe())
    found = names["found"].sel(rho=0.5, target=0.1)
    assert float(found["distance"]) == abs(run.error[-1] - 0.1)


def test_the_grid_file_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "grid.toml").write_text(text)
    plan = read_grid(tmp_path / "grid.toml")
    assert plan.grid.shape == (3, 10)
    assert plan.call.options["over"] == ("lambda_l", "lambda_u")


@pytest.mark.parametrize("name", ["gain", "collapse"])
def test_grid_files_of_the_diagrams_have_sixty_by_sixty_points(name: str) -> None:
    assert read_grid(DOCS.parent / "examples" / "grids" / f"{name}.toml").grid.shape == (60, 60)


def test_images_are_there() -> None:
    images = re.findall(r"\]\((images/[\w.-]+)\)", PAGE)
    assert images
    for image in images:
        assert (DOCS / image).is_file(), image
