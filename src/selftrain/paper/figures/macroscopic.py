r"""$q$, $m$, $B$, $\epsilon_g$ of finite systems against the theory, $\rho = 0.4$, up to a million features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ...sweep import Grid, Task
from ..computations.finite import RUN, SHOWN, THEORY
from ..figure import Claim, Data, Figure
from ..judge import by_size, listed, numbers
from ..setting import ALPHA_L, ALPHA_U, DELTA, EXPERIMENT

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SEEDS = {128: 256, 1024: 64, 8192: 32, 2**20: 4}
SEEDS_QUICK = {128: 32, 1024: 16, 8192: 8}
ENOUGH = 8
"""A standard deviation from fewer seeds is too uncertain to judge by."""
STATE = ("q", "m", "bias")
DIFFERS = 0.05

TITLES = {
    "q": r"squared norm  $q^{(t)}$",
    "m": r"overlap  $m^{(t)}$",
    "bias": r"bias  $B^{(t)}$",
    "error": r"error  $\epsilon_g^{(t)}$",
}


def runs(rhos: tuple[float, ...], seeds: Mapping[int, int]) -> dict[str, Task]:
    """Theory, and as many finite systems of each size as `seeds` says."""
    axes: dict[str, Any] = {"rho": rhos}
    tasks = {"theory": Task(THEORY, Grid(axes, EXPERIMENT))}
    for features, count in seeds.items():
        grid = Grid({**axes, "seed": tuple(range(count))}, {**EXPERIMENT, "features": features})
        tasks[f"N{features}"] = Task(RUN, grid)
    return tasks


def tasks(quick: bool) -> Mapping[str, Task]:
    return runs((0.4,), SEEDS_QUICK if quick else SEEDS)


def draw(data: Data) -> Drawing:
    return draw_columns(data, (2, 2))


def draw_columns(data: Data, shape: tuple[int, int]) -> Drawing:
    """A panel for each quantity, and a column for each rho if there are several."""
    from ...plots.paper import DOTTED, SERIES, canvas, handle, legend_right
    from ...plots.style import BLACK, GREY, steps_axis, styled

    rhos = data["theory"].rho.values.tolist()
    with styled():
        figure, axes = canvas(*shape, 3.0 * shape[1] + 1.6, 2.1 * shape[0] + 0.4)
        for column, rho in enumerate(rhos):
            panels = axes[:, column] if len(rhos) > 1 else axes.ravel()
            theory = data["theory"].sel(rho=rho)
            for ax, name in zip(panels, SHOWN, strict=True):
                ax.set_title(TITLES[name] + (rf",  $\rho={rho:g}$" if len(rhos) > 1 else ""))
                for index, (features, one) in enumerate(by_size(data)):
                    values = one[name].sel(rho=rho)
                    ax.errorbar(
                        one.t + 0.14 * (index - 1.5),
                        values.mean("seed"),
                        values.std("seed", ddof=1),
                        color=SERIES[1:][index],
                        marker="os^D"[index],
                        linestyle="none",
                        markersize=3,
                        elinewidth=0.8,
                        label=f"N = {features:,}",
                    )
                ax.plot(theory.t, theory[name], color=BLACK, linewidth=1.1, zorder=5)
                if name == "error":
                    ax.plot(theory.t, theory["bayes"], color=GREY, linestyle=DOTTED)
            steps_axis(panels, int(theory.t[-1]))
        sizes = [
            handle(
                f"N = {features:,}\n{one.seed.size} seeds",
                SERIES[1:][index],
                "os^D"[index],
                "none",
            )
            for index, (features, one) in enumerate(by_size(data))
        ]
        legend_right(
            figure, [handle("theory", BLACK), *sizes, handle("Bayes limit", GREY, "", DOTTED)]
        )
    return figure


def claims(data: Data) -> list[Claim]:
    return judge(data, float(data["theory"].rho[0]))


def judge(data: Data, rho: float) -> list[Claim]:
    """Agreement with the theory, and how fluctuations fall with N, at one rho."""
    theory = data["theory"].sel(rho=rho)
    sizes = [(features, one.sel(rho=rho)) for features, one in by_size(data)]
    about = f"rho = {rho:g}"
    many = [(features, one) for features, one in sizes if one.seed.size >= ENOUGH]
    off = {
        (features, name): _deviations(one[name], theory[name])
        for features, one in many
        for name in SHOWN
    }
    state = {n: max(off[n, name] for name in STATE) for n, _ in many if n >= 1024}
    errors = {n: off[n, "error"] for n, _ in many}
    shares = {
        n: float((abs(one["error"].mean("seed") - theory["error"]) / theory["error"]).max())
        for n, one in sizes
    }
    exponents = {name: _exponent(many, name) for name in STATE}
    return [
        Claim(
            f"{about}: q, m and B agree with the theory from N = 1024 on (theory within one standard "
            f"deviation of the mean of the runs at every step; sizes with {ENOUGH} seeds or more).",
            max(state.values()) < 1,
            "Largest distance in standard deviations by N: "
            f"{listed(list(state), np.array(list(state.values())))}.",
            numbers(**{f"N{n}": value for n, value in state.items()}),
        ),
        Claim(
            f"{about}: the error of the runs still differs at N = 1024 and agrees at N = 8192 (mean "
            f"farther than {DIFFERS:.0%} from the theory at some step, and nearer at every step).",
            shares[1024] > DIFFERS > shares[8192],
            "Largest difference of mean and theory over the theory by N: "
            f"{listed(list(shares), np.array(list(shares.values())), '{:.2%}')}; largest distance in "
            f"standard deviations by N: {listed(list(errors), np.array(list(errors.values())))}.",
            numbers(**{f"N{n}": value for n, value in shares.items()}),
        ),
        *(_at_a_million(largest, theory, about) for n, largest in sizes if n >= 2**20),
        Claim(
            f"{about}: fluctuations of q, m and B vanish as N^(-1/2) (the fitted exponent is within "
            f"0.05 plus two of its standard errors of -1/2; sizes with {ENOUGH} seeds or more, standard "
            "deviations averaged over the steps by their logarithm).",
            all(abs(value + 0.5) < 0.05 + 2 * error for value, error in exponents.values()),
            "Exponents: "
            + ", ".join(f"{name} {value:.3f} ± {e:.3f}" for name, (value, e) in exponents.items())
            + ".",
            numbers(**{name: value for name, (value, _) in exponents.items()}),
        ),
    ]


def _deviations(values: xr.DataArray, theory: xr.DataArray) -> float:
    """Largest distance of the mean from the theory over the steps, in standard deviations."""
    spread = values.std("seed", ddof=1)
    return float((abs(values.mean("seed") - theory) / spread).max())


def _at_a_million(one: xr.Dataset, theory: xr.Dataset, about: str) -> Claim:
    """What the paper could not do."""
    gaps = {
        name: float(abs(one[name].mean("seed") - theory[name]).max() / abs(theory[name]).max())
        for name in SHOWN
    }
    return Claim(
        f"{about}, not of the paper: at N = 2^20 means and theory agree (each quantity to 2 % of its "
        "largest value over the steps).",
        max(gaps.values()) < 0.02,
        f"Largest differences over {one.seed.size} seeds: "
        + ", ".join(f"{name} {gap:.2%}" for name, gap in gaps.items())
        + ".",
        numbers(**gaps),
    )


def _exponent(sizes: Sequence[tuple[int, xr.Dataset]], name: str) -> tuple[float, float]:
    """The power of N with which a standard deviation falls, and its standard error.

    The logarithm of a standard deviation from n seeds errs by 1/sqrt(2(n - 1)); steps of a run move
    together, so averaging over them takes little of that away.
    """
    logs = np.log([features for features, _ in sizes])
    spreads = [float(np.log(one[name].std("seed", ddof=1)).mean()) for _, one in sizes]
    variances = np.array([1 / (2 * (one.seed.size - 1)) for _, one in sizes])
    lever = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    return float(lever @ spreads), float(np.sqrt(lever**2 @ variances))


def caption(data: Data) -> str:
    recipes = "; ".join(
        rf"$\rho={float(one.rho):g}$: $(\lambda_L, \lambda_U, \Gamma) = ({float(one['lambda_l']):.3g}, "
        rf"{float(one['lambda_u']):.3g}, {float(one['threshold']):.3g})$"
        for one in (data["theory"].isel(rho=index) for index in range(data["theory"].rho.size))
    )
    return (
        r"Finite systems (mean and standard deviation over seeds) and theory (black), $T = 16$, "
        rf"$(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$, ridges in $(0, 0.1]$ and threshold tuned "
        rf"for the last error: {recipes}. Dotted: the Bayes limit of the batches up to $t$. Sizes are set off "
        r"sideways to be told apart; the largest goes beyond the paper."
    )


FIGURE = Figure(
    "macroscopic",
    "Macroscopic quantities: finite systems against theory",
    "Section 3.4, `fig: representative macro with experiment`",
    tasks,
    draw,
    claims,
    caption,
)
