r"""Elements shared by the figures of the papers: one colour for each $\rho$, markers and dashes as
in the captions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, product
from string import ascii_lowercase
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, YELLOW, logarithmic, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

RHO_COLORS = {0.5: BLACK, 0.495: BLUE, 0.4: GREEN, 0.2: ORANGE}
"""Colours of the class proportions of the paper."""

SERIES = (BLACK, BLUE, SKY, GREEN, YELLOW, ORANGE, PURPLE, GREY)
"""Colours of series that do not differ by rho."""

DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.5))
SIZE_MARKERS = "os^Dv"
"""Markers of finite systems, from small to large."""

JUMP = 8.0
"""Neighbours on a logarithmic axis that differ by a larger factor belong to different local minima;
no line joins them.
"""


def finished(
    draw: Callable[[Any], tuple[Figure, Sequence[Line2D]]],
    data: Mapping[str, xr.Dataset],
    note: str = "",
) -> Figure:
    """Draw a figure in the common style, with letters on its panels and a legend on the right.

    Arguments:
        draw: returns the figure and the entries of its legend.
        note: a remark above the panels.
    """
    with styled():
        figure, handles = draw(data)
        letters = ascii_lowercase if len(figure.axes) > 1 else ""
        for ax, name in zip(figure.axes, letters, strict=False):
            ax.set_title(f"({name})  {ax.get_title(loc='left')}".rstrip(), loc="left")
        if handles:
            right: Any = {"loc": "outside right upper", "fontsize": 7.5, "frameon": False}
            figure.legend(handles=list(handles), **right)
        if note:
            lines = wrap(note, int(12 * figure.get_figwidth()))
            figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=8)
    return figure


def canvas(
    rows: int, columns: int, width: float, height: float, x: str = "", y: str = "", **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """Return a figure with a grid of panels, and its axes as an array of that shape.

    Arguments:
        x: label under the last row.
        y: label beside the first column.
        options: of `Figure.subplots`.
    """
    from .canvas import new_picture

    figure = new_picture(width, height, 160)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes[-1]:
        ax.set_xlabel(x)
    for ax in axes[:, 0]:
        ax.set_ylabel(y)
    return figure, axes


def series(
    ax: Axes,
    x: Any,
    y: Any,
    color: str,
    marker: str = "o",
    filled: bool = True,
    jump: float | None = None,
) -> None:
    """Draw a curve with markers: filled ones on a solid line, or white ones on a dashed line.

    Arguments:
        jump: break the line between neighbours that differ by more than this factor.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if jump is not None:
        breaks = 1 + np.flatnonzero(np.abs(np.diff(np.log(positive(y)))) > np.log(jump))
        x, y = np.insert(x, breaks, np.nan), np.insert(y, breaks, np.nan)
    ax.plot(x, y, **_look(color, marker, "solid" if filled else DASHED, filled))


def measured(
    ax: Axes, x: Any, mean: Any, spread: Any, color: str, marker: str, size: float = 3.5
) -> None:
    """Draw markers with error bars."""
    look: Any = {"color": color, "marker": marker, "markersize": size, "elinewidth": 0.8}
    ax.errorbar(x, mean, spread, linestyle="none", **look)


def systems(ax: Axes, x: Any, values: xr.DataArray, color: str, marker: str, **size: Any) -> None:
    """Draw the mean and standard deviation of finite systems over their seeds."""
    measured(ax, x, values.mean("seed"), values.std("seed", ddof=1), color, marker, **size)


def size_legend(
    sizes: Iterable[tuple[int, xr.Dataset]], colors: Sequence[str] = SERIES[1:]
) -> list[Line2D]:
    """Return legend entries of finite systems: N and the number of seeds."""
    return [
        handle(f"N = {features:,}\n{one.seed.size} seeds", color, marker, "none")
        for (features, one), color, marker in zip(sizes, colors, SIZE_MARKERS, strict=False)
    ]


def reference(ax: Axes, x: Any, y: Any, color: str = GREY, dashes: Any = DOTTED) -> None:
    """Draw a thin line without markers, to compare curves with."""
    ax.plot(x, y, color=color, linestyle=dashes, linewidth=1.0)


def bound(ax: Axes, value: float, color: str = GREY) -> None:
    """Draw a bound of a search: a thin dotted line across the panel."""
    ax.axhline(value, color=color, linewidth=0.9, linestyle=DOTTED)


def lengths_axis(
    axes: Iterable[Axes], lengths: Sequence[int], label: str = "total number of steps $T$"
) -> None:
    """Set a logarithmic axis of T (powers of two); of many ticks every second one has a label."""
    from matplotlib.ticker import FixedLocator, NullLocator

    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(FixedLocator([float(length) for length in lengths]))
        ax.xaxis.set_minor_locator(NullLocator())
        every = 2 if len(lengths) > 6 else 1
        ax.set_xticklabels([str(n) if i % every == 0 else "" for i, n in enumerate(lengths)])
        ax.set_xlabel(label)


def few_ticks(ax: Axes) -> None:
    """Put few ticks on the x-axis, small numbers as powers of ten: longer labels would overlap."""

    def short(value: float, _: Any) -> str:
        digits, _, power = f"{value:.3g}".partition("e")
        return rf"${digits}\cdot 10^{{{int(power)}}}$" if power else digits

    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(short)


def ratio_ticks(axes: Iterable[Axes]) -> None:
    """Make the y-axis of ratios near one logarithmic, with plain numbers as tick labels."""
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
    """Return an entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=text, **_look(color, marker, line, filled))


def _look(color: str, marker: str, line: Any, filled: bool) -> dict[str, Any]:
    """Return the look of a curve and of its entry in the legend."""
    face = color if filled else "white"
    look = {"color": color, "marker": marker, "linestyle": line, "mfc": face}
    return {**look, "markersize": 4, "linewidth": 1.2}


def switch_legend(on: str, off: str) -> list[Line2D]:
    """Return two legend entries: filled markers on a solid line (`on`), white ones on a dashed line
    (`off`).
    """
    return [handle(on, GREY, "o"), handle(off, GREY, "o", DASHED, filled=False)]


def value_legend(symbol: str, colors: Mapping[float, str], note: str = "") -> list[Line2D]:
    """Return a legend entry for each value of a parameter."""
    return [handle(f"${symbol}={value:g}${note}", color, "o") for value, color in colors.items()]


def rho_colors(rhos: Iterable[float]) -> dict[float, str]:
    r"""Return a colour for each $\rho$; the values of the paper have fixed colours.

    >>> rho_colors([0.5, 0.3])[0.5] == rho_colors([0.5, 0.4])[0.5]
    True
    """
    wanted = [float(rho) for rho in rhos]
    taken = {RHO_COLORS[rho] for rho in wanted if rho in RHO_COLORS}
    left = cycle([color for color in SERIES if color not in taken])
    return {rho: RHO_COLORS[rho] if rho in RHO_COLORS else next(left) for rho in wanted}


def rho_legend(rhos: Iterable[float]) -> list[Line2D]:
    r"""Return legend entries of the colours of $\rho$."""
    return value_legend(r"\rho", rho_colors(rhos))


def positive(values: Any) -> Any:
    """Replace values <= 0 by NaN, for a logarithmic axis."""
    values = np.asarray(values, dtype=float)
    return np.where(values > 0, values, np.nan)


def delta_columns(
    chains: xr.Dataset, rows: int, width: float, margin: float, height: float
) -> tuple[Figure, NDArray[Any], list[xr.Dataset]]:
    r"""Return a figure with a column of panels against T for each $\Delta$, its axes, and the data
    at each $\Delta$.

    Arguments:
        width: of a column, in inches.
        margin: additional width for the legend.
        height: of the figure, in inches.
    """
    deltas, lengths = chains.delta.values.tolist(), chains.T.values.tolist()
    size = (width * len(deltas) + margin, height)
    figure, axes = canvas(rows, len(deltas), *size, sharex=True, sharey="row")
    for column, delta in zip(axes.T, deltas, strict=True):
        column[0].set_title(rf"$\Delta = {delta:g}$")
        lengths_axis(column, lengths)
        for ax in column[:-1]:
            ax.set_xlabel("")
    return figure, axes, [chains.sel(delta=delta) for delta in deltas]


def label_rows(axes: NDArray[Any], *labels: str) -> None:
    """Label the y-axis of each row of panels."""
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label)


def draw_ratio(
    chains: xr.Dataset, switch: str, on: str, off: str
) -> tuple[Figure, Sequence[Line2D]]:
    r"""Draw the ratio of the error to that of supervised learning against T, in three rows: the
    ratio, its deviation from one, and reference lines.

    There is a column for each $\Delta$ and a colour for each $\rho$. `switch` is the name of a
    boolean axis: filled markers where it is true (`on` in the legend), white ones where it is false
    (`off`).
    """
    colors = rho_colors(chains.rho.values)
    figure, axes, cases = delta_columns(chains, 3, 3.4, 2.2, 7.6)
    for (raw, apart, lines), at_delta in zip(axes.T, cases, strict=True):
        for case in each(at_delta, ("rho", switch)):
            ratio = case["error"] / case["supervised"]
            color, filled = colors[float(case.rho)], bool(case[switch])
            series(raw, case.T, ratio, color, "o", filled)
            series(apart, case.T, positive(np.abs(1 - ratio)), color, "o", filled)
            if filled:
                reference(lines, case.T, case["bayes"] / case["supervised"], color)
                other = case["supervised_any_ridge"] / case["supervised"]
                reference(lines, case.T, other, color, DASHED)
        logarithmic(apart)
    label_rows(
        axes,
        r"$\epsilon_g^{(T)} / \epsilon_g^{(SL)}$",
        r"$|1 - \epsilon_g^{(T)} / \epsilon_g^{(SL)}|$",
        r"line over $\epsilon_g^{(SL)}$",
    )
    return figure, [
        *rho_legend(chains.rho.values),
        *switch_legend(on, off),
        handle("below: supervised,\nany ridge", GREY, "", DASHED),
        handle("below: Bayes error", GREY, "", DOTTED),
    ]


def batch_colors(chains: xr.Dataset) -> dict[float, str]:
    r"""Return a colour for each $\alpha_U$."""
    return dict(zip(chains.alpha_u.values.tolist(), cycle(SERIES), strict=False))


def draw_batches(ax: Axes, values: xr.DataArray, filled: bool) -> None:
    r"""Draw values against T in one panel, a colour for each $\alpha_U$."""
    for alpha, color in batch_colors(values.to_dataset(name="values")).items():
        series(ax, values["T"], values.sel(alpha_u=alpha), color, "o", filled)
    lengths_axis((ax,), values["T"].values.tolist())


def each(data: xr.Dataset, names: Sequence[str]) -> Iterator[xr.Dataset]:
    """Yield the dataset at every combination of some of its axes."""
    for values in product(*(data[name].values for name in names)):
        yield data.sel(dict(zip(names, values, strict=True)))
