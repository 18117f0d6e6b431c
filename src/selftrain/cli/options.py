"""Flags that describe a problem and a recipe, shared by the commands.

`@takes("problem", "recipe")` adds those flags, from the table of parameters, and `--config` to a
command, which is then called with a `Problem` and a `Recipe`. Flags override the file. Values are
not checked here: `Problem` and `Recipe` validate them.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer
from typer.exceptions import TyperException

from ..errors import InvalidInput, nearest
from ..parameters import PARAMETERS, REQUIRED, Parameter

if TYPE_CHECKING:
    from ..fields import Portable

Command = Callable[..., None]


def option(help: str, metavar: str = "", *names: str, values: Iterable[str] = ()) -> Any:
    """Return a typer option that shows no default; `values` are for the completion of a shell."""
    known = completes(lambda: values) if values else None
    return typer.Option(
        *names, metavar=metavar, help=help, show_default=False, autocompletion=known
    )


def completes(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion function for a shell: it completes the last of comma-separated names.

    >>> completes(lambda: ("lambda_l", "lambda_u", "threshold"))("threshold,la")
    ['threshold,lambda_l', 'threshold,lambda_u']
    """

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in names() if name.startswith(last)]

    return complete


AsJson = Annotated[bool, option("One JSON object on stdout, nothing else.", "", "--json")]
Plot = Annotated[Path | None, option("Draw the result (png, pdf, svg).", "FILE")]
Save = Annotated[Path | None, option("Save the result (nc), to be loaded in Python.", "FILE")]
OnFailure = Annotated[
    Literal["raise", "partial"],
    typer.Option(
        help="After a failure: no result, or the part before it. The exit code is 1 in both cases."
    ),
]
Workers = Annotated[
    int, typer.Option(metavar="W", help="Processes at once; -1: all cores, 0: in this process.")
]
Tolerance = Annotated[
    str | None,
    option("Relative accuracy of the state. Default: 1e-10; 1e-5 or 1e-4 with data reuse.", "X"),
]


class Flag(NamedTuple):
    """A flag of a command.

    Attributes:
        field: name of the field of the problem or recipe that it sets.
        help, metavar, default: texts of the help page.
        switch: it has no value: `--flag` or `--no-flag`.
        text: its value is not read as a number.
        choices: values for the completion of a shell.
    """

    field: str
    help: str
    metavar: str = "X"
    default: str = ""
    switch: bool = False
    text: bool = False
    choices: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        return "--" + self.field.replace("_", "-")

    def parameter(self, panel: str) -> inspect.Parameter:
        """Return the flag as a parameter for typer, None unless it is given on the command line."""
        names = f"{self.option}/--no-{self.option[2:]}" if self.switch else self.option
        option = typer.Option(
            names,
            help=self.help + (f" Default: {self.default}." if self.default else ""),
            metavar="" if self.switch else self.metavar,
            show_default=False,
            rich_help_panel=panel,
            autocompletion=completes(lambda: self.choices) if self.choices else None,
        )
        kind: Any = bool | None if self.switch else str | None
        annotation = Annotated[kind, option]
        return inspect.Parameter(
            self.field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )


METAVARS = {
    "steps": "T", "test": "RHO,DELTA", "batches": "NAME[,NAME...]", "rho": "X[,X...]",
    "label_noise": "X|FILE",
}  # fmt: skip
MORE = {
    "batches": "; with --data their numbers, 6x600 or 6x600:reused",
    "rho": "; proportions of K classes with --gram",
    "label_noise": ", or a file (CSV or JSON) with a row P(given label) for every class",
}


CHOICES = {
    "pseudo_loss": PARAMETERS["loss"].choices,
    "test": ("labeled", "unlabeled"),
    "batches": ("fresh", "reused"),
}
"""Values that a shell completes for flags that also take other values."""


def _flag(one: Parameter) -> Flag:
    switch, text = isinstance(one.default, bool), isinstance(one.default, str)
    text = text or one.name == "pseudo_loss"
    default = "" if one.default in (REQUIRED, None) else f"{one.default}"
    if isinstance(one.default, float):
        default = f"{one.default:g}"
    number = "X[,X...]" if one.per_step else "X"
    return Flag(
        one.name,
        one.sentence[0].upper() + one.sentence[1:] + MORE.get(one.name, "") + ".",
        METAVARS.get(one.name, "NAME" if text else number),
        "no" if switch else default,
        switch,
        text,
        one.choices or CHOICES.get(one.name, ()),
    )


GRAM = Flag(
    "gram",
    "File (CSV or JSON) with the products of the class means, for spheres of variance --delta"
    " around K means; --rho then has K proportions.",
    "FILE",
    text=True,
)
FLAGS: Mapping[str, tuple[Flag, ...]] = {
    home: tuple(_flag(one) for one in PARAMETERS.values() if one.home == home) + more
    for home, more in (("problem", (GRAM,)), ("recipe", ()))
}

_TABLES = {"problem": "problem", "recipe": "recipe", "start": "recipe"}
"""For each input of a command, the group of flags and the table of the file that define it."""

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
        option(
            "TOML or JSON file with the tables \\[problem] and \\[recipe]; flags win over it.",
            "FILE",
        ),
    ],
)


class MissingFlags(TyperException):
    """The error of a problem without all required fields."""

    exit_code = 2

    def __init__(self, options: list[str]):
        how = "it as a flag" if len(options) == 1 else "them as flags"
        super().__init__(
            f"missing {', '.join(options)}: give {how}, "
            "or in the table [problem] of a --config file"
        )


def takes(*inputs: str) -> Callable[[Command], Command]:
    """Return a decorator that adds flags to a command, and calls it with the inputs made from them.

    Arguments:
        inputs: "problem" and "recipe"; "start": a recipe of which the command gets only the fields
            that were given, as a dictionary; "data": flags of a CSV file from which the problem is
            made. The command gets the `Data`, or None if `--data` is not given.
    """

    def decorate(command: Command) -> Command:
        from_rows = "data" in inputs
        made_of = tuple(name for name in inputs if name != "data")
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command).parameters.items()
            if name not in inputs
        ]
        flags = {table: FLAGS[table] for table in (_TABLES[name] for name in made_of)}
        if from_rows:
            from .data import FLAGS as OF_DATA

            flags["data"] = OF_DATA

        @wraps(command)
        def decorated(**given: Any) -> None:
            tables = _read_config(given.pop("config"))
            made: dict[str, Any] = {}
            for name in made_of:
                values = _values(name, tables.get(_TABLES[name], {}), given)
                if name == "problem" and from_rows:
                    from .data import read_data

                    made["data"] = read_data(given, values)
                rows = made.get("data") if name == "problem" else None
                made[name] = _made(name, values) if rows is None else rows.problem
            command(**made, **given)

        shared = [flag.parameter(_PANELS[table]) for table in flags for flag in flags[table]]
        parameters = [*shared, *own, _CONFIG]
        decorated.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        decorated.__annotations__ = {entry.name: entry.annotation for entry in parameters}
        return decorated

    return decorate


def _values(name: str, table: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an input from its table and its flags; remove the flags from `given`."""
    values = dict(table)
    for flag in FLAGS[_TABLES[name]]:
        value = given.pop(flag.field)
        if value is not None:
            values[flag.field] = value if flag.switch or flag.text else read_value(value)
    return values


def _made(name: str, values: dict[str, Any]) -> "Portable | dict[str, Any]":
    """Return an input (a problem, a recipe, or the fields of a start) made from its fields."""
    from ..problem import Problem
    from ..recipe import Recipe

    if name == "recipe":
        return Recipe.from_dict(values)
    if name == "start":
        written = Recipe.from_dict(values).to_dict()
        return {field: written[field] for field in values}
    values = _with_matrices(values)
    needed = set(Problem._required(values)) - set(values)
    missing = [flag.option for flag in FLAGS[name] if flag.field in needed]
    if missing and all(field in Problem.__dataclass_fields__ for field in values):
        raise MissingFlags(missing)
    return Problem.from_dict(values)


def _with_matrices(values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a problem with its files read: the Gram matrix becomes clusters."""
    values = dict(values)
    for name in ("gram", "label_noise"):
        if isinstance(values.get(name), str):
            values[name] = read_matrix(name, Path(values[name]))
    rho, gram = values.get("rho"), values.pop("gram", None)
    if gram is None:
        if isinstance(rho, (list, tuple)) and len(rho) > 2 and values.get("clusters") is None:
            accepted = f"must be a file with the products of the means of {len(rho)} classes"
            raise InvalidInput("gram", None, accepted)
        return values
    if values.get("clusters") is not None:
        raise InvalidInput("gram", gram, "must not be given with clusters, which have means")
    if "delta" not in values:
        raise MissingFlags(["--delta"])
    from ..mixture.clusters import Clusters

    values["clusters"] = Clusters.from_gram(gram, values.pop("delta"))
    if "delta_u" in values:
        later = values.pop("delta_u")
        several = isinstance(later, (list, tuple))
        found = [Clusters.from_gram(gram, delta) for delta in (later if several else [later])]
        values["clusters_u"] = found if several else found[0]
    return values


def read_matrix(field: str, path: Path) -> list[list[float]]:
    """Read a matrix from a file: a JSON list of rows, or one row per line, its numbers separated by
    commas, semicolons or blanks. `field` is the name of the flag, for error messages.
    """
    text = read_text(field, path)
    accepted = "must be a file with one row of numbers per line, or a JSON list of such rows"
    try:
        if text.lstrip().startswith("["):
            import json

            rows = json.loads(text)
        else:
            lines = [line.replace(",", " ").replace(";", " ") for line in text.splitlines()]
            rows = [line.split() for line in lines if line.strip()]
        matrix = [[float(entry) for entry in row] for row in rows]
    except (ValueError, TypeError):
        raise InvalidInput(field, str(path), accepted) from None
    if not matrix or len({len(row) for row in matrix}) > 1:
        raise InvalidInput(field, str(path), f"{accepted}, all of one length")
    return matrix


def read_value(text: str) -> Any:
    """Return the value of a flag: a number, a list of numbers, or the text itself.

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


def read_text(field: str, path: Path) -> str:
    """Return the content of a UTF-8 file; an error names the flag (`field`)."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(field, str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(field, str(path), "must be a file in UTF-8") from None


def _read_config(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from ..fields import parse_toml

    kind = path.suffix.lower()
    if kind not in (".toml", ".json"):
        raise InvalidInput("config", str(path), "must be a name ending in .toml or .json")
    text = read_text("config", path)
    tables = _parse_json(text, path) if kind == ".json" else parse_toml(text, path)
    for name, content in tables.items():
        _check_table(name, content)
    return tables


def _parse_json(text: str, path: Path) -> dict[str, Any]:
    import json

    try:
        tables = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput("config", str(path), f"not JSON: {error}") from None
    if not isinstance(tables, dict):
        raise InvalidInput("config", str(path), "must be a JSON object with problem and recipe")
    return tables


def _check_table(name: str, content: Any) -> None:
    _check_home(name, content)
    if name not in FLAGS:
        raise InvalidInput(name, content, f"unknown table; {nearest(name, FLAGS)}")
    if not isinstance(content, dict):
        raise InvalidInput(name, content, f"must be a table [{name}]")
    for key, value in content.items():
        _check_home(key, value, name)


def _check_home(key: str, value: Any, table: str | None = None) -> None:
    """Reject a key in the wrong table, or outside of all tables; the error names the right one."""
    for name, flags in FLAGS.items():
        if name != table and key in (flag.field for flag in flags):
            raise InvalidInput(key, value, f"this key belongs in the table [{name}]")
