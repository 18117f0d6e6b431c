"""All figures, in the order of the paper; those of our own stand after the one they belong to, or
at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from ..errors import InvalidInput, nearest
from .figure import Figure, Place
from .variation import varied

IDS = (
    "weights-logits",
    "macroscopic",
    "predictions",
    "relative-error",
    "cosine",
    "selection",
    "batch-size",
    "optimal-ridge",
    "continuum",
    "heuristics",
    "ablation",
    "few-labels",
    "annealing",
    "weights-logits-all",
    "macroscopic-all",
    "susceptibility",
    "single-shot-ridge",
    "single-shot-error",
    "schedules",
    "reuse",
    "real-data",
)


def figure(name: str, **changes: Any) -> Figure:
    """A figure by its id, its number in the paper or its LaTeX label; with other parameters, if
    some are given.

    Arguments:
        name: "cosine", "fig4" or "fig: cosine similarity".
        changes: parameters of its computations, each a value or, where the figure has several, a
            sequence.

    >>> str(figure("cosine").place)
    'Figure 4, `fig: cosine similarity`, Section 4.1'
    >>> figure("fig4").id, figure("fig: vs PLS").id
    ('cosine', 'selection')
    >>> figure("cosine", rho=0.3, alpha_l=0.2).id
    'cosine-rho0.3-alpha_l0.2'
    """
    found = _own(_id(name))
    return varied(found, changes) if changes else found


def figures(names: Iterable[str] = ()) -> list[Figure]:
    """The figures of these names, each once, in the order of the paper; all if none is given."""
    asked = {_id(name) for name in names} or set(IDS)
    return [_own(name) for name in IDS if name in asked]


def _own(name: str) -> Figure:
    """A figure with the parameters of the paper."""
    module = import_module(f".figures.{name.replace('-', '_')}", __package__)
    found: Figure = module.FIGURE
    return found


def _id(name: str) -> str:
    """The id of what is called so."""
    if name in IDS:
        return name
    numbers = {place.number: name for name, place in _places().items() if place.number is not None}
    labels = {place.label: name for name, place in _places().items() if place.label}
    number = re.fullmatch(r"fig(?:ure)?[ .-]*(\d+)", name.strip(), re.IGNORECASE)
    if number is not None:
        if int(number[1]) in numbers:
            return numbers[int(number[1])]
        raise InvalidInput("figure", name, f"the paper has fig1 to fig{max(numbers)}")
    if name in labels:
        return labels[name]
    raise InvalidInput("figure", name, f"unknown figure; {nearest(name, IDS)}")


def _places() -> dict[str, Place]:
    return {name: _own(name).place for name in IDS}
