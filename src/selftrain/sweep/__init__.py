"""Diagrams: many points of one computation, declared, computed anywhere, kept, resumed.

`selftrain.sweep` is called: `sweep(problem, recipe, over={...})` computes a task over a grid
(`api`), and `sweep.load(folder)` opens what a store holds. Underneath, a `Grid` names the points, a
`Computation` says what one of them takes and gives, a `Store` keeps every finished point on disk,
`complete` computes what is missing, and `gather` makes one labelled dataset of the whole.
"""

import sys
from types import ModuleType

from .api import load, sweep
from .computation import Computation, Output
from .gather import gather
from .grid import Grid, geometric, linear
from .run import Failure, Task, complete
from .store import Store

__all__ = [
    "Computation",
    "Failure",
    "Grid",
    "Output",
    "Store",
    "Task",
    "complete",
    "gather",
    "geometric",
    "linear",
    "load",
    "sweep",
]


class _CalledSweep(ModuleType):
    """A package that can be called like the function it is named after."""

    __call__ = staticmethod(sweep)


sys.modules[__name__].__class__ = _CalledSweep
