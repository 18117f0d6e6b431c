"""Long work says how far it is: to a terminal and a notebook, and to a pipe only if asked."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from types import SimpleNamespace

import pytest

from selftrain.runtime import progress
from selftrain.runtime.progress import Count, Progress

WORK = """
import time
from selftrain.runtime.progress import Progress
with Progress(4, "seeds", {show}) as bar:
    for i in range(4):
        time.sleep(0.15)
        bar.advance(failed=i == 1)
"""


def on_a_terminal(show: str) -> str:
    """What the work writes to a terminal of its own."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", WORK.format(show=show)],
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
    text = on_a_terminal("None")
    assert "seeds 3/4, 1 failed, " in text
    assert "per second, 0:00 left" in text


def test_a_terminal_that_is_told_no_sees_nothing() -> None:
    assert on_a_terminal("False") == ""


@pytest.mark.parametrize(("show", "lines"), [("None", 0), ("True", 2)])
def test_a_pipe_hears_of_it_only_if_asked(show: str, lines: int) -> None:
    told = subprocess.run(
        [sys.executable, "-c", WORK.format(show=show)], capture_output=True, text=True, check=True
    )
    assert len(told.stderr.splitlines()) == lines
    assert "\x1b" not in told.stderr
    if lines:
        assert told.stderr.splitlines()[-1].startswith("seeds 4/4, 1 failed, ")


def test_a_notebook_has_one_line_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in for IPython, which is no dependency: its three calls are all that is
    used.
    """
    lines: list[str] = []

    class ZMQInteractiveShell: ...

    class Place:
        def update(self, line: object) -> None:
            lines.append(repr(line))

    def display(line: object, display_id: bool) -> Place:
        assert display_id
        lines.append(repr(line))
        return Place()

    shell = SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    assert progress.watched()
    with Progress(2, "points") as bar:
        bar.advance()
        bar.advance()
    assert lines[0] == "points 0/2"
    assert lines[-1].startswith("points 2/2, ")


def test_the_time_left_goes_by_what_was_expected() -> None:
    count = Count("points", total=3, expected=10.0, begun=0.0)
    count.done, count.behind = (
        1,
        8.0,
    )  # the longest first: a fifth of the work is left, not two thirds
    assert count.sentence(now=40.0).endswith("40 s each, 0:10 left")
