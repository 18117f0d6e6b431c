"""What a point is: a pure function, the quantities it returns, and the key of its values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .code import code_digest
from .grid import Point
from .identity import Identity, identify


@dataclass(frozen=True)
class Output:
    """A quantity that every point returns.

    Attributes:
        symbol: as the paper writes it, in LaTeX.
        dims: names of its own dimensions; an output named like one is its coordinate.
        unit: all quantities of the theory are pure numbers, hence "1".
    """

    symbol: str
    dims: tuple[str, ...] = ()
    unit: str = "1"


def a_moment(**_: Any) -> float:
    """Return what a point takes when nothing is known of it."""
    return 0.05


@dataclass(frozen=True)
class Computation:
    """A function of plain parameters that returns numbers and arrays by name.

    Arguments:
        function: called with the parameters of a point as keywords; the same parameters must give
            the same values, in any process. A callable object may say by `source` which function
            does its work, by `reached` what else that uses at every point, and by `parameters` what
            the values of a point depend on.
        outputs: what it returns; None: whatever it returns.
        version: raise it when the function means something else than before.
        seconds: about how long a point takes, from its parameters: it orders the work, puts cheap
            points together, and predicts the time left.
    """

    function: Callable[..., Mapping[str, Any]]
    outputs: Mapping[str, Output] | None
    version: int = 1
    seconds: Callable[..., float] = field(default=a_moment)

    @property
    def name(self) -> str:
        """The dotted name of the function."""
        return name_of(getattr(self.function, "source", self.function), ".")

    @cached_property
    def identity(self) -> Identity:
        """What is computed at every point, as it was when first asked for: points may change it."""
        source = getattr(self.function, "source", self.function)
        return identify(source, getattr(self.function, "reached", ()))

    @cached_property
    def digest(self) -> str:
        """The digest of the function with all it reaches, and of the package's code behind it."""
        whole = f"{self.identity.digest} {code_digest(self.identity.modules)}"
        return hashlib.sha256(whole.encode()).hexdigest()

    def key(self, point: Point) -> str:
        """Return the digest under which the values of a point are stored."""
        parameters = getattr(self.function, "parameters", dict)(point)
        parts = [self.name, self.version, self.digest, parameters]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:40]


def name_of(function: Any, mark: str = ":") -> str:
    """Return module and name of a function; of a callable object, of what it calls or its class.

    >>> from functools import partial
    >>> name_of(json.dumps), name_of(partial(json.dumps, indent=1))
    ('json:dumps', 'json:dumps')
    """
    while not hasattr(function, "__qualname__"):
        function = getattr(function, "func", None) or type(function)
    return f"{function.__module__}{mark}{function.__qualname__}"
