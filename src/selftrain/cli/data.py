"""Flags that define a problem by a CSV file: `--data rows.csv --target y --labels 100 --batches
6x600`.

The clusters are estimated from the rows (standardised unless `--raw`), alpha_l and alpha_u follow
from the numbers of rows and features, and rho is that of the file unless `--rho` is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidInput
from .options import Flag, read_value
from .output import counted

if TYPE_CHECKING:
    from ..problem import Problem
    from ..tables import Table

FLAGS = (
    Flag("data", "CSV file of rows: the problem is that of its clusters.", "FILE", text=True),
    Flag("target", "Column of the file with the class.", "NAME", text=True),
    Flag("labels", "Rows with labels.", "M"),
    Flag("reduce", "Leading directions of the rows to use.", "K", "all"),
    Flag("shrinkage", "Shrinkage of the covariance: auto, oas, or from 0 to 1.", "X", "auto"),
    Flag("two_covariances", "One covariance for each class.", default="no", switch=True),
    Flag("raw", "Keep the units of the columns.", default="no", switch=True),
)

REPLACED = ("alpha_l", "alpha_u", "delta", "gram", "steps", "rho_u", "delta_u", "test")
"""Flags of a problem that are not allowed with `--data`, because the file replaces them."""

BATCHES = (
    "must be steps times rows, as in 6x600, or rows per step, as in 600,600,300; which rows they"
    " are may follow: 6x600:reused, 3x600:a,b,a"
)


class Data(NamedTuple):
    """A table of rows and the problem made of it."""

    table: Table
    problem: Problem
    file: str

    @property
    def rows(self) -> tuple[Any, Any]:
        """The argument `rows` of `simulate`."""
        return self.table.X, self.table.y

    def to_dict(self) -> dict[str, Any]:
        """Return facts about the file and the problem made from it, as plain values."""
        clusters = self.problem.clusters
        assert clusters is not None
        return {
            "file": self.file,
            "rows": len(self.table.X),
            "features": len(self.table.names),
            "constant": list(self.table.constant),
            "positive": str(self.table.positive),
            "directions": clusters.features,
            "kept": clusters.kept,
            "separation": clusters.separation,
            "effective_dimension": clusters.effective_dimension,
            "sphere": clusters.sphere,
        }

    def __str__(self) -> str:
        facts = self.to_dict()
        text = (
            f"{facts['rows']:,} rows of {facts['features']} features, positive class"
            f" {facts['positive']}"
        )
        if facts["constant"]:
            text += f"; {counted(len(facts['constant']), 'constant column')} left out"
        if facts["directions"] < facts["features"]:
            text += (
                f"; {facts['directions']} leading directions keep {facts['kept']:.1%} "
                "of the squared separation"
            )
        return text + "."


def read_data(given: dict[str, Any], values: Mapping[str, Any]) -> Data | None:
    """Return the problem made from the file of `--data`, or None without that flag.

    Arguments:
        given: values of all flags of the command; those of `FLAGS` are removed from it.
        values: fields of the problem from other flags; those that the file replaces are rejected.
    """
    flags = {flag.field: given.pop(flag.field) for flag in FLAGS}
    if flags["data"] is None:
        for name, value in flags.items():
            if value is not None:
                raise InvalidInput(name, value, "needs --data FILE")
        return None
    for name in REPLACED:
        if name in values:
            raise InvalidInput(name, values[name], "with --data it follows from the rows")
    for name, value in (("target", flags["target"]), ("labels", flags["labels"])):
        if value is None:
            raise InvalidInput(name, value, "must be given with --data")
    return _made(flags, dict(values))


def _made(flags: Mapping[str, Any], values: dict[str, Any]) -> Data:
    from ..mixture.clusters import Clusters
    from ..problem import Problem
    from ..tables import read_table, standardised

    sizes, values["batches"] = batch_sizes(values.pop("batches", None))
    labels = _count("labels", flags["labels"])
    table = read_table(flags["data"], flags["target"])
    if not flags["raw"]:
        table = standardised(table)
    shrinkage = "auto" if flags["shrinkage"] is None else read_value(flags["shrinkage"])
    directions = None if flags["reduce"] is None else _count("reduce", flags["reduce"])
    clusters = Clusters.from_data(
        table.frame(), table.y, shrinkage, not flags["two_covariances"], directions
    )
    n = clusters.features
    values.setdefault("rho", table.rho)
    problem = Problem(
        alpha_l=labels / n,
        alpha_u=sizes[0] / n if len(set(sizes)) == 1 else tuple(size / n for size in sizes),
        clusters=clusters,
        steps=len(sizes),
        **values,
    )
    return Data(table, problem, flags["data"])


def batch_sizes(text: Any) -> tuple[list[int], Any]:
    """Return the number of rows of each step, and the field `batches` of the problem.

    >>> batch_sizes("3x600"), batch_sizes("600,300:a,b")
    (([600, 600, 600], 'fresh'), ([600, 300], ['a', 'b']))
    """
    if text is None:
        raise InvalidInput("batches", text, f"must be given with --data; it {BATCHES}")
    amounts, colon, which = (part.strip() for part in str(text).partition(":"))
    found = re.fullmatch(r"(\d+)x(\d+)", amounts)
    if found:
        sizes = [int(found[2])] * int(found[1])
    else:
        parts = [part.strip() for part in amounts.removesuffix(",").split(",")]
        if not all(part.isdigit() for part in parts):
            raise InvalidInput("batches", text, BATCHES)
        sizes = [int(part) for part in parts]
    if 0 in sizes or (colon and not which):
        raise InvalidInput("batches", text, BATCHES)
    return sizes, read_value(which) if which else "fresh"


def _count(field: str, text: Any) -> int:
    value = read_value(str(text))
    if not isinstance(value, int) or value < 1:
        raise InvalidInput(field, text, "must be a whole number >= 1")
    return value
