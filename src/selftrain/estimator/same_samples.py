"""Several fits to the same samples share what depends on these alone, not on their labels.

Principal directions, ranks of heavy tails and the kind of data are the same whichever labels are
hidden, as they are in every fold of a cross-validation. Inside `same_samples` each is computed
once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST = 24
"""Results that are kept, the latest ones: those of a plan's two models, in one fit each. A model
that makes a new table of the samples in every fit therefore does not fill the memory."""

Results = OrderedDict[Any, tuple[Any, Any]]
"""Arguments and result by key. Arguments are kept because their identities are in the key."""

_results: ContextVar[Results | None] = ContextVar("results", default=None)


@contextmanager
def same_samples(results: Results | None = None) -> Iterator[None]:
    """Share results among the fits in this context; nested contexts share with the outermost.

    Arguments:
        results: those of earlier contexts, which are added to; by default none.
    """
    outer = _results.get()
    own = OrderedDict() if results is None else results
    token = _results.set(own if outer is None else outer)
    try:
        yield
    finally:
        _results.reset(token)


def per_samples(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Compute a function once for the same arguments inside `same_samples`.

    Tables are the same if they are one object, so they must not be changed; vectors, numbers and
    tuples if they are equal.
    """

    @wraps(function)
    def found(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        results = _results.get()
        if results is None or named:
            return function(*arguments, **named)
        key = (function, *map(_key, arguments))
        result: Result = _once(results, key, arguments, function)
        return result

    return found


def first_made(X: Any, matrix: Any, maker: type) -> Any:
    """Return the numbers that the first fit of a class made of samples X, so that later fits to X
    have the same object; `matrix` outside `same_samples`.
    """
    results = _results.get()
    if results is None or matrix is X:
        return matrix
    return _once(results, (maker, id(X)), (X,), lambda _: matrix)


def _once(results: Results, key: Any, arguments: Any, function: Callable[..., Any]) -> Any:
    if key not in results:
        results[key] = arguments, function(*arguments)
        if len(results) > MOST:
            results.popitem(last=False)
    results.move_to_end(key)
    return results[key][1]


def _key(argument: Any) -> Any:
    """Return what tells an argument apart from others."""
    if isinstance(argument, tuple):
        return (type(argument), *map(_key, argument))
    if isinstance(argument, np.ndarray) and argument.ndim == 1:
        return argument.dtype.str, argument.tobytes()
    plain = argument is None or isinstance(argument, (str, int, float))
    return argument if plain else id(argument)
