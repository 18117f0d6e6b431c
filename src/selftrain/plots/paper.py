r"""Pieces that the figures of the paper share: one colour for one $\rho$, markers and dashes as the
captions say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, YELLOW, logarithmic

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

RHO_COLORS = {0.5: BLACK, 0.495: BLUE, 0.4: GREEN, 0.2: ORANGE}
"""The shares of the paper."""

SERIES = (BLACK, BLUE, SKY, GREEN, YELLOW, ORANGE, PURPLE, GREY)
"""Colours of series that are not of different rho."""

DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.5))
JUMP = 8.0
"""Neighbours on a logarithmic axis that differ by a larger factor are in different valleys: no line
joins them.
"""


def canvas(
    rows: int, columns: int, width: float, height: float, **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure of so many panels, and its axes as an array of that shape; call inside
    `styled()`.
    """
    from .canvas import new_picture

    figure = new_picture(width, height, 160)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def letter(axes: Iterable[Axes]) -> None:
    """Put (a), (b), ... before the titles of panels, in the order given."""
    for ax, name in zip(axes, ascii_lowercase, strict=False):
        title = ax.get_title(loc="left")
        ax.set_title(f"({name})  {title}" if title else f"({name})", loc="left")


def series(
    ax: Axes,
    x: Any,
    y: Any,
    color: str,
    marker: str = "o",
    filled: bool = True,
    jump: float | None = None,
) -> None:
    """A curve with markers: filled ones on a solid line, or white ones on a dashed line.

    Arguments:
        jump: break the line between neighbours that differ by more than this factor.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    ends = np.arange(1, y.size)
    if jump is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(np.diff(np.log(np.where(y > 0, y, np.nan))))
        ends = ends[ratio > np.log(jump)]
    else:
        ends = ends[:0]
    ax.plot(
        np.insert(x, ends, np.nan),
        np.insert(y, ends, np.nan),
        color=color,
        marker=marker,
        linestyle="solid" if filled else DASHED,
        mfc=color if filled else "white",
        markersize=4,
        linewidth=1.2,
    )


def reference(ax: Axes, x: Any, y: Any, color: str = GREY, dashes: Any = DOTTED) -> None:
    """What a curve is compared with: a thin line without markers."""
    ax.plot(x, y, color=color, linestyle=dashes, linewidth=1.0)


def bound(ax: Axes, value: float, color: str = GREY) -> None:
    """A bound of a search: a thin dotted line across the panel."""
    ax.axhline(value, color=color, linewidth=0.9, linestyle=DOTTED)


def lengths_axis(
    axes: Iterable[Axes], lengths: Sequence[int], label: str = "total number of steps $T$"
) -> None:
    """T over powers of two; every second number where they are many."""
    from matplotlib.ticker import FixedLocator, NullLocator

    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(FixedLocator([float(length) for length in lengths]))
        ax.xaxis.set_minor_locator(NullLocator())
        every = 2 if len(lengths) > 6 else 1
        ax.set_xticklabels([str(n) if i % every == 0 else "" for i, n in enumerate(lengths)])
        ax.set_xlabel(label)


def few_ticks(ax: Axes) -> None:
    """Few numbers along x, as powers of ten where they are small: plain digits of 1e-10 would run
    into each other.
    """
    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(lambda value, _: _short(value))


def _short(value: float) -> str:
    digits, _, power = f"{value:.3g}".partition("e")
    return rf"${digits}\cdot 10^{{{int(power)}}}$" if power else digits


def ratio_ticks(axes: Iterable[Axes]) -> None:
    """A logarithmic axis of ratios near one, with plain numbers over its whole range."""
    steps = (0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20)
    for ax in axes:
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        ticks: list[float] = []
        for value in (step for step in steps if low <= step <= high):
            if not ticks or np.log(value / ticks[-1]) > 0.06 * np.log(high / low):
                ticks.append(value)
        ax.set_yticks(ticks, [f"{value:g}" for value in ticks])
        ax.set_yticks([], minor=True)


def handle(
    text: str, color: str = GREY, marker: str = "", line: Any = "solid", filled: bool = True
) -> Line2D:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], color=color, marker=marker, linestyle=line, label=text, markersize=4,
        mfc=color if filled else "white", linewidth=1.2,
    )  # fmt: skip


def rho_colors(rhos: Iterable[float]) -> dict[float, str]:
    r"""A colour for each $\rho$: those of the paper always have the same, others get what is left.

    >>> rho_colors([0.5, 0.3])[0.5] == rho_colors([0.5, 0.4])[0.5]
    True
    """
    wanted = [float(rho) for rho in rhos]
    taken = {RHO_COLORS[rho] for rho in wanted if rho in RHO_COLORS}
    left = cycle([color for color in SERIES if color not in taken])
    return {rho: RHO_COLORS[rho] if rho in RHO_COLORS else next(left) for rho in wanted}


def rho_legend(rhos: Iterable[float]) -> list[Line2D]:
    r"""Entries for the colours of $\rho$."""
    return [handle(rf"$\rho={rho:g}$", color, "o") for rho, color in rho_colors(rhos).items()]


def legend_right(figure: Figure, handles: Sequence[Line2D]) -> None:
    """One legend for all panels, at the right of the figure."""
    figure.legend(handles=list(handles), loc="outside right upper", fontsize=7.5, frameon=False)


def legend_under(figure: Figure, handles: Sequence[Line2D], columns: int = 4) -> None:
    """One legend for all panels, under the figure."""
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        fontsize=7.5,
        frameon=False,
        ncols=columns,
    )


def positive(values: Any) -> Any:
    """Values for a logarithmic axis: what is not positive is left out."""
    values = np.asarray(values, dtype=float)
    return np.where(values > 0, values, np.nan)


def draw_ratio(chains: xr.Dataset, switch: str, on: str, off: str) -> Figure:
    r"""Error over that of supervised learning against T: raw, deviation from one, and the lines to
    compare with.

    Columns are of $\Delta$, colours of $\rho$; `switch` names the axis that is filled (`on`) or
    white (`off`).
    """
    deltas, colors = chains.delta.values.tolist(), rho_colors(chains.rho.values)
    figure, axes = canvas(3, len(deltas), 3.4 * len(deltas) + 2.2, 7.6, sharex=True, sharey="row")
    for column, delta in zip(axes.T, deltas, strict=True):
        raw, apart, lines = column
        for case in each(chains.sel(delta=delta), ("rho", switch)):
            ratio = case["error"] / case["supervised"]
            color, filled = colors[float(case.rho)], bool(case[switch])
            series(raw, case.T, ratio, color, "o", filled)
            series(apart, case.T, positive(np.abs(1 - ratio)), color, "o", filled)
            if filled:
                reference(lines, case.T, case["bayes"] / case["supervised"], color)
                other = case["supervised_any_ridge"] / case["supervised"]
                reference(lines, case.T, other, color, DASHED)
        raw.set_title(rf"$\Delta = {delta:g}$")
        logarithmic(apart)
        lengths_axis(column, chains.T.values.tolist())
        raw.set_xlabel("")
        apart.set_xlabel("")
    labels = (
        r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$",
        r"$|1 - \epsilon_g^{(T)} / \epsilon_g^{(SL)}|$",
        r"line over $\epsilon_g^{(SL)}$",
    )
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label)
    letter(axes.ravel())
    legend_right(
        figure,
        [
            *rho_legend(chains.rho.values),
            handle(on, GREY, "o"),
            handle(off, GREY, "o", DASHED, filled=False),
            handle("below: supervised,\nany ridge", GREY, "", DASHED),
            handle("below: Bayes limit", GREY, "", DOTTED),
        ],
    )
    return figure


def batch_colors(chains: xr.Dataset) -> dict[float, str]:
    r"""A colour for each $\alpha_U$."""
    return dict(zip(chains.alpha_u.values.tolist(), cycle(SERIES), strict=False))


def draw_batches(ax: Axes, values: xr.DataArray, filled: bool) -> None:
    r"""Values against T in one panel, a colour for each $\alpha_U$."""
    for alpha, color in batch_colors(values.to_dataset(name="values")).items():
        series(ax, values["T"], values.sel(alpha_u=alpha), color, "o", filled)
    lengths_axis((ax,), values["T"].values.tolist())


def each(data: xr.Dataset, names: Sequence[str]) -> Iterator[xr.Dataset]:
    """The dataset at every combination of some of its axes."""
    for values in product(*(data[name].values for name in names)):
        yield data.sel(dict(zip(names, values, strict=True)))
