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


def draw_ratio(chains: xr.Dataset, switch: str, on: str, off: str) -> Figure:
    r"""Error over that of supervised learning against T, raw above, deviation from one below.

    Colours are of $\rho$, markers of $\Delta$; `switch` names the axis that is filled (`on`) or white (`off`).
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
    switches = [handle(on, GREY, "o"), handle(off, GREY, "o", DASHED, filled=False)]
    bayes = handle("Bayes limit", GREY, "", DOTTED)
    legend_right(figure, [*cases_legend(chains.rho.values, chains.delta.values), *switches, bayes])
    return figure


def draw_batches(
    chains: xr.Dataset, values: xr.DataArray, bayes: xr.DataArray | None = None
) -> Figure:
    r"""One panel: values against T, a colour for each $\alpha_U$, filled with selection; the Bayes limit if given."""
    colors = dict(zip(chains.alpha_u.values.tolist(), SERIES, strict=False))
    figure, axes = canvas(1, 1, 7.6, 4.2)
    ax = axes[0, 0]
    for alpha, color in colors.items():
        for chosen in chains.selection.values:
            where = {"alpha_u": alpha, "selection": chosen}
            series(ax, chains.T, values.sel(where), color, "o", bool(chosen))
            if chosen and bayes is not None:
                limit(ax, chains.T, bayes.sel(where), color)
    ax.set_yscale("log")
    lengths_axis((ax,), chains.T.values.tolist())
    entries = [
        *(handle(rf"$\alpha_U={alpha:g}$", color) for alpha, color in colors.items()),
        handle(r"$\Gamma$ tuned", GREY, "o"),
        handle(r"$\Gamma = 0$", GREY, "o", DASHED, filled=False),
    ]
    if bayes is not None:
        entries.append(handle("Bayes limit", GREY, "", DOTTED))
    legend_right(figure, entries)
    return figure


def each(data: xr.Dataset, names: Sequence[str]) -> Iterator[xr.Dataset]:
    """The dataset at every combination of some of its axes."""
    for values in product(*(data[name].values for name in names)):
        yield data.sel(dict(zip(names, values, strict=True)))
