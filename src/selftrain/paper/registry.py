"""All figures, in the order of the paper; those of our own stand after the one they belong to, or at the end."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ..errors import InvalidInput, nearest
from .figure import Figure

IDS = (
    "weights-logits",
    "macroscopic",
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
)


def figure(name: str) -> Figure:
    """A figure by its id.

    >>> str(figure("cosine").place)
    'Figure 4, `fig: cosine similarity`, Section 4.1'
    """
    if name not in IDS:
        raise InvalidInput("figure", name, f"unknown figure; {nearest(name, IDS)}")
    module = import_module(f".figures.{name.replace('-', '_')}", __package__)
    found: Figure = module.FIGURE
    return found


def figures(names: Iterable[str] = ()) -> list[Figure]:
    """The figures of these ids, each once, in the order of the paper; all if none is named."""
    asked = {figure(name).id for name in names} or set(IDS)
    return [figure(name) for name in IDS if name in asked]
