"""Quantities over the steps as a table or a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..observables import SYMBOLS, entries

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

DIMENSIONS = {
    "confusion": ("true", "predicted"),
    "m": ("score", "true"),
    "bias": ("score",),
    "class_errors": ("true",),
    "label_shares": ("class",),
}
"""What the axes after t are, of quantities that have more than one."""


def as_frame(t: NDArray[np.int64], quantities: Mapping[str, Array]) -> pd.DataFrame:
    """Return quantities as a table, one row per step; one column for every entry of an array."""
    import pandas as pd

    parts = [entries(name, values, 1) for name, values in quantities.items()]
    columns = {key: values for part in parts for key, values in part.items()}
    return pd.DataFrame(columns, index=pd.Index(t, name="t"))


def as_dataset(
    t: NDArray[np.int64], quantities: Mapping[str, Array], about: dict[str, Any]
) -> xr.Dataset:
    """Return quantities as a dataset over t and other named dimensions."""
    import xarray as xr

    data = {
        name: (
            ("t", *DIMENSIONS.get(name, ())[: values.ndim - 1]),
            values,
            {"symbol": SYMBOLS.get(name, name)},
        )
        for name, values in quantities.items()
    }
    return xr.Dataset(data, coords={"t": t}, attrs=about)
