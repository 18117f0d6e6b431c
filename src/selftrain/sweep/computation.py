"""What a point is: a pure function, the quantities it returns, and the key of its values.

The key of a point is a digest of the name of the function, its `version`, its parameters, the
function by value with all it reaches (`identity`), and the code of this package behind it (`code`).
"""

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
        dims: names of its own dimensions; the output named like one, if there is any, is its
            coordinate.
        unit: all quantities of the theory are pure numbers, hence "1".
    """

    symbol: str
    dims: tuple[str, ...] = ()
    unit: str = "1"


def a_moment(**_: Any) -> float:
    """What a point takes when nothing is known of it."""
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
        seconds: about how long a point takes, from its parameters: it orders the work, puts
            cheap points together, and makes the time left an honest guess.
        stored_as: name and digest of the code that computed, if points are read that other code
            may have stored.
        link: an output that points take from those they start from, as positional arguments.
    """

    function: Callable[..., Mapping[str, Any]]
    outputs: Mapping[str, Output] | None
    version: int = 1
    seconds: Callable[..., float] = field(default=a_moment)
    stored_as: tuple[str, str] | None = None
    link: str = ""

    @property
    def source(self) -> Callable[..., Any]:
        """The function whose code counts."""
        found: Callable[..., Any] = getattr(self.function, "source", self.function)
        return found

    @property
    def name(self) -> str:
        """The dotted name of the function."""
        return name_of(self.source, ".") if self.stored_as is None else self.stored_as[0]

    @cached_property
    def identity(self) -> Identity:
        """What is computed at every point, as it was when first asked for: points may change it."""
        return identify(self.source, getattr(self.function, "reached", ()))

    @property
    def digest(self) -> str:
        """Of all that is behind it."""
        if self.stored_as is not None:
            return self.stored_as[1]
        whole = f"{self.identity.digest} {code_digest(self.identity.modules)}"
        return hashlib.sha256(whole.encode()).hexdigest()

    def key(self, point: Point) -> str:
        """The digest under which the values of a point are stored."""
        parameters = getattr(self.function, "parameters", dict)(point)
        identity = {
            "function": self.name,
            "version": self.version,
            "code": self.digest,
            "parameters": parameters,
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:40]


def name_of(function: Any, mark: str = ":") -> str:
    """Module and name of a function; of a callable object, of what it calls or of its class.

    >>> from functools import partial
    >>> name_of(json.dumps), name_of(partial(json.dumps, indent=1))
    ('json:dumps', 'json:dumps')
    """
    named = function
    while not hasattr(named, "__qualname__"):
        named = getattr(named, "func", None) or type(named)
    return f"{named.__module__}{mark}{named.__qualname__}"
