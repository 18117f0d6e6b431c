r"""$q$, $m$, $B$, $\epsilon_g$ of finite systems against the theory, $\rho = 0.4$, up to a million
features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ...sweeps import Grid, Task
from ..computations.finite import RUN, SHOWN, THEORY
from ..figure import Claim, Data, Figure, Finding, Place
from ..judge import Agreement, agreement, by_size, listed, numbers
from ..ruling import Bar, Criterion, above, at_full_size, below, positive
from ..setting import ALPHA_L, ALPHA_U, DELTA, EXPERIMENT

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SEEDS = {128: 256, 1024: 512, 8192: 64, 2**20: 4}
SEEDS_QUICK = {128: 32, 1024: 16, 8192: 8}
ENOUGH = 8
"""A standard deviation from fewer seeds is too uncertain to judge by."""
STATE = ("q", "m", "bias")
GOOD = Bar(0.1, "a tenth of a quantity is what the eye sees in its panel")
VERY_GOOD = Bar(0.02, "a fifth of what the eye sees")
DISCREPANCY = Bar(0.1, "a tenth of a quantity is what the eye sees in its panel")
ROOT = Bar(0.05, "a tenth of the exponent")

OVERALL = (
    "Overall, the RS solution agrees well with the results of numerical experiments on finite size"
    " systems."
)

SHOWN_EVERY, APART = 2, 0.36
"""Steps between those at which finite systems are drawn, and between the sizes at one of them: no
marker hides another.
"""

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
    """A panel for each quantity, and a column for each rho if there are several."""
    from ...plots.paper import DOTTED, SERIES, canvas, handle, legend_right, letter
    from ...plots.style import BLACK, GREY, steps_axis, styled

    rhos = data["theory"].rho.values.tolist()
    shape = (4, len(rhos)) if len(rhos) > 1 else (2, 2)
    with styled():
        figure, axes = canvas(*shape, 3.0 * shape[1] + 1.6, 2.1 * shape[0] + 0.4)
        for column, rho in enumerate(rhos):
            panels = axes[:, column] if len(rhos) > 1 else axes.ravel()
            theory = data["theory"].sel(rho=rho)
            for ax, name in zip(panels, SHOWN, strict=True):
                ax.set_title(TITLES[name] + (rf",  $\rho={rho:g}$" if len(rhos) > 1 else ""))
                sizes = by_size(data)
                for index, (features, every) in enumerate(sizes):
                    one = every.isel(t=slice(None, None, SHOWN_EVERY))
                    values = one[name].sel(rho=rho)
                    ax.errorbar(
                        one.t + APART * (index - 0.5 * (len(sizes) - 1)),
                        values.mean("seed"),
                        values.std("seed", ddof=1),
                        color=SERIES[1:][index],
                        marker="os^D"[index],
                        linestyle="none",
                        markersize=2.8,
                        elinewidth=0.8,
                        label=f"N = {features:,}",
                    )
                ax.plot(theory.t, theory[name], color=BLACK, linewidth=0.9, zorder=1)
                if name == "error":
                    ax.plot(theory.t, theory["bayes"], color=GREY, linestyle=DOTTED)
            steps_axis(panels, int(theory.t[-1]))
            for ax in panels:
                ax.set_xlim(-2 * APART, int(theory.t[-1]) + 2 * APART)
        letter(axes.ravel())
        entries = [
            handle(
                f"N = {features:,}\n{one.seed.size} seeds",
                SERIES[1:][index],
                "os^D"[index],
                "none",
            )
            for index, (features, one) in enumerate(by_size(data))
        ]
        legend_right(
            figure, [handle("theory", BLACK), *entries, handle("Bayes limit", GREY, "", DOTTED)]
        )
    return figure


def claims(data: Data, full: bool) -> list[Claim]:
    theory = data["theory"].isel(rho=0)
    rho = float(theory.rho)
    one = dict(by_size(data))[8192].sel(rho=rho)
    found = {name: agree(one, theory, name) for name in SHOWN}
    return [
        Claim(
            case=f"q, m, B and the error at rho = {rho:g}",
            quote=OVERALL,
            test=(
                "At N = 8192 the mean of each quantity is, with a confidence of 95 % at every"
                f" step, within {GOOD.size:.0%} of the theory at that step (of m for B)."
            ),
            ruling=at_full_size(full, *_within(found, GOOD)),
            found=_agreements(found, one.seed.size),
            numbers=numbers(**{name: one.at_most for name, one in found.items()}),
        )
    ]


def findings(data: Data, full: bool) -> list[Finding]:
    theory = data["theory"].isel(rho=0)
    features, largest = by_size(data)[-1]
    one = largest.sel(rho=float(theory.rho))
    found = {name: agree(one, theory, name) for name in SHOWN}
    return [
        Finding(
            says=(
                f"At N = 2^20 means and theory agree to {VERY_GOOD.size:.0%} of the theory at"
                " every step (of m for B), with a confidence of 95 %."
            ),
            ruling=at_full_size(
                full,
                *_within(found, VERY_GOOD),
                positive("largest N over 2^20, less one half", features / 2**20 - 0.5),
            ),
            found=f"N = {features:,}. {_agreements(found, one.seed.size)}",
            numbers=numbers(**{name: one.at_most for name, one in found.items()}),
        )
    ]


def judge(data: Data, rho: float, full: bool) -> list[Claim]:
    """The sentences of the appendix at one rho: agreement at N = 1024, fluctuations, and the
    error.
    """
    theory = data["theory"].sel(rho=rho)
    sizes = [(features, one.sel(rho=rho)) for features, one in by_size(data)]
    case = f"rho = {rho:g}"
    at = dict(sizes)
    found = {name: agree(at[1024], theory, name) for name in STATE}
    spreads = {
        name: np.array([float(one[name].std("seed", ddof=1).mean()) for _, one in sizes])
        for name in STATE
    }
    errors = {n: agree(one, theory, "error") for n, one in sizes}
    shares = {n: one.largest for n, one in errors.items()}
    return [
        Claim(
            case=case,
            quote=(
                "The panels of $q^{(t)}, m^{(t)}$ and $B^{(t)}$ show that the experimental results"
                " and RS solutions are in good agreement even at $N=1024$."
            ),
            test=(
                "At N = 1024 the means of q, m and B are, with a confidence of 95 % at every step,"
                f" within {GOOD.size:.0%} of the theory at that step (of m for B)."
            ),
            ruling=at_full_size(full, *_within(found, GOOD)),
            found=_agreements(found, at[1024].seed.size),
            numbers=numbers(**{name: one.at_most for name, one in found.items()}),
        ),
        Claim(
            case=case,
            quote=(
                "Also, the standard deviation decreases as the system size grows, indicating the"
                " concentration of these quantities."
            ),
            test=(
                "The standard deviations of q, m and B, averaged over the steps, fall from N = 128"
                " to 1024 to 8192."
            ),
            ruling=at_full_size(
                full,
                *(
                    positive(f"smallest fall of {name}", -np.diff(one).max())
                    for name, one in spreads.items()
                ),
            ),
            found="; ".join(
                f"{name}: {listed([n for n, _ in sizes], one)}" for name, one in spreads.items()
            )
            + ".",
            numbers=numbers(**{name: one[-1] / one[0] for name, one in spreads.items()}),
        ),
        Claim(
            case=case,
            quote=(
                "However, in the panels of generalization error, there is still a discrepancy"
                " between experiment and theory at $N=1024$. [...] Hence a large system size such"
                " as $N=8192$ is required to obtain a good agreement in the generalization error."
            ),
            test=(
                f"The mean error is farther than {DISCREPANCY.size:.0%} from the theory at some"
                " step at N = 1024, and nearer at every step at N = 8192, both beyond chance."
            ),
            ruling=at_full_size(
                full,
                above(
                    "largest difference at N = 1024",
                    shares[1024],
                    DISCREPANCY,
                    errors[1024].at_least,
                    errors[1024].at_most,
                ),
                errors[8192].within("largest difference at N = 8192", DISCREPANCY),
            ),
            found=(
                "Largest difference of mean and theory over the theory by N: "
                f"{listed(list(shares), np.array(list(shares.values())), '{:.2%}')}; at least"
                f" {max(errors[1024].at_least, 0):.2%} at N = 1024, at most"
                f" {errors[8192].at_most:.2%} at N = 8192."
            ),
            numbers=numbers(**{f"N{n}": value for n, value in shares.items()}),
        ),
    ]


def powers(data: Data, full: bool) -> list[Finding]:
    """How fluctuations fall with N, at every rho."""
    exponents = {
        (float(rho), name): _exponent(
            [(n, one.sel(rho=rho)) for n, one in by_size(data) if one.seed.size >= ENOUGH], name
        )
        for rho in data["theory"].rho
        for name in STATE
    }
    return [
        Finding(
            says=(
                "Fluctuations of q, m and B vanish as N^(-1/2) (the fitted exponent is within 0.05"
                " plus two of its standard errors of -1/2; standard deviations averaged over the"
                " steps by their logarithm)."
            ),
            ruling=at_full_size(
                full,
                *(
                    below(f"{name} at rho = {rho:g}", abs(value + 0.5) - 2 * error, ROOT)
                    for (rho, name), (value, error) in exponents.items()
                ),
            ),
            found="Exponents: "
            + ", ".join(
                f"{name} at rho = {rho:g}: {value:.3f} ± {error:.3f}"
                for (rho, name), (value, error) in exponents.items()
            )
            + ".",
            numbers=numbers(**{f"{name}_{rho:g}": v for (rho, name), (v, _) in exponents.items()}),
        )
    ]


def agree(one: xr.Dataset, theory: xr.Dataset, name: str) -> Agreement:
    """Means of a quantity over seeds against the theory, relative to the theory at each step."""
    # the bias is zero at rho = 1/2: what it competes with is the overlap
    scale = abs(theory["m" if name == "bias" else name])
    seeds = one.seed.size
    error = one[name].std("seed", ddof=1) / np.sqrt(seeds) / scale
    return agreement((one[name].mean("seed") - theory[name]) / scale, error, seeds)


def _within(found: Mapping[str, Agreement], bar: Bar) -> list[Criterion]:
    return [one.within(f"largest difference of {name}", bar) for name, one in found.items()]


def _agreements(found: Mapping[str, Agreement], seeds: int) -> str:
    parts = [
        f"{name}: largest difference {one.largest:.2%}, at most {one.at_most:.2%},"
        f" {one.detectable:.2%} would be seen"
        for name, one in found.items()
    ]
    return f"{'; '.join(parts)} ({seeds} seeds; seen: with a power of 90 %)."


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
        rf"$\rho={float(one.rho):g}$: $(\lambda_L, \lambda_U, \Gamma) ="
        rf" ({float(one['lambda_l']):.3g}, "
        rf"{float(one['lambda_u']):.3g}, {float(one['threshold']):.3g})$"
        for one in (data["theory"].isel(rho=index) for index in range(data["theory"].rho.size))
    )
    return (
        r"Finite systems (mean and standard deviation over seeds) and theory (black) at the best"
        r" recipe, "
        rf"{recipes}. Dotted: the Bayes limit of the batches up to $t$. Sizes are drawn"
        r" side by side, at every second step."
    )


FROM_PAPER = (
    rf"$T = 16$, $(\alpha_L, \alpha_U, \Delta) = ({ALPHA_L:g}, {ALPHA_U:g}, {DELTA:g})$, $N$ = 128,"
    r" 1024, 8192, $\lambda_L$, $\lambda_U$ "
    r"in $(0, 0.1)$ and $\Gamma$ tuned for the last error"
)

FIGURE = Figure(
    "macroscopic",
    "Macroscopic quantities: finite systems against theory",
    Place("Section 3.4", 2, "fig: representative macro with experiment"),
    tasks,
    draw,
    claims,
    findings,
    caption,
    from_paper=rf"{FROM_PAPER}, $\rho = 0.4$.",
    chosen=r"numbers of seeds (the paper: several), $\Gamma \in [0, 3]$; $N = 2^{20}$ is ours.",
)
