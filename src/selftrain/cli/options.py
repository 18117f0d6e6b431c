"""Flags that describe a problem and a recipe, shared by the verbs.

`@takes("problem", "recipe")` gives a verb those flags and `--config`, and calls it with a
`Problem` and a `Recipe` made from the file and the flags, the flags winning. Values are handed
over as they were written: `Problem` and `Recipe` judge them, so the command line refuses what
the API refuses, in the same sentence.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.exceptions import TyperException

from ..errors import InvalidInput, nearest

if TYPE_CHECKING:
    from ..fields import Portable

Verb = Callable[..., None]


class Flag(NamedTuple):
    """One field of a word as a flag; `text` fields are names and are not read as numbers."""

    field: str
    help: str
    metavar: str = "X"
    default: str = ""
    kind: type = str
    text: bool = False

    @property
    def option(self) -> str:
        return "--" + self.field.replace("_", "-")

    def parameter(self, panel: str) -> inspect.Parameter:
        """The flag as typer wants it: a parameter that is None unless the flag was given."""
        switch = f"/--no-{self.field.replace('_', '-')}" if self.kind is bool else ""
        option = typer.Option(
            self.option + switch,
            help=self.help + (f" Default: {self.default}." if self.default else ""),
            metavar="" if self.kind is bool else self.metavar,
            show_default=False,
            rich_help_panel=panel,
        )
        kind: Any = bool | None if self.kind is bool else str | None
        return inspect.Parameter(
            self.field,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind, option],
        )


_EACH = "X[,X...]"

FLAGS: Mapping[str, tuple[Flag, ...]] = {
    "problem": (
        Flag("alpha_l", "Labelled points per feature."),
        Flag("alpha_u", "Unlabelled points per feature in each step.", _EACH),
        Flag("rho", "Share of the positive class."),
        Flag("delta", "Variance of the noise."),
        Flag("steps", "Self-training steps after the supervised step 0.", "T"),
        Flag(
            "loss",
            "Name of the loss: logistic, squared (classes coded as -1 and +1).",
            "NAME",
            "logistic",
            text=True,
        ),
        Flag(
            "pseudo_loss",
            "Name of the loss of the self-training steps.",
            "NAME",
            "that of --loss",
            text=True,
        ),
        Flag("rho_u", "Share of the positive class in the batches.", _EACH, "that of --rho"),
        Flag("delta_u", "Variance of the noise in the batches.", _EACH, "that of --delta"),
        Flag(
            "test",
            "Mixture of the error: labeled, unlabeled, or its share and variance.",
            "RHO,DELTA",
            "that of the last batch",
        ),
        Flag(
            "batches",
            "Unlabelled rows of the steps: fresh, reused, or a name per step (a,b,a; a+b for"
            " parts); with --data their numbers, 6x600 or 6x600:reused.",
            "NAME[,NAME...]",
            "fresh",
            text=True,
        ),
        Flag("keep_labeled", "Weight of the labelled rows in every later step.", _EACH, "0"),
    ),
    "recipe": (
        Flag("lambda_l", "Ridge of the supervised step.", default="0.05"),
        Flag("lambda_u", "Ridge of the self-training steps.", _EACH, "0.05"),
        Flag("threshold", "Γ: reject |logit| below Γ √q, with √q = |w|/√N.", _EACH, "0"),
        Flag("sharpness", "Sharpness of the pseudo-labels; inf for hard ones.", _EACH, "1"),
        Flag("annealing", "a: the sharpness of step t is multiplied by 1 + a t.", _EACH, "0"),
        Flag("fix_bias", "Keep the bias of step 0.", default="no", kind=bool),
        Flag("labeler", "Name of the labeler: soft, hard.", "NAME", "soft", text=True),
    ),
}

_TABLES = {"problem": "problem", "recipe": "recipe", "start": "recipe"}
"""The flags, and the table of a file, that make each word."""

_PANELS = {
    "data": "Data, in place of amounts and noise of a problem",
    "problem": "Problem",
    "recipe": "Recipe (X[,X...]: one value, or one per step)",
}

_CONFIG = inspect.Parameter(
    "config",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="TOML or JSON file with the tables \\[problem] and \\[recipe]; flags win over it.",
            metavar="FILE",
            show_default=False,
        ),
    ],
)


class MissingFlags(TyperException):
    """A problem was not described in full."""

    exit_code = 2

    def __init__(self, options: list[str]):
        how = "it as a flag" if len(options) == 1 else "them as flags"
        super().__init__(
            f"missing {', '.join(options)}: give {how}, "
            "or in the table [problem] of a --config file"
        )


def takes(*inputs: str) -> Callable[[Verb], Verb]:
    """Give a verb the flags of these inputs ("problem", "recipe"); it is called with both.

    "start" is a recipe too, but the verb gets only the fields that were given. "data" adds the
    flags of a table of rows, from which the problem is made if they are given; the verb gets it as
    well, or None.
    """

    def decorate(verb: Verb) -> Verb:
        from_rows = "data" in inputs
        made_of = tuple(word for word in inputs if word != "data")
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(verb).parameters.items()
            if name not in inputs
        ]
        shared = [
            flag.parameter(_PANELS[_TABLES[word]])
            for word in made_of
            for flag in FLAGS[_TABLES[word]]
        ]
        if from_rows:
            from .data import FLAGS as OF_DATA

            shared += [flag.parameter(_PANELS["data"]) for flag in OF_DATA]

        @wraps(verb)
        def command(**given: Any) -> None:
            tables = _read_config(given.pop("config"))
            made: dict[str, Any] = {}
            for word in made_of:
                values = _values(word, tables.get(_TABLES[word], {}), given)
                if word == "problem" and from_rows:
                    from .data import read_data

                    made["data"] = read_data(given, values)
                if word == "problem" and made.get("data") is not None:
                    made[word] = made["data"].problem
                else:
                    made[word] = _word(word, values)
            verb(**made, **given)

        parameters = [*shared, *own, _CONFIG]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {entry.name: entry.annotation for entry in parameters}
        return command

    return decorate


def _values(word: str, table: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a word from its table in the file and from its flags, which are taken out of
    `given`.
    """
    values = dict(table)
    for flag in FLAGS[_TABLES[word]]:
        value = given.pop(flag.field)
        if value is not None:
            values[flag.field] = read_value(value) if flag.kind is str and not flag.text else value
    return values


def _word(word: str, values: dict[str, Any]) -> "Portable | dict[str, Any]":
    """The word made of its fields."""
    from ..problem import Problem
    from ..recipe import Recipe

    if word == "recipe":
        return Recipe.from_dict(values)
    if word == "start":
        written = Recipe.from_dict(values).to_dict()
        return {name: written[name] for name in values}
    needed = set(Problem._required(values)) - set(values)
    missing = [flag.option for flag in FLAGS[word] if flag.field in needed]
    if missing and all(name in Problem.__dataclass_fields__ for name in values):
        raise MissingFlags(missing)
    return Problem.from_dict(values)


def read_value(text: str) -> Any:
    """What a flag says: a number, a list of them, or the text itself.

    >>> read_value("0.05"), read_value("0.1,0.05"), read_value("inf"), read_value("labeled")
    (0.05, [0.1, 0.05], inf, 'labeled')
    """
    if "," in text:
        return [_number(entry.strip()) for entry in text.removesuffix(",").split(",")]
    return _number(text)


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read_config(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from ..fields import parse_toml

    if path.suffix.lower() not in (".toml", ".json"):
        raise InvalidInput("config", str(path), "a name ending in .toml or .json is accepted")

    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput("config", str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput("config", str(path), "a file in UTF-8 is accepted") from None
    tables = _parse_json(text, path) if path.suffix.lower() == ".json" else parse_toml(text, path)
    for name, content in tables.items():
        _check_table(name, content)
    return tables


def _parse_json(text: str, path: Path) -> dict[str, Any]:
    """The tables of a JSON text, which is an object of objects."""
    import json

    try:
        tables = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput("config", str(path), f"not JSON: {error}") from None
    if not isinstance(tables, dict):
        raise InvalidInput("config", str(path), "a JSON object with problem and recipe is accepted")
    return tables


def _check_table(name: str, content: Any) -> None:
    _check_home(name, content)
    if name not in FLAGS:
        raise InvalidInput(name, content, f"unknown table; {nearest(name, FLAGS)}")
    if not isinstance(content, dict):
        raise InvalidInput(name, content, f"a table [{name}] is expected")
    for key, value in content.items():
        _check_home(key, value, name)


def _check_home(key: str, value: Any, table: str | None = None) -> None:
    """Refuse a key of the other table, or one outside of all tables, with the name of its table."""
    for word, flags in FLAGS.items():
        if word != table and key in (flag.field for flag in flags):
            raise InvalidInput(key, value, f"this key belongs in the table [{word}]")
