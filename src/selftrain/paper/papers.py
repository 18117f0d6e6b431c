"""The papers: one TOML file each, with its figures in order and their texts.

In a text, `<NAME:spec>` stands for a constant of the figure's module or of `setting`, or a value
passed by `judge`, formatted by `spec`; `<1+NAME:spec>` and `<1-NAME:spec>` stand for one plus or
minus it. Line breaks count as blanks.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from .ruling import Bar

PAPERS = ("self-training", "distillation", "discoveries")
"""The ids of the papers; each has a file of that name."""

_PLACEHOLDER = re.compile(r"<(1[+-])?([A-Za-z_]\w*)(?::([^<>]*))?>")


class Paper(NamedTuple):
    """A paper whose figures are reproduced.

    Attributes:
        id: its name on the command line.
        title, authors, arxiv: the reference.
        page: the name of its page in the documentation.
        figures: the texts of its figures by their ids, in the order in which they are listed.
    """

    id: str
    title: str
    authors: str
    arxiv: str
    page: str
    figures: Mapping[str, Mapping[str, Any]]


@cache
def paper(name: str) -> Paper:
    """Read the file of a paper.

    >>> paper("self-training").arxiv
    '2205.07739'
    """
    content = tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))
    head, shared = content.pop("paper"), content.pop("shared", {})
    figures = {
        name: {**texts, "findings": {**shared, **texts.get("findings", {})}}
        for name, texts in content.items()
    }
    return Paper(name, head["title"], head["authors"], head["arxiv"], head["page"], figures)


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Fill the placeholders of a text.

    >>> filled("below <1+NEAR:g> for T <= <FEW>", {"NEAR": Bar(0.01, "a line"), "FEW": 4})
    'below 1.01 for T <= 4'
    """

    def value(found: re.Match[str]) -> str:
        sign, name, spec = found.groups()
        number = values[name].size if isinstance(values[name], Bar) else values[name]
        if sign:
            number = 1 + number if sign == "1+" else 1 - number
        return format(number, spec or "")

    return " ".join(_PLACEHOLDER.sub(value, text).split())
