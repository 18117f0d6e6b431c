r"""The averages of one step as one named record: computed by every engine, read by every equation.

With x the proximal point, $x + c\,l'(x) = h$, a step needs averages of $f = l'(x)$, of
$k = \partial f/\partial h = l''/(1 + c l'')$ and of $k' = \partial k/\partial h = l'''/(1 + c
l'')^3$ (called `k3`). A name lists the factors of its average: s the class, g the previous noise
$g_1$, n the new noise $g_2$, f, k, k3. So `sgk` is $E[s\,g_1 k]$ over the selected samples. `loss`
is $E[l]$; `share` is not an average but the weight of the group, selected samples per feature.

The last ones serve gradients only. With y the logit of the label and p the label, `y` stands for
$\partial f/\partial y$ (`fy`: times f) and `ky` for $\partial k/\partial y$ at a given h, where
$\partial f/\partial p = -(1 - ck)$ and $\partial k/\partial p = c k'$ for the logistic loss.
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
"""The record. Compiled code reads and writes its fields by name, as in `e.sgk`."""

BLANK = np.zeros(1, dtype=AVERAGES)
"""One record of zeros, for compiled code to begin a sum with: `out[i] = BLANK[0]`."""


class Extra(NamedTuple):
    """Averages beside those of the equations: the derivatives in the label and, if `loss` says so,
    the loss. Where None is given instead, compiled code leaves both out and compiles faster.
    """

    loss: bool


def blank(groups: int = 1) -> Any:
    """Zero records, one per group of samples; `blank()[0].sgk` is a number to read or to write."""
    return np.zeros(groups, dtype=AVERAGES).view(np.recarray)


def named(row: Array) -> Any:
    """Return the record that lives in the first `COUNT` numbers of a row; writing to one changes
    the other.

    >>> row = np.zeros(COUNT)
    >>> named(row).sf = 2.0
    >>> float(row[position("sf")])
    2.0
    """
    return row[:COUNT].view(AVERAGES).view(np.recarray)[0]


def position(name: str) -> int:
    """Return the position of an average in the record."""
    return NAMES.index(name)
