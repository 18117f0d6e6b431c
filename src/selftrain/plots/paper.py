r"""Pieces that the figures of the paper share: one colour for one $\rho$, markers and dashes as the captions say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, YELLOW

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

RHO_COLORS = {0.5: BLACK, 0.495: BLUE, 0.4: GREEN, 0.3: YELLOW, 0.2: ORANGE}
DELTA_MARKERS = {1.0: "o", 0.75**2: "s"}
SERIES = (BLACK, BLUE, SKY, GREEN, YELLOW, ORANGE, PURPLE, GREY)
"""Colours of series that are not of different rho."""

DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.5))


def canvas(
    rows: int, columns: int, width: float, height: float, **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure of so many panels, and its axes as an array of that shape; call inside `styled()`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=160, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def series(
    ax: Axes, x: Any, y: Any, color: str, marker: str = "o", filled: bool = True, **options: Any
) -> None:
    """A curve with markers: filled ones on a solid line, or white ones on a dashed line."""
    ax.plot(
        x,
        y,
        color=color,
        marker=marker,
        linestyle="solid" if filled else DASHED,
        mfc=color if filled else "white",
        markersize=4,
        linewidth=1.2,
        **options,
    )


def limit(ax: Axes, x: Any, y: Any, color: str = GREY) -> None:
    """The Bayes limit: a thin dotted line without markers."""
    ax.plot(x, y, color=color, linestyle=DOTTED, linewidth=1.0)


def lengths_axis(
    axes: Iterable[Axes], lengths: Sequence[int], label: str = "total number of steps $T$"
) -> None:
    """T over powers of two."""
    from matplotlib.ticker import FixedLocator, NullLocator

    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(FixedLocator([float(length) for length in lengths]))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticklabels([str(length) for length in lengths])
        ax.set_xlabel(label)


def handle(
    text: str, color: str = GREY, marker: str = "", line: Any = "solid", filled: bool = True
) -> Line2D:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], color=color, marker=marker, linestyle=line, label=text, markersize=4,
        mfc=color if filled else "white", linewidth=1.2,
    )  # fmt: skip


def cases_legend(rhos: Iterable[float], deltas: Iterable[float]) -> list[Line2D]:
    r"""Entries for the colours of $\rho$ and the markers of $\Delta$."""
    colors = [handle(rf"$\rho={rho:g}$", RHO_COLORS[rho]) for rho in rhos]
    markers = [
        handle(rf"$\Delta={delta:g}$", GREY, DELTA_MARKERS[delta], "none") for delta in deltas
    ]
    return colors + markers


def legend_right(figure: Figure, handles: Sequence[Line2D]) -> None:
    """One legend for all panels, at the right of the figure."""
    figure.legend(handles=list(handles), loc="outside right upper", fontsize=7.5, frameon=False)


def positive(values: Any) -> Any:
    """Values for a logarithmic axis: what is not positive is left out."""
    values = np.asarray(values, dtype=float)
    return np.where(values > 0, values, np.nan)


def draw_ratio(chains: xr.Dataset, switch: str) -> Figure:
    r"""Error over that of supervised learning against T, raw above, deviation from one below.

    Colours are of $\rho$, markers of $\Delta$; `switch` names the axis that is filled or white.
    """
    figure, axes = canvas(2, 1, 7.2, 6.4, sharex=True)
    upper, lower = axes[:, 0]
    for case in each(chains, ("rho", "delta", switch)):
        ratio = case["error"] / case["supervised"]
        color, marker = RHO_COLORS[float(case.rho)], DELTA_MARKERS[float(case.delta)]
        filled = bool(case[switch])
        series(upper, case.T, ratio, color, marker, filled)
        series(lower, case.T, positive(np.abs(1 - ratio)), color, marker, filled)
        if filled:
            limit(upper, case.T, case["bayes"] / case["supervised"], color)
            limit(lower, case.T, positive(1 - case["bayes"] / case["supervised"]), color)
    upper.set_ylabel(r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$")
    lower.set_ylabel(r"$|1 - \epsilon_g^{(T)} / \epsilon_g^{(SL)}|$")
    lower.set_yscale("log")
    lengths_axis((upper, lower), chains.T.values.tolist())
    upper.set_xlabel("")
    return figure


def each(data: xr.Dataset, names: Sequence[str]) -> Iterator[xr.Dataset]:
    """The dataset at every combination of some of its axes."""
    for values in product(*(data[name].values for name in names)):
        yield data.sel(dict(zip(names, values, strict=True)))
