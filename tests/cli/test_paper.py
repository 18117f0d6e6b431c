"""`selftrain paper` as a shell sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from selftrain.cli import paper
from selftrain.paper.registry import IDS
from selftrain.paper.run import FigureOutcome

FIGURE = "annealing"
"""The cheapest one."""


def ran(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "selftrain", "paper", *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, encoding="utf-8",
    )  # fmt: skip


def test_list_has_every_figure(
    tmp_path: Path, selftrain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ran("list", "--json", cwd=tmp_path)
    assert done.returncode == 0
    told: dict[str, Any] = json.loads(done.stdout)
    assert [one["id"] for one in told["figures"]] == list(IDS)
    assert {one["state"] for one in told["figures"]} == {"not made"}
    monkeypatch.chdir(tmp_path)
    shown = selftrain("paper", "list").stdout
    assert all(name in shown for name in IDS)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "continum"), 2, "did you mean 'continuum'?"),
        (("run", "fig99"), 2, "fig1 to fig15"),
        (("run", "fig4", "--set", "rho=much"), 2, "NAME=VALUE"),
        (("run", "fig4", "--set", "rhoo=0.3"), 2, "did you mean 'rho'?"),
        (("run", "cosine", "--out", "/dev/null/here"), 1, "/dev/null/here: cannot be written"),
    ],
)
def test_bad_input_is_one_line(
    selftrain: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = selftrain("paper", *arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_figure_is_made_shown_and_found_again(tmp_path: Path) -> None:
    done = ran("run", FIGURE, "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert FIGURE in done.stdout
    assert "holds" in done.stdout
    assert "1 figure with data and records in out/quick" in done.stderr
    assert (tmp_path / "out/quick" / f"{FIGURE}.png").stat().st_size > 10_000
    assert f'id="{FIGURE}"' in (tmp_path / "out/quick/index.html").read_text()
    listed = json.loads(ran("list", "--quick", "--json", cwd=tmp_path).stdout)["figures"]
    states = {one["id"]: one["state"] for one in listed}
    assert states.pop(FIGURE).startswith("made, claims: ")
    assert not any(state.startswith("made") for state in states.values())
    again = json.loads(ran("run", FIGURE, "--quick", "--json", cwd=tmp_path).stdout)
    assert [one["id"] for one in again["figures"]] == [FIGURE]
    assert again["figures"][0]["failures"] == []


def test_panels_that_a_change_leaves_as_they_are_are_said(capsys: Any) -> None:
    record = {"figure": "cosine-rho0.3", "quick": True, "claims": [], "findings": []}
    record["unchanged"] = {"rho": ["(c)", "(d)"]}
    paper._show([FigureOutcome("cosine-rho0.3", record)], Path("out"))
    assert "cosine-rho0.3: Not changed by `rho`: (c); (d)." in capsys.readouterr().err
