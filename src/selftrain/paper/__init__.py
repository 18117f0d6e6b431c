"""The paper, figure by figure: what each is made of, how it is drawn, what it claims.

A figure is a module of `figures` with a `FIGURE`; `registry` knows them all, `run` computes, draws,
judges and records them. `computations` has the computations that they share.
"""

from importlib import import_module
from typing import Any

__all__ = ["figure", "figures"]


def __getattr__(name: str) -> Any:
    """`figure` and `figures`, imported when asked for: computations must not depend on drawings."""
    if name in __all__:
        return getattr(import_module(".registry", __name__), name)
    raise AttributeError(f"module 'selftrain.paper' has no attribute {name!r}")
