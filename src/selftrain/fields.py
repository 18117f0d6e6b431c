"""Validation of the fields of `Problem` and `Recipe`, and their conversion to dict, JSON and TOML.

A field is a float, or a tuple of floats with one entry per step (a schedule). Values are validated
once, here, so that the engines never get a NaN, a string or a list of the wrong length.
"""

from __future__ import annotations

import inspect
import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from .errors import InvalidInput, nearest
from .parameters import PARAMETERS, PROPORTION, Range

Schedule = float | tuple[float, ...]

UNITY = 1e-9
"""Largest difference of the sum of proportions from one."""


def number(field: str, value: Any, accepts: Callable[[float], bool], accepted: str) -> float:
    """Return a value as a float, or raise `InvalidInput`.

    Arguments:
        field: name for the error message.
        accepts: returns whether a number is valid.
        accepted: the rule for the error message, "must be ...".
    """
    value = from_array(value)
    if isinstance(value, str) and value.strip().lower() in ("inf", "+inf", "infinity"):
        value = math.inf
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(field, value, accepted)
    try:
        result = float(value)
    except OverflowError:
        raise InvalidInput(field, value, accepted) from None
    if math.isnan(result) or not accepts(result):
        raise InvalidInput(field, value, accepted)
    return result


def whole(field: str, value: Any, accepts: Callable[[int], bool], accepted: str) -> int:
    """Return a value as an exact integer, or raise `InvalidInput`; arguments as for `number`.

    >>> whole("seeds", 2**60 + 1, lambda n: n > 0, "must be a whole number > 0") - 2**60
    1
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidInput(field, value, accepted)
    if not accepts(int(value)):
        raise InvalidInput(field, value, accepted)
    return int(value)


def schedule(field: str, value: Any, accepts: Callable[[float], bool], accepted: str) -> Schedule:
    """Return a number as a float, or a sequence with one entry per step as a tuple of floats;
    arguments as for `number`.
    """
    value = from_array(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return tuple(
            number(f"{field}[{index}]", entry, accepts, accepted)
            for index, entry in enumerate(value)
        )
    return number(field, value, accepts, accepted + ", or a sequence with one entry per step")


def expand(field: str, value: Schedule, steps: int) -> np.ndarray:
    """Return a schedule as an array of length `steps`, read-only because it is shared."""
    if isinstance(value, tuple) and len(value) != steps:
        accepted = f"a sequence must have one entry per step: {steps}, not {len(value)}"
        raise InvalidInput(field, value, accepted)
    values = np.array(value, dtype=float) if isinstance(value, tuple) else np.full(steps, value)
    values.setflags(write=False)
    return values


def proportions_of(field: str, value: Any) -> tuple[float, ...]:
    """Return validated class proportions; a number is that of the positive class of two.

    >>> proportions_of("rho", (0.5, 0.3, 0.2))
    (0.5, 0.3, 0.2)
    """
    value = from_array(value)
    if not isinstance(value, Sequence) or isinstance(value, str):
        rho = number(field, value, *PROPORTION)
        return (1 - rho, rho)
    shares = tuple(number(f"{field}[{k}]", share, *PROPORTION) for k, share in enumerate(value))
    if len(shares) < 2:
        raise InvalidInput(field, value, "must have one proportion for each of two classes or more")
    if abs(sum(shares) - 1) > UNITY:
        accepted = f"class proportions must sum to one; these sum to {sum(shares):.10g}"
        raise InvalidInput(field, value, accepted)
    return shares


def prior(field: str, value: Any, classes: int | None = None) -> float | tuple[float, ...]:
    """Return validated class proportions; two are reduced to that of the positive class."""
    shares = proportions_of(field, value)
    if classes is not None and len(shares) != classes:
        raise InvalidInput(field, value, f"must be {classes} proportions, one for each class")
    return shares if len(shares) > 2 else shares[1]


class _InitSignature:
    """Descriptor for `__signature__`: makes help and completion show the signature of `__init__`
    instead of that of `__new__`.
    """

    def __get__(self, instance: object, owner: type[Any]) -> inspect.Signature:
        whole = inspect.signature(owner.__init__)
        return whole.replace(
            parameters=list(whole.parameters.values())[1:],
            return_annotation=inspect.Signature.empty,
        )


class Portable:
    """Base class of a frozen dataclass with conversion to dict, JSON and TOML, and a short repr.

    The conversions omit fields that are None, and those of `_optional` that have their default.
    """

    _optional: ClassVar[tuple[str, ...]] = ()
    __signature__ = _InitSignature()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__new__ = _checked_new  # type: ignore[method-assign]  # runs before __init__

    def _items(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields that are not omitted, with their values."""
        for entry in dataclass_fields(self):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            if value is None or (entry.name in self._optional and value == entry.default):
                continue
            yield entry.name, value

    def _put(self, name: str, value: Any) -> None:
        """Set a validated field; only for `__post_init__`."""
        object.__setattr__(self, name, value)

    def _put_number(self, name: str) -> None:
        """Validate and set a field that is a number, by its range in `parameters`."""
        self._put(name, number(name, getattr(self, name), *_range(name)))

    def _put_schedules(self, *names: str) -> None:
        """Validate and set fields that may have one number per step."""
        for name in names:
            self._put(name, schedule(name, getattr(self, name), *_range(name)))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, for JSON or TOML."""
        return {name: _plain(value) for name, value in self._items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the object that `to_dict` wrote; raise for an unknown or missing key."""
        entries = dataclass_fields(cls)  # type: ignore[arg-type]
        known = [entry.name for entry in entries]
        for key in values:
            if key not in known:
                raise InvalidInput(str(key), values[key], f"unknown key; {nearest(key, known)}")
        missing = [name for name in cls._required(values) if name not in values]
        if missing:
            raise InvalidInput(cls.__name__, dict(values), f"missing: {', '.join(missing)}")
        return cls(**values)

    @classmethod
    def _required(cls, values: Mapping[str, Any]) -> list[str]:
        """Return the fields that must be in a dictionary with these values."""
        entries = dataclass_fields(cls)  # type: ignore[arg-type]
        return [entry.name for entry in entries if entry.default is MISSING]

    def to_json(self) -> str:
        """Return a JSON object; infinite values become the string "inf"."""
        return json.dumps(strict(self.to_dict()), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the object that `to_json` wrote."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidInput(cls.__name__, text, f"not JSON: {error}") from None
        if not isinstance(values, dict):
            raise InvalidInput(cls.__name__, values, "a JSON object is expected")
        return cls.from_dict(values)

    def to_toml(self) -> str:
        """Return the body of a TOML table."""
        return "".join(f"{key} = {_toml(value)}\n" for key, value in self.to_dict().items())

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Return the object that `to_toml` wrote."""
        return cls.from_dict(parse_toml(text, cls.__name__))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed (and validated)."""
        current = {entry.name: getattr(self, entry.name) for entry in dataclass_fields(self)}  # type: ignore[arg-type]
        unknown = [key for key in changes if key not in current]
        if unknown:
            raise InvalidInput(
                unknown[0], changes[unknown[0]], f"unknown key; {nearest(unknown[0], current)}"
            )
        return type(self)(**{**current, **changes})

    def __repr__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in self._items()]
        return f"{type(self).__name__}({', '.join(shown)})"


def _checked_new(cls: type[Any], *values: Any, **named: Any) -> Any:
    """Create an object; raise for an unknown keyword, with a suggestion, before `__init__` does."""
    known = [entry.name for entry in dataclass_fields(cls)]
    for key in named:
        if key not in known:
            raise InvalidInput(key, named[key], f"unknown key; {nearest(key, known)}")
    return object.__new__(cls)


def _range(name: str) -> Range:
    found = PARAMETERS[name].range
    assert found is not None
    return found


def parse_toml(text: str, source: str | Path) -> dict[str, Any]:
    """Return the content of a TOML text; a syntax error raises `InvalidInput` with its position."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            str(source), text.strip().splitlines()[:1], f"not TOML: {error}"
        ) from None


def from_array(value: Any) -> Any:
    """Return arrays, numpy scalars and pandas series as plain Python values; others unchanged."""
    return np.asarray(value).tolist() if hasattr(value, "__array__") else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, (bool, int, float, str)):
        return value
    name = getattr(value, "name", None)
    if isinstance(name, str):
        return name
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise InvalidInput(type(value).__name__, value, "must have a name to be stored")


def strict(value: Any) -> Any:
    """Return a value in strict JSON: NaN is null, infinite values are the strings "inf" and "-inf".

    >>> strict({"a": (1.5, float("nan"), float("inf"))})
    {'a': [1.5, None, 'inf']}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): strict(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def as_tuples(value: Any) -> Any:
    """Return lists as tuples, at all levels, so that they cannot be changed."""
    if isinstance(value, Mapping):
        return {name: as_tuples(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(as_tuples(entry) for entry in value)
    return value


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and not all(isinstance(entry, float) for entry in value):
        return "(" + ", ".join(_shown(entry) for entry in value) + ")"
    if isinstance(value, tuple):
        entries = [_shown(entry) for entry in value]
        if len(value) > 6:
            return f"({', '.join(entries[:3])}, ..., {entries[-1]}; {len(value)} steps)"
        return f"({', '.join(entries)}{',' if len(value) == 1 else ''})"
    return f"{value:g}" if isinstance(value, float) else repr(getattr(value, "name", value))
