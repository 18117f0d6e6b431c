"""Sweeps: one computation at every point of a grid, stored, resumed, on this machine or a cluster.

`sweep` is one call (`selftrain.sweep`), `load` opens what a store holds. Underneath, a `Grid` names
the points, a `Computation` says what one of them takes and gives, a `Store` is an SQLite file of
finished points, `complete` computes what is missing, `gather` makes one labelled dataset of it.
"""

from typing import TYPE_CHECKING, Any

from .api import load, sweep
from .computation import Computation, Output
from .grid import Grid, geometric, linear
from .run import Failure, Task, complete
from .store import Memory, Store

if TYPE_CHECKING:
    from .dataset import Sweep, gather

__all__ = [
    "Computation", "Failure", "Grid", "Memory", "Output", "Store", "Sweep", "Task",
    "complete", "gather", "geometric", "linear", "load", "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what needs xarray when it is asked for: processes that compute points start sooner."""
    if name not in ("Sweep", "gather"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import dataset

    return getattr(dataset, name)
