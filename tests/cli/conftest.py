"""The command in this process: a process of its own would import everything again for each test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from selftrain.cli import main


class Ended(NamedTuple):
    """How a command ended; named like the fields of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def selftrain(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run the command in this process; gives exit code, stdout and stderr."""

    def call(*arguments: Any) -> Ended:
        monkeypatch.setattr(sys, "argv", ["selftrain", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return call
