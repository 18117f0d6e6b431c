"""Cached machine code does not outlive the sources it was made from."""

import os

from selftrain.kernels import forget_stale_kernels


def folder_with_cache(tmp_path):
    (tmp_path / "rule.py").write_text("X = 1\n")
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    return tmp_path, cache


def test_changed_source_drops_the_cache(tmp_path):
    folder, cache = folder_with_cache(tmp_path)
    forget_stale_kernels(folder)
    (cache / "solver.nbi").write_text("compiled")
    forget_stale_kernels(folder)
    assert (cache / "solver.nbi").exists()
    (folder / "rule.py").write_text("X = 22\n")
    forget_stale_kernels(folder)
    assert not (cache / "solver.nbi").exists()


def test_a_folder_it_builds_on_counts_too(tmp_path):
    folder, cache = folder_with_cache(tmp_path)
    below = tmp_path / "below"
    below.mkdir()
    (below / "deep.py").write_text("Y = 1\n")
    forget_stale_kernels(folder, [below])
    (cache / "solver.nbi").write_text("compiled")
    later = (below / "deep.py").stat().st_mtime + 10
    os.utime(below / "deep.py", (later, later))
    forget_stale_kernels(folder, [below])
    assert not (cache / "solver.nbi").exists()
