"""The figures of papers, reproduced, with a check of every claim.

A paper is a TOML file (`papers`) with the texts of its figures; a figure is a module of `figures`
that defines what to compute, how to draw it and how to judge the claims. `registry` finds figures,
`run` computes, draws, judges and records them, `computations` has the functions that they evaluate.
"""

from importlib import import_module
from typing import Any

__all__ = ["figure"]


def __getattr__(name: str) -> Any:
    """Import `figure` on first use: computations must not depend on the code that draws."""
    if name in __all__:
        return getattr(import_module(".registry", __name__), name)
    raise AttributeError(f"module 'selftrain.paper' has no attribute {name!r}")
