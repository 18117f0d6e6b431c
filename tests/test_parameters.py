"""The table of parameters: complete, with the defaults of the fields, and in the glossary."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path

import pytest

from selftrain import Problem, Recipe
from selftrain.errors import InvalidInput
from selftrain.parameters import PARAMETERS, REQUIRED, SEARCH_BOUNDS, Parameter

GLOSSARY = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text("utf-8")
KINDS = {"problem": Problem, "recipe": Recipe}
EVERY = pytest.mark.parametrize("one", PARAMETERS.values(), ids=list(PARAMETERS))


def glossary_row(one: Parameter) -> str:
    """The row of a parameter in the table of docs/glossary.md."""
    symbol = f"${one.symbol}$" if one.symbol else ""
    equation = f"`{one.equation}`" if one.equation else ""
    default = "" if one.default in (REQUIRED, None) else f"`{one.default}`"
    bounds = "" if one.search is None else f"{one.search[0]:g} to {one.search[1]:g}"
    field = f"`{one.home.capitalize()}.{one.name}`"
    return f"| {symbol} | {field} | {equation} | {one.sentence} | {default} | {bounds} |"


@pytest.mark.parametrize("home", KINDS)
def test_every_field_is_in_the_table(home: str) -> None:
    fields = [name for name in KINDS[home].__dataclass_fields__ if "clusters" not in name]
    assert sorted(fields) == sorted(one.name for one in PARAMETERS.values() if one.home == home)


@EVERY
def test_defaults_are_those_of_the_fields(one: Parameter) -> None:
    default = KINDS[one.home].__dataclass_fields__[one.name].default
    assert default in (MISSING, None) if one.default is REQUIRED else default == one.default


@EVERY
def test_the_glossary_has_its_row(one: Parameter) -> None:
    assert f"\n{glossary_row(one)}\n" in GLOSSARY


@EVERY
def test_limits_of_searches_and_sliders_are_valid(one: Parameter) -> None:
    for ends in (one.search, one.page):
        for end in ends or ():
            assert one.range is None or one.range.accepts(end)


@pytest.mark.parametrize("name", SEARCH_BOUNDS)
def test_what_is_searched_is_in_the_recipe_and_rejects_minus_one(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{name} must be .*, got -1$"):
        Recipe(**{name: -1})
