"""Points that take a moment, too long or too much, or end their process. They have a module of
their own, which workers find by its folder.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress

import numpy as np


def slowly(x: int) -> dict[str, object]:
    """Numbers with all their digits, and a moment in which to be killed."""
    time.sleep(0.01)
    return {"root": np.sqrt(x + 0.1), "row": np.sin(np.arange(3) * x)}


def suicidal(x: int) -> int:
    """One point ends its process."""
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def endless(x: int) -> int:
    """One point does not end."""
    while x == 1:
        pass
    return x


def blocked(x: int) -> int:
    """One point waits in a call of the system, and one in compiled code that holds the lock."""
    if x == 1:
        time.sleep(60)
    if x == 2:
        ctypes.PyDLL(None).sleep(60)
    return x


def stubborn(x: int) -> int:
    """One point catches whatever comes, and ends as if nothing had happened."""
    with suppress(Exception):
        endless(x)
    return x


def greedy(x: int) -> int:
    """So many bytes."""
    return int(np.ones(x, dtype="u1").sum()) if x else 0


class Unloadable:
    """A function that ends every process but its own when it is unpacked."""

    def __reduce__(self) -> tuple[object, ...]:
        return _unpacked, (os.getpid(),)

    def __call__(self, x: int) -> int:
        return x


def _unpacked(owner: int) -> Unloadable:
    if os.getpid() != owner:
        os._exit(3)
    return Unloadable()
