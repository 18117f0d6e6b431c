"""The page of the benchmarks and its check, on records made up here."""

import copy
import json
import subprocess
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.speed import record as recording
from benchmarks.speed.check import changes, missing
from benchmarks.speed.measure import Line
from benchmarks.speed.page import page

LINES = [
    Line("1024 steps", 8.0, "ms", 10, False),
    Line("paper's way", 400.0, "x", 20, True, "a | b"),
    Line("gradient over forward", 1.0, "x", 1.5, False),
    Line("memory", 0.6, "GB", 1.0, False),
    Line("exponent", -0.5, ""),
]


def made(yardstick: float = 0.1, noise: float = 0.0, **figures: float) -> dict[str, Any]:
    """A record of one part, with some figures changed."""
    lines = [
        {**line.to_dict(), "figure": figures.get(line.what, line.figure), "noise": noise}
        for line in LINES
    ]
    return {
        "machine": {"processor": "a processor", "cores": 2, "system": "a system"},
        "versions": {"python": "3.11", "selftrain": "1.0.0"},
        "parts": {
            "theory": {
                "rounds": 1,
                "seconds": 3.0,
                "lines": lines,
                "yardstick": [yardstick, yardstick],
            }
        },
    }


def slower(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [change.what for change in changes(old, new) if change.slower]


def test_nothing_is_slower_than_itself():
    assert slower(made(), made()) == []


@pytest.mark.parametrize(
    ("what", "worse", "better"),
    [
        ("1024 steps", 10.0, 6.0),
        ("paper's way", 300.0, 500.0),
        ("gradient over forward", 1.3, 0.8),
        ("memory", 0.8, 0.5),
    ],
)
def test_each_kind_of_figure_has_its_direction(what, worse, better):
    assert slower(made(), made(**{what: worse})) == [what]
    assert slower(made(), made(**{what: better})) == []


def test_a_change_within_the_noise_of_both_records_is_none():
    assert slower(made(), made(**{"1024 steps": 9.5})) == []  # 19 %, both machines drift by 10 %
    assert slower(made(noise=0.2), made(noise=0.2, **{"1024 steps": 11.0})) == []
    assert slower(made(noise=0.1), made(noise=0.1, **{"1024 steps": 11.0})) == ["1024 steps"]


def test_a_slower_machine_is_not_a_slower_program():
    assert slower(made(0.1), made(0.2, **{"1024 steps": 16.0})) == []
    assert slower(made(0.2), made(0.1, **{"1024 steps": 8.0})) == ["1024 steps"]


def test_a_machine_that_drifts_allows_more():
    drifting = made(**{"1024 steps": 11.0})
    drifting["parts"]["theory"]["yardstick"] = [0.1, 0.14]
    assert slower(made(), drifting) == []


def test_a_figure_that_is_gone_is_named():
    new = made()
    del new["parts"]["theory"]["lines"][1]
    assert missing(made(), new) == ["theory, paper's way"]


def test_the_page_has_machine_versions_ratios_and_every_figure():
    text = page(made(noise=0.07))
    assert "a processor, 2 cores" in text
    assert "python 3.11, selftrain 1.0.0" in text
    assert "Not measured: gradients" in text
    assert text.count("| paper's way | 400 x |") == 2  # among the ratios, and in its part
    assert "a \\| b" in text
    assert all(line.what in text for line in LINES)


def test_a_part_that_failed_is_said():
    failed = made()
    failed["parts"]["theory"] |= {"rounds": 0, "lines": [], "failed": "failed: why"}
    assert "**It failed: why**" in page(failed)


def test_parts_of_an_older_record_stay_unless_the_machine_changed():
    old, new = made(), made()
    old["parts"]["covariance"] = old["parts"].pop("theory")
    assert list(recording.merged(old, new)["parts"]) == ["theory", "covariance"]
    other = copy.deepcopy(old)
    other["machine"]["processor"] = "another"
    assert list(recording.merged(other, new)["parts"]) == ["theory"]


def test_a_busy_moment_is_forgotten_with_the_part_it_was_measured_in(monkeypatch, tmp_path):
    """A part measured again on a quiet machine leaves nothing of the busy one in the noise."""
    pace = [0.1]
    monkeypatch.setattr(recording, "_measured", lambda _: [Line("speed", 1.0, "s").to_dict()])
    monkeypatch.setattr(recording, "yardstick", lambda: pace[0])
    for pace[0], said in ((0.2, "at least 10 %"), (0.1, "at least 100 %"), (0.1, "at least 10 %")):
        parts = ["covariance"] if said == "at least 100 %" else []
        assert main(["all", *parts, "--out", str(tmp_path)]) == 0
        assert f"noise of a figure {said}." in (tmp_path / "benchmarks.md").read_text()


def test_rounds_go_on_while_a_part_is_short(monkeypatch):
    figures = iter((1.0, 1.2, 1.1))
    monkeypatch.setattr(
        recording, "_measured", lambda _: [Line("speed", next(figures), "s").to_dict()]
    )
    monkeypatch.setattr(recording, "yardstick", lambda: 0.1)
    found = recording.measure(["theory"], notice=lambda _: None)["parts"]["theory"]
    assert found["rounds"] == recording.ROUNDS
    assert found["lines"][0]["figure"] == 1.1
    assert found["lines"][0]["noise"] == pytest.approx(0.2 / 1.1, abs=1e-3)


def test_a_part_that_fails_does_not_stop_the_others(monkeypatch):
    def measured(part: str) -> list[dict[str, Any]]:
        if part == "theory":
            raise subprocess.CalledProcessError(1, "bench", stderr="first\nno memory")
        return [Line("speed", 1.0, "s").to_dict()]

    monkeypatch.setattr(recording, "_measured", measured)
    monkeypatch.setattr(recording, "yardstick", lambda: 0.1)
    parts = recording.measure(["theory", "covariance"], notice=lambda _: None)["parts"]
    assert parts["theory"]["failed"] == "failed: no memory"
    assert len(parts["covariance"]["lines"]) == 1


def test_the_command_writes_the_page_and_the_check_names_what_is_slower(
    monkeypatch, tmp_path, capsys
):
    speed = [8.0]

    def measured(part: str) -> list[dict[str, Any]]:
        return [Line("1024 steps", speed[0], "ms").to_dict()]

    monkeypatch.setattr(recording, "_measured", measured)
    monkeypatch.setattr(recording, "yardstick", lambda: 0.1)
    assert main(["all", "--out", str(tmp_path)]) == 0
    assert list(json.loads((tmp_path / "benchmarks.json").read_text())["parts"]) == list(
        recording.PARTS
    )
    assert "1024 steps" in (tmp_path / "benchmarks.md").read_text()
    against = ["check", "theory", "--against", str(tmp_path / "benchmarks.json")]
    assert main(against) == 0
    speed[0] = 12.0
    capsys.readouterr()
    assert main(against) == 1
    printed = capsys.readouterr().out
    assert "theory, 1024 steps: 8 ms before, 12 ms now, 1.50 times worse" in printed
