"""A limit on the memory of a process, where the system has one."""

from __future__ import annotations

import sys

__all__ = ["TOO_MUCH_MEMORY", "limit_memory"]

TOO_MUCH_MEMORY = (
    "it needs more memory than the {size:.2g} GB a job of this page may use: try fewer rows,"
    " columns, features or steps, or the command line, which has no such limit"
)


def limit_memory(size: int) -> None:
    """Let this process use no more than `size` bytes: what is beyond raises MemoryError.

    Counts private writable memory (RLIMIT_DATA), not addresses that are only reserved. macOS and
    Windows do not enforce it: there the limits of what is accepted have to do.
    """
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (size, hard))
