"""The figures of papers, reproduced and judged.

A paper is a TOML file (`papers`) with the texts of its figures; a figure is a module of `figures`
that says what to compute, how to draw it and how to judge it. `registry` finds figures, `run`
computes, draws, judges and records them, `computations` has what they compute.
"""

from importlib import import_module
from typing import Any

__all__ = ["figure"]


def __getattr__(name: str) -> Any:
    """Import `figure` when it is asked for: computations must not depend on drawings."""
    if name in __all__:
        return getattr(import_module(".registry", __name__), name)
    raise AttributeError(f"module 'selftrain.paper' has no attribute {name!r}")
