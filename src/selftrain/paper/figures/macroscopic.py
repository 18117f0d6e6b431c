r"""$q$, $m$, $B$, $\epsilon_g$ of finite systems up to a million features against the theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Task
from ..computations.finite import RUN, SHOWN, THEORY
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import Agreement, by_size, listed, over_seeds
from ..ruling import Bar, Criterion, Judged, above, at_full_size, below, positive
from ..setting import EXPERIMENT, with_systems

if TYPE_CHECKING:
    import xarray as xr

SEEDS = {128: 256, 1024: 512, 8192: 64, 2**20: 4}
SEEDS_QUICK = {128: 32, 1024: 16, 8192: 8}
ENOUGH = 8
"""Smallest number of seeds from which a standard deviation is accurate enough to judge claims."""
STATE = ("q", "m", "bias")
GOOD = Bar(0.1, "a tenth of a quantity is what the eye sees in its panel")
VERY_GOOD = Bar(0.02, "a fifth of what the eye sees")
DISCREPANCY = Bar(0.1, "a tenth of a quantity is what the eye sees in its panel")
ROOT = Bar(0.05, "a tenth of the exponent")

SHOWN_EVERY, APART = 2, 0.36
"""Finite systems are drawn at every second step, and markers of different N are shifted by 0.36 of
a step, so that no marker hides another.
"""

TITLES = {
    "q": r"squared norm  $q^{(t)}$",
    "m": r"overlap  $m^{(t)}$",
    "bias": r"bias  $B^{(t)}$",
    "error": r"error  $\epsilon_g^{(t)}$",
}


def runs(rhos: tuple[float, ...], seeds: Mapping[int, int]) -> dict[str, Task]:
    """Return the tasks of theory and finite systems; `seeds` maps N to the number of systems."""
    return with_systems(THEORY, RUN, {"rho": rhos}, EXPERIMENT, seeds)


def tasks(quick: bool) -> Tasks:
    return runs((0.4,), SEEDS_QUICK if quick else SEEDS)


def draw(data: Data) -> Drawn:
    """Draw a panel for each quantity, and a column for each rho if there are several."""
    rhos, sizes = data["theory"].rho.values.tolist(), by_size(data)
    shape = (4, len(rhos)) if len(rhos) > 1 else (2, 2)
    figure, axes = pic.canvas(*shape, 3.0 * shape[1] + 1.6, 2.1 * shape[0] + 0.4)
    for column, rho in enumerate(rhos):
        panels = axes[:, column] if len(rhos) > 1 else axes.ravel()
        theory = data["theory"].sel(rho=rho)
        for ax, name in zip(panels, SHOWN, strict=True):
            ax.set_title(TITLES[name] + (rf",  $\rho={rho:g}$" if len(rhos) > 1 else ""))
            for index, (_, every) in enumerate(sizes):
                one = every[name].sel(rho=rho).isel(t=slice(None, None, SHOWN_EVERY))
                x = one.t + APART * (index - 0.5 * (len(sizes) - 1))
                look = (pic.SERIES[1:][index], pic.SIZE_MARKERS[index])
                pic.systems(ax, x, one, *look, size=2.8)
            ax.plot(theory.t, theory[name], color=style.BLACK, linewidth=0.9, zorder=1)
            if name == "error":
                ax.plot(theory.t, theory["bayes"], color=style.GREY, linestyle=pic.DOTTED)
        style.steps_axis(panels, int(theory.t[-1]))
        for ax in panels:
            ax.set_xlim(-2 * APART, int(theory.t[-1]) + 2 * APART)
    return figure, [
        pic.handle("theory", style.BLACK),
        *pic.size_legend(sizes),
        pic.handle("Bayes error", style.GREY, "", pic.DOTTED),
    ]


def judge(data: Data) -> Claims:
    theory = data["theory"].isel(rho=0)
    rho = float(theory.rho)
    features, largest = by_size(data)[-1]
    case = f"q, m, B and the error at rho = {rho:g}"
    yield _agrees("overall", dict(by_size(data))[8192].sel(rho=rho), theory, SHOWN, GOOD, case=case)
    million = positive("largest N over 2^20, less one half", features / 2**20 - 0.5)
    size = f"N = {features:,}. "
    yield _agrees("million", largest.sel(rho=rho), theory, SHOWN, VERY_GOOD, million, size=size)


def judge_at(data: Data, rho: float) -> Claims:
    """Judge the claims of the appendix at one rho: agreement at N = 1024, fluctuations, and the
    error.
    """
    theory = data["theory"].sel(rho=rho)
    sizes = {features: one.sel(rho=rho) for features, one in by_size(data)}
    case = f"rho = {rho:g}"
    spreads = {
        name: np.array([float(one[name].std("seed", ddof=1).mean()) for one in sizes.values()])
        for name in STATE
    }
    errors = {n: agree(one, theory, "error") for n, one in sizes.items()}
    largest = {n: one.largest for n, one in errors.items()}
    small, large = errors[1024], errors[8192]
    yield _agrees("good", sizes[1024], theory, STATE, GOOD, case=case)
    yield at_full_size(
        "fluctuations",
        "; ".join(f"{name}: {listed(one, names=list(sizes))}" for name, one in spreads.items())
        + ".",
        *(
            positive(f"smallest fall of {name}", -np.diff(one).max())
            for name, one in spreads.items()
        ),
        case=case,
    )
    yield at_full_size(
        "discrepancy",
        "Largest difference of mean and theory over the theory by N: "
        f"{listed(largest, '{:.2%}')}; at least {max(small.at_least, 0):.2%} at N = 1024, at"
        f" most {large.at_most:.2%} at N = 8192.",
        above(
            "largest difference at N = 1024",
            small.largest,
            DISCREPANCY,
            small.at_least,
            small.at_most,
        ),
        large.within("largest difference at N = 8192", DISCREPANCY),
        case=case,
        values={"bar": DISCREPANCY},
    )


def powers(data: Data) -> Judged:
    """Judge how fluctuations decrease with N, at every rho."""
    exponents = {
        (float(rho), name): _exponent(
            [(n, one.sel(rho=rho)) for n, one in by_size(data) if one.seed.size >= ENOUGH], name
        )
        for rho in data["theory"].rho
        for name in STATE
    }
    return at_full_size(
        "powers",
        "Exponents: "
        + ", ".join(
            f"{name} at rho = {rho:g}: {value:.3f} ± {error:.3f}"
            for (rho, name), (value, error) in exponents.items()
        )
        + ".",
        *(
            below(f"{name} at rho = {rho:g}", abs(value + 0.5) - 2 * error, ROOT)
            for (rho, name), (value, error) in exponents.items()
        ),
    )


def agree(one: xr.Dataset, theory: xr.Dataset, name: str) -> Agreement:
    """Compare means of a quantity over seeds with the theory, relative to it at each step."""
    # the bias is zero at rho = 1/2, so it is compared in units of the overlap
    return over_seeds(one[name], theory[name], abs(theory["m" if name == "bias" else name]))


def _agrees(
    key: str,
    one: xr.Dataset,
    theory: xr.Dataset,
    names: Sequence[str],
    bar: Bar,
    *also: Criterion,
    size: str = "",
    case: str = "",
) -> Judged:
    """Judge whether the means of several quantities agree with the theory."""
    found = {name: agree(one, theory, name) for name in names}
    criteria = [one.within(f"largest difference of {name}", bar) for name, one in found.items()]
    parts = "; ".join(
        f"{name}: largest difference {one.largest:.2%}, at most {one.at_most:.2%},"
        f" {one.detectable:.2%} would be seen"
        for name, one in found.items()
    )
    return at_full_size(
        key,
        f"{size}{parts} ({one.seed.size} seeds; seen: with a power of 90 %).",
        *criteria,
        *also,
        case=case,
        values={"bar": bar},
    )


def _exponent(sizes: Sequence[tuple[int, xr.Dataset]], name: str) -> tuple[float, float]:
    """Return the exponent of N in the standard deviation over seeds, and its standard error.

    The standard error of the logarithm of a standard deviation from n seeds is 1/sqrt(2(n - 1));
    averaging over steps hardly reduces it, because they are correlated.
    """
    logs = np.log([features for features, _ in sizes])
    spreads = [float(np.log(one[name].std("seed", ddof=1)).mean()) for _, one in sizes]
    variances = np.array([1 / (2 * (one.seed.size - 1)) for _, one in sizes])
    lever = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    return float(lever @ spreads), float(np.sqrt(lever**2 @ variances))


def caption_values(data: Data) -> dict[str, Any]:
    theory = data["theory"]
    recipe = r"$\rho={:g}$: $(\lambda_L, \lambda_U, \Gamma) = ({:.3g}, {:.3g}, {:.3g})$"
    names = ("rho", "lambda_l", "lambda_u", "threshold")
    rows = zip(*(np.atleast_1d(theory[name].values) for name in names), strict=True)
    return {"recipes": "; ".join(recipe.format(*map(float, row)) for row in rows)}
