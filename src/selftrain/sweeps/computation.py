"""The function that a sweep evaluates, the quantities it returns, and the keys of its values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .function_identity import Identity, identify
from .grid import Point
from .package_code import code_digest


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


def default_seconds(**_: Any) -> float:
    """Return the time assumed for a point of a computation without an estimate."""
    return 0.05


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
    seconds: Callable[..., float] = field(default=default_seconds)

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
