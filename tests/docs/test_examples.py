"""The notebooks of examples/ run from a fresh kernel, and hold the outputs of such a run.

One whose metadata names packages that it `needs` runs where these are installed.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from selftrain.runtime.progress import PROGRESS

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


def outputs(book):
    """What the cells show, without remarks on stderr (the first compilation, for example) and lines
    of progress, which a fast machine does not show.
    """
    every = [output for cell in book.cells for output in cell.get("outputs", ())]
    shown = [one for one in every if one.get("metadata", {}) != PROGRESS]
    return [one for one in shown if one.get("name") != "stderr"]


def test_there_are_five():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_pictures(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    stored = outputs(book)
    assert any("image/png" in one.get("data", {}) for one in stored)
    missing = [name for name in book.metadata.get("needs", ()) if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    for helper in path.parent.glob("*.py"):
        shutil.copy(helper, tmp_path)
    place = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(book, timeout=600, coalesce_streams=True, resources=place)
    client.execute()
    assert [one["output_type"] for one in outputs(book)] == [one["output_type"] for one in stored]
