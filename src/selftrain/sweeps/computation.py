"""What a sweep computes: a function, the quantities it returns, and the points of a grid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import SelfTrainError
from .function_identity import Identity, identify
from .grid import Grid, Point
from .package_code import code_digest

if TYPE_CHECKING:
    import xarray as xr

    from .store import Finished, Memory

DEFAULT_SECONDS = 0.05
"""Time assumed for a point of a computation without an estimate."""


@dataclass(frozen=True)
class Output:
    """A quantity that every point returns.

    Attributes:
        symbol: the paper's symbol, in LaTeX.
        dims: names of its own dimensions. An output with the name of a dimension (such as "t")
            gives the coordinates along it.
    """

    symbol: str
    dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Computation:
    """A function of plain parameters that returns numbers and arrays by name.

    Arguments:
        function: called with the parameters of a point as keywords; the same parameters must give
            the same values, in any process. A callable object may have three attributes that
            determine its keys: `source`, the function that does its work; `reached`, other objects
            that it uses at every point; `parameters`, a method that returns everything else that
            the values of a point depend on.
        outputs: the quantities that it returns; None accepts any.
        seconds: function that estimates the time of a point from its parameters, to order points,
            to collect cheap ones in batches, and to predict the remaining time.
    """

    function: Callable[..., Mapping[str, Any]]
    outputs: Mapping[str, Output] | None
    seconds: Callable[..., float] = field(default=lambda **_: DEFAULT_SECONDS)

    @property
    def name(self) -> str:
        """The dotted name of the function."""
        return name_of(getattr(self.function, "source", self.function), ".")

    @cached_property
    def identity(self) -> Identity:
        """The identity of the function, determined only once: calls may change its state."""
        source = getattr(self.function, "source", self.function)
        return identify(source, getattr(self.function, "reached", ()))

    @cached_property
    def digest(self) -> str:
        """The digest of the function, of all that it uses, and of this package's code in it."""
        whole = f"{self.identity.digest} {code_digest(self.identity.package_modules)}"
        return hashlib.sha256(whole.encode()).hexdigest()

    def key(self, point: Point) -> str:
        """Return the key under which the values of a point are stored."""
        parameters = getattr(self.function, "parameters", dict)(point)
        parts = [self.name, self.digest, parameters]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:40]


def name_of(function: Any, separator: str = ":") -> str:
    """Return the module and name of a function; for a `partial`, of its function; for any other
    callable object, of its class.

    >>> from functools import partial
    >>> name_of(json.dumps), name_of(partial(json.dumps, indent=1))
    ('json:dumps', 'json:dumps')
    """
    while not hasattr(function, "__qualname__"):
        function = getattr(function, "func", None) or type(function)
    return f"{function.__module__}{separator}{function.__qualname__}"


@dataclass(frozen=True)
class Task:
    """A computation at the points of a grid.

    Attributes:
        names: the outputs that are needed; all by default.
    """

    computation: Computation
    grid: Grid
    names: tuple[str, ...] | None = None
    _keys: dict[type, list[str]] = field(default_factory=dict, init=False, compare=False)

    def keys(self, store: Memory) -> list[str]:
        """Return the keys of the points in a store of this type (cached: it takes a while)."""
        if type(store) not in self._keys:
            found = [store.key(self.computation, point) for point in self.grid.points]
            self._keys[type(store)] = found
        return self._keys[type(store)]

    @property
    def seconds(self) -> float:
        """Estimated time for all points, computed sequentially."""
        return sum(self.computation.seconds(**point) for point in self.grid.points)

    def find(self, store: Memory) -> list[Finished | None]:
        """Return the stored points in grid order; None where needed values are missing."""
        needed = tuple(self.computation.outputs or ()) if self.names is None else self.names
        return [store.get(key, needed) for key in self.keys(store)]

    def stored(self, store: Memory) -> int:
        """Return the number of points whose values are in the store."""
        return sum(one is not None and one.reason is None for one in self.find(store))

    def load(self, store: Memory) -> xr.Dataset:
        """Return all points as a dataset; raise if any is missing."""
        from .dataset import gather

        values = [one.values for one in self._all_done(store)]
        data = gather(self.grid, self.computation.outputs, values)
        return data.assign_attrs(computation=self.computation.name)

    def taken(self, store: Memory) -> float:
        """Return the processor time that all points took, in seconds."""
        return sum(one.seconds for one in self._all_done(store))

    def _all_done(self, store: Memory) -> list[Finished]:
        found = self.find(store)
        done = [one for one in found if one is not None and one.reason is None]
        if len(done) < len(found):
            damage = "".join(f"; damaged: {reason}" for reason in store.damage[:1])
            raise SelfTrainError(
                f"{len(found) - len(done)} of {len(found)} points are not in the store; "
                f"`complete` computes them{damage}"
            )
        return done


@dataclass(frozen=True)
class Failure:
    """A point that could not be computed, and the reason."""

    computation: Computation
    point: Point
    reason: str

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.point.items())
        return f"{self.computation.name.rpartition('.')[2]}({parameters}): {self.reason}"
