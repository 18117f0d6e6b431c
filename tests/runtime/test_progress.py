"""Long work says how far it is: to a terminal and a notebook, to a pipe only if asked, always to a
function. Every function takes the same `progress=`.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from selftrain import (
    Clusters,
    Problem,
    Recipe,
    SelfTrainingLinearClassifier,
    continuum,
    gradient,
    optimize,
    plan,
    simulate,
    solve,
    sweep,
)
from selftrain.errors import InvalidInput
from selftrain.results import ProgressReport
from selftrain.runtime import progress
from selftrain.runtime.progress import Progress, quiet
from selftrain.theory import exact

WORK = """
import time
from selftrain.runtime.progress import Progress
with Progress(4, "seeds", {show}) as bar:
    for i in range(4):
        time.sleep({seconds})
        bar.advance(failed=i == 1)
"""

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=4)
RECIPE = Recipe(lambda_l=0.05, lambda_u=0.05)


def on_a_terminal(code: str) -> str:
    """What some code writes to a terminal of its own."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=follower,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(follower)
        text = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:
                break
            if not piece:
                break
            text += piece
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(leader)
    return text.decode()


def test_a_terminal_sees_done_failed_rate_and_time_left() -> None:
    text = on_a_terminal(WORK.format(show=None, seconds=0.5))
    assert "seeds 3/4, 1 failed, " in text
    assert re.search(r"per second, 0:0\d left", text)


def test_a_terminal_sees_a_first_piece_that_takes_long() -> None:
    text = on_a_terminal(WORK.format(show=None, seconds=1.5))
    assert "seeds 0/4" in text


@pytest.mark.parametrize(("show", "seconds"), [("False", 0.4), ("None", 0.01)])
def test_a_terminal_sees_nothing_of_short_work_or_when_told_no(show: str, seconds: float) -> None:
    assert on_a_terminal(WORK.format(show=show, seconds=seconds)) == ""


@pytest.mark.parametrize(("show", "lines"), [("None", 0), ("True", 2)])
def test_a_pipe_hears_of_it_only_if_asked(show: str, lines: int) -> None:
    told = subprocess.run(
        [sys.executable, "-c", WORK.format(show=show, seconds=0.4)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(told.stderr.splitlines()) == lines
    assert "\x1b" not in told.stderr
    if lines:
        assert told.stderr.splitlines()[-1].startswith("seeds 4/4, 1 failed, ")


def test_a_long_run_tells_a_terminal_the_time_left() -> None:
    """Two hundred thousand steps of compiled code, from which progress comes all the same. How
    long they take is up to the machine: here any time is long.
    """
    text = on_a_terminal(
        "from selftrain import Problem, Recipe, solve\n"
        "from selftrain.runtime import progress\n"
        "progress.SHOW_AFTER = 0.0\n"
        "p = Problem(0.5, 2.0, 0.5, 0.5625, steps=200_000)\n"
        "solve(p, Recipe(lambda_u=1e-5))\n"
    )
    assert "steps " in text
    assert "/200001, " in text
    assert " left" in text


def test_a_notebook_has_one_line_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in for IPython, which is no dependency: its three calls are all that is
    used.
    """
    lines: list[str] = []

    class ZMQInteractiveShell: ...

    class Place:
        def update(self, line: dict[str, str], raw: bool, metadata: object) -> None:
            lines.append(line["text/plain"])

    def display(line: dict[str, str], raw: bool, display_id: bool, metadata: object) -> Place:
        assert raw
        assert display_id
        lines.append(line["text/plain"])
        return Place()

    shell = SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.1)
    assert progress.watched()
    with Progress(2, "points") as bar:
        time.sleep(0.2)
        bar.advance()
        bar.advance()
    assert lines[0] == "points 0/2"
    assert lines[-1].startswith("points 2/2, ")


def test_the_time_left_goes_by_what_was_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    seen: list[ProgressReport] = []
    with Progress(3, "points", seen.append, expected=10.0) as bar:
        now[0] = 40.0
        bar.advance(expected=8.0)  # the longest first: a fifth of the work is left, not two thirds
        assert str(seen[-1]) == "points 1/3, 40 s each, 0:10 left"
        bar.extend(1, expected=6.0)
        assert bar.report().left == pytest.approx(40.0)
    assert (seen[-1].share, seen[-1].seconds) == (0.8, 40.0)


def test_the_start_of_processes_does_not_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Progress(1001, "points", False) as bar:
        now[0] = 20.0  # seconds until the first process was there
        bar.advance()
        assert bar.report().left is None
        now[0] = 21.0
        bar.advance(100)
        assert bar.report().left == pytest.approx(9.0)


def test_work_inside_other_work_leaves_reporting_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.0)
    monkeypatch.setattr(progress, "watched", lambda: pytest.fail("it looked for a terminal"))
    outer: list[ProgressReport] = []
    with Progress(1, "searches", outer.append) as bar:
        with Progress(1, "runs") as inner:
            inner.advance()
        bar.advance()
    with quiet(), Progress(1, "runs") as alone:
        alone.advance()
    assert [report.noun for report in outer] == ["searches"]


SHAPE = Clusters(mean=np.full(6, 0.8), covariance=np.linspace(0.5, 1.5, 6))
SHAPED = Problem(alpha_l=1.0, alpha_u=4.0, rho=0.4, clusters=SHAPE, steps=2)
GENERATOR = np.random.default_rng(0)
LABELS = np.repeat([0, 1], 60)
ROWS = GENERATOR.normal(size=(120, 4)) + LABELS[:, None]
TARGET = np.where(np.arange(120) % 3 == 0, LABELS, -1)

CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "solve": ("steps", lambda p: solve(PROBLEM, RECIPE, progress=p)),
    "squared": ("steps", lambda p: solve(PROBLEM.replace(loss="squared"), RECIPE, progress=p)),
    "shapes": ("steps", lambda p: solve(SHAPED, RECIPE, progress=p)),
    "data reuse": (
        "steps of replicates",
        lambda p: solve(PROBLEM.replace(batches="reused", steps=5), RECIPE, 1e-3, progress=p),
    ),
    "general covariance, data reuse": (
        "steps of replicates",
        lambda p: solve(SHAPED.replace(batches="reused"), RECIPE, 1e-3, progress=p),
    ),
    "gradient": ("steps", lambda p: gradient(solve(PROBLEM, RECIPE), progress=p)),
    "gradient of shapes": (
        "steps",
        lambda p: gradient(solve(SHAPED, RECIPE), progress=p)["lambda_u"],
    ),
    "continuum": ("evaluations", lambda p: continuum(PROBLEM, RECIPE, progress=p)),
    "optimize": ("runs", lambda p: optimize(PROBLEM, start=RECIPE, progress=p)),
    "simulate": ("seeds", lambda p: simulate(PROBLEM, RECIPE, 64, 2, progress=p)),
    "sweep": (
        "points",
        lambda p: sweep(PROBLEM, RECIPE, {"rho": [0.3, 0.5]}, workers=0, progress=p),
    ),
    "plan": ("fits", lambda p: plan(ROWS, TARGET, progress=p)),
    "classifier": ("classes", lambda p: SelfTrainingLinearClassifier(progress=p).fit(ROWS, TARGET)),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_function_reports_to_a_function(name: str) -> None:
    noun, call = CALLS[name]
    seen: list[ProgressReport] = []
    call(seen.append)
    last = seen[-1]
    assert {report.noun for report in seen} == {noun}
    assert all(one.done <= other.done for one, other in pairwise(seen))
    assert last.done > 0
    if name not in ("optimize", "continuum"):
        assert last.done == last.total
    if name == "optimize":
        assert last.best == pytest.approx(optimize(PROBLEM, start=RECIPE).error, abs=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_every_function_refuses_another_word(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"progress must be .*, got 'yes'"):
        CALLS[name][1]("yes")


def test_what_the_function_raises_ends_the_work() -> None:
    def enough(report: ProgressReport) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        solve(PROBLEM, RECIPE, progress=enough)


def test_pieces_do_not_change_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The march stops to report: within the tolerance the run is the one without stops."""
    problem = PROBLEM.replace(steps=100, rho=0.5)
    whole = solve(problem, RECIPE)
    monkeypatch.setattr(exact, "MARCHED", 6)
    seen: list[ProgressReport] = []
    parts = solve(problem, RECIPE, progress=seen.append)
    np.testing.assert_allclose(parts.m, whole.m, rtol=1e-9)
    np.testing.assert_allclose(parts.v, whole.v, rtol=1e-9)
    assert len(seen) >= 15
