r"""The averages of one step as a record with named fields, for all losses and all equations.

With x the proximal point, $x + c\,l'(x) = h$, a step needs averages of $f = l'(x)$, of
$k = \partial f/\partial h = l''/(1 + c l'')$ and of $k' = \partial k/\partial h = l'''/(1 + c
l'')^3$ (called `k3`). A name lists the factors of its average: s the class, g the previous noise
$g_1$, n the new noise $g_2$, f, k, k3. So `sgk` is $E[s\,g_1 k]$ over the selected samples. `loss`
is $E[l]$; `share` is not an average but the weight of the group, selected samples per feature.

The last ones are for gradients only. With y the logit of the label and p the label, `y` stands for
$\partial f/\partial y$ (`fy`: times f) and `ky` for $\partial k/\partial y$, at a given h. For the
logistic loss $\partial f/\partial p = -(1 - ck)$ and $\partial k/\partial p = c k'$.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array

NAMES = (
    "f", "sf", "gf", "ff", "k", "sk", "gk", "nk", "sgk", "snk", "ggk", "gnk",
    "fk", "sfk", "gfk", "nfk", "ffk", "k3", "sk3", "gk3", "nk3", "fk3", "kk", "loss",
    "share", "sgf", "sff", "y", "sy", "gy", "sgy", "ggy", "fy", "sfy", "gfy", "ky", "sky", "gky",
)  # fmt: skip
"""The averages, in the order of the record."""

COUNT = len(NAMES)

AVERAGES = np.dtype([(name, np.float64) for name in NAMES], align=True)
"""Type of the record. Compiled code reads and writes its fields by name, as in `e.sgk`."""

BLANK = np.zeros(1, dtype=AVERAGES)
"""One record of zeros, with which compiled code initialises a sum: `out[i] = BLANK[0]`."""


class Extra(NamedTuple):
    """Request for averages besides those of the equations: the derivatives in the label and, if
    `loss` is true, the loss. With None instead of it, compiled code omits both and compiles faster.
    """

    loss: bool


def blank(groups: int = 1) -> Any:
    """Return records of zeros, one per group of samples, whose fields are attributes:
    `blank()[0].sgk`.
    """
    return np.zeros(groups, dtype=AVERAGES).view(np.recarray)


def named(row: Array) -> Any:
    """Return the first `COUNT` numbers of a row as a record; it is a view of the row.

    >>> row = np.zeros(COUNT)
    >>> named(row).sf = 2.0
    >>> float(row[position("sf")])
    2.0
    """
    return row[:COUNT].view(AVERAGES).view(np.recarray)[0]


def position(name: str) -> int:
    """Return the position of an average in the record."""
    return NAMES.index(name)
