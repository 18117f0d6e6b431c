"""Many points of one computation: declared, computed anywhere, kept, resumed.

A `Grid` names the points, a `Computation` says what one of them takes and gives, a `Store` keeps
every finished point on disk, `complete` computes what is missing, and `gather` makes one labelled
dataset of the whole.
"""

from .computation import Computation, Output
from .gather import gather
from .grid import Grid
from .run import Failure, Task, complete
from .store import Store

__all__ = ["Computation", "Failure", "Grid", "Output", "Store", "Task", "complete", "gather"]
