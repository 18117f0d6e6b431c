"""Sweeps: a computation at every point of a grid, stored and resumed, locally or on a cluster.

`sweep` (also `selftrain.sweep`) does it in one call; `load` reads a store. They are built from a
`Grid` of points, a `Computation` (the function and its outputs), a `Store` (an SQLite file of
finished points), `complete`, which computes the missing points, and `gather`, which returns them as
one labelled dataset.
"""

from typing import TYPE_CHECKING, Any

from .api import load, sweep
from .computation import Computation, Failure, Output, Task
from .grid import Grid, geometric, linear
from .scheduling import complete
from .store import Memory, Store

if TYPE_CHECKING:
    from .dataset import Sweep, gather

__all__ = [
    "Computation", "Failure", "Grid", "Memory", "Output", "Store", "Sweep", "Task",
    "complete", "gather", "geometric", "linear", "load", "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import `dataset`, which needs xarray, on first use: worker processes start sooner."""
    if name not in ("Sweep", "gather"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import dataset

    return getattr(dataset, name)
