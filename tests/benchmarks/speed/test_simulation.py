"""The pieces of `python -m benchmarks simulation`, on sizes that take no time."""

from pathlib import Path

import pytest

from benchmarks.speed import simulation as bench


def test_time_and_memory_of_a_process_of_its_own() -> None:
    used = bench._fresh_process(64, 1)
    assert 0 < used["seconds"] < 10
    assert 0.05 < used["gigabytes"] < 2


def test_spread_falls_as_the_root_of_the_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "SPREAD_SIZES", (64, 256, 1024))
    (line,) = bench._spread(tmp_path)
    assert line.figure == pytest.approx(-0.5, abs=0.1)
    assert (tmp_path / "simulation-spread.png").stat().st_size > 1000


def test_scikit_learn_does_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "FEATURES", 200)
    _, error, _ = bench._scikit_learn()
    assert error < 1e-5
