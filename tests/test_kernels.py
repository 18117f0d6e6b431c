"""Cached machine code does not outlive the sources it was made from."""

import ast
from pathlib import Path

import pytest

import selftrain
from selftrain.kernels import forget_stale_kernels

SOURCES = Path(selftrain.__file__).parent


def folder_with_cache(tmp_path):
    (tmp_path / "rule.py").write_text("import numba\nX = 1\n")
    (tmp_path / "words.py").write_text("X = 1\n")
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    forget_stale_kernels(tmp_path)
    (cache / "solver.nbi").write_text("compiled")
    return tmp_path, cache / "solver.nbi"


def test_an_unchanged_source_keeps_the_cache(tmp_path):
    folder, compiled = folder_with_cache(tmp_path)
    forget_stale_kernels(folder)
    assert compiled.exists()


def test_a_changed_source_with_kernels_drops_the_cache(tmp_path):
    folder, compiled = folder_with_cache(tmp_path)
    (folder / "rule.py").write_text("import numba\nX = 2\n")
    forget_stale_kernels(folder)
    assert not compiled.exists()


def test_a_source_without_kernels_does_not_count(tmp_path):
    folder, compiled = folder_with_cache(tmp_path)
    (folder / "words.py").write_text("X = 2\n")
    forget_stale_kernels(folder)
    assert compiled.exists()


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES.rglob("*.py") if "import njit" in path.read_text(encoding="utf-8")],
    ids=lambda path: path.stem,
)
def test_kernels_build_on_kernels_of_their_own_engine(path):
    """What a kernel imports from this package is in a file that counts for the cache, types apart."""
    engine = SOURCES / path.relative_to(SOURCES).parts[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            source = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            if source.is_relative_to(engine):
                assert "numba" in source.with_suffix(".py").read_text(encoding="utf-8")
            else:
                assert {alias.name for alias in node.names} <= {"Array", "Mixture"}
