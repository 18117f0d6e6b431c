"""All figures of all papers, found by id, number or LaTeX label."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from ..errors import InvalidInput, nearest
from .entry import Figure
from .papers import PAPERS, paper
from .variation import varied

IDS = tuple(name for one in PAPERS for name in paper(one).figures)
"""The ids of all figures, paper by paper, in the order in which they are listed."""


def figure(name: str, **changes: Any) -> Figure:
    """Return a figure by its id, its number in the paper or its LaTeX label.

    Arguments:
        name: "cosine", "fig4" or "fig: cosine similarity".
        changes: parameters to change in its computations: a value or, if the figure has several, a
            sequence.

    >>> str(figure("cosine").place)
    'Figure 4, `fig: cosine similarity`, Section 4.1'
    >>> figure("fig4").id, figure("fig: vs PLS").id
    ('cosine', 'selection')
    >>> figure("cosine", rho=0.3, alpha_l=0.2).id
    'cosine-rho0.3-alpha_l0.2'
    """
    found = _known()[_id(name)]
    return varied(found, changes) if changes else found


def figures(names: Iterable[str] = ()) -> list[Figure]:
    """Return figures by name, or all figures of a paper by its id; all by default.

    Each figure is returned once, in the order of `IDS`.
    """
    asked = {
        one for name in names for one in (paper(name).figures if name in PAPERS else [_id(name)])
    }
    return [one for name, one in _known().items() if name in asked or not asked]


@cache
def _known() -> dict[str, Figure]:
    """Return all figures, with the parameters of their papers."""
    home = f"{__package__}.figures."
    return {
        name: Figure(name, one, home + name.replace("-", "_"), texts)
        for one in PAPERS
        for name, texts in paper(one).figures.items()
    }


def _id(name: str) -> str:
    """Return the id of the figure with that id, number or label."""
    if name in IDS:
        return name
    number = re.fullmatch(r"fig(?:ure)?[ .-]*(\d+)", name.strip(), re.IGNORECASE)
    for one in _known().values():
        place = one.texts
        if name == place.get("label") or (number and int(number[1]) == place.get("number")):
            return one.id
    if number:
        last = max(one.texts.get("number", 0) for one in _known().values())
        raise InvalidInput("figure", name, f"the paper has fig1 to fig{last}")
    raise InvalidInput("figure", name, f"unknown figure; {nearest(name, IDS)}")
