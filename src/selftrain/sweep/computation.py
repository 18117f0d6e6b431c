"""What a point is: a pure function, the quantities it returns, and the key of its values.

The key of a point is a digest of the name of the function, its `version`, its parameters, and the code
it depends on (`code`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .code import code_digest
from .grid import Point


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


def _a_moment(**_: Any) -> float:
    return 0.05


@dataclass(frozen=True)
class Computation:
    """A function of plain parameters that returns numbers and arrays by name.

    Arguments:
        function: called with the parameters of a point as keywords; the same parameters must give
            the same values, in any process.
        outputs: what it returns.
        version: raise it when the function means something else than before.
        seconds: about how long a point takes, from its parameters: it orders the work, puts
            cheap points together, and makes the time left an honest guess.
    """

    function: Callable[..., Mapping[str, Any]]
    outputs: Mapping[str, Output]
    version: int = 1
    seconds: Callable[..., float] = field(default=_a_moment)

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def key(self, point: Point) -> str:
        """The digest under which the values of a point are stored."""
        told = {
            "function": self.name,
            "version": self.version,
            "code": code_digest(self.function),
            "parameters": point,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:40]
