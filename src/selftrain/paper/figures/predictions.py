"""The numbered predictions of the paper, checked by finite systems (limiting distributions) and by
the solver (small ridges), and the statements of the appendices on large ridges and Algorithm 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.prediction_checks import (
    ALGORITHM1,
    INFINITE_RIDGE,
    LAWS,
    SMALL_STEP,
    SQUARED_RUN,
    SWEEPS,
    TURN,
)
from ..entry import Claims, Data, Drawn, Tasks, fixed
from ..judge import last_slope, listed, listed_by, over_seeds
from ..ruling import Bar, Judged, at_full_size, below, decided, positive
from ..setting import AMOUNTS, DELTA

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["SWEEPS", "draw", "judge", "tasks"]

FEATURES, FEATURES_QUICK = 2048, 256
SEEDS, SEEDS_QUICK = 64, 4
SMALL_RIDGE, SMALLEST_RIDGE = 1e-4, 1e-5
"""The exponents of Predictions 5 and 6 are measured between these two ridges."""

RIDGES = (1e-2, 1e-3, SMALL_RIDGE, SMALLEST_RIDGE)
SQUARED_RIDGES = (3e-2, 1e-2, 3e-3, 1e-3)
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"threshold": 0.0, "fix_bias": False},
    "selection": {"threshold": 0.5, "fix_bias": False},
    "fixed-bias": {"threshold": 0.0, "fix_bias": True},
}
HELD: dict[str, Any] = {
    "alpha_l": 0.5,
    "alpha_u": 4.0,
    "rho": 0.15,
    "delta": 1.2,
    "lambda_l": 0.005,
    "loss": "logistic",
}
"""A setting in which the direction gets worse if the bias is fixed."""

JUDGED_ONLY = ("laws", "large", "held", "rash")
PANELS = {
    **dict.fromkeys(WAYS, "(a, b)"),
    "squared": "(c)",
    "turn": "(d, e)",
    "iteration": "(f)",
}
ONE_SYSTEM = Bar(0.022, "1/sqrt(2048): what chance makes of one system")
SEEN = Bar(0.05, "half of what the eye sees")
WHOLE = Bar(0.5, "the exponent is nearer to that number than to any other whole one")
ALIGNED = Bar(0.01, "the level at which the direction counts as found")
DIGITS = Bar(1e-6, "the picture shows three digits, this is six")
SOME_SWEEPS = Bar(500.0, "a digit in sixty sweeps")
SAME = Bar(1e-6, "a hundred times the tolerance of a sweep")


def tasks(quick: bool) -> Tasks:
    setting: dict[str, Any] = {**AMOUNTS, "lambda_l": 0.05}
    seeds = tuple(range(SEEDS_QUICK if quick else SEEDS))
    laws = Grid({"seed": seeds}, {"features": FEATURES_QUICK if quick else FEATURES})
    ridges = {"lambda_u": RIDGES[:2] if quick else RIDGES}
    squared = {"lambda_u": SQUARED_RIDGES[:2] if quick else SQUARED_RIDGES}
    turn: dict[str, Any] = {
        "loss": ("squared",) if quick else ("squared", "logistic"),
        "rho": (0.5, 0.4) if quick else (0.5, 0.4, 0.2),
    }
    large = Grid({"ridge": tuple(10.0**k for k in range(9))}, {"alpha": 2.5, "delta": DELTA})
    iteration = {**AMOUNTS, "rho": 0.4, "steps": 2}
    sweeps: dict[str, Any] = {
        "lambda_l": (0.05,) if quick else (0.05, 1e-3),
        "lambda_u": (0.1, 0.01) if quick else (0.1, 0.01, 1e-3, 1e-4, 1e-5),
    }
    made = {
        "laws": Task(LAWS, laws),
        **{
            name: Task(SMALL_STEP, Grid(ridges, {**setting, **way, "rho": 0.4}))
            for name, way in WAYS.items()
        },
        "squared": Task(SQUARED_RUN, Grid(squared, {**setting, "rho": 0.4})),
        "turn": Task(TURN, Grid(turn, {**setting, "fix_bias": False})),
        "large": Task(INFINITE_RIDGE, large),
        "iteration": Task(ALGORITHM1, Grid(sweeps, {**iteration, "damping": 0.5})),
    }
    if not quick:
        rash = Grid({"damping": (0.9,)}, {**iteration, "lambda_l": 1e-3, "lambda_u": 1e-4})
        made["held"] = Task(TURN, Grid({"fix_bias": (False, True)}, HELD))
        made["rash"] = Task(ALGORITHM1, rash)
    return made


def draw(data: Data) -> Drawn:
    colors = (style.BLUE, style.ORANGE, style.GREEN)
    turn, iteration = data["turn"], data["iteration"]
    figure, axes = pic.canvas(2, 3, 11.4, 6.6)
    noise, change, squared, direction, tilt, sweeps = axes.ravel()
    for name, color in zip(WAYS, colors, strict=True):
        if name not in data:  # parts that a change of parameters makes equal are computed once
            continue
        one = data[name]
        # a fixed bias changes little: its larger markers stay visible around the others
        marks: Any = {"color": color, "markersize": 8 if name == "fixed-bias" else 4}
        marks["zorder"] = 2 if name == "fixed-bias" else 3
        noise.plot(one.lambda_u, one["chi_hat"], "o-", **marks)
        noise.plot(one.lambda_u, one["fresh"], "s", linestyle=pic.DASHED, **marks)
        change.plot(one.lambda_u, one["off"], "o-", **marks)
    run = data["squared"]
    for name, marker in zip("mBM", "s^o", strict=True):
        squared.plot(run.lambda_u, run[name], f"{marker}-", color=style.GREY, markersize=4)
    rhos = pic.rho_colors(turn.rho.values)
    for one in pic.each(turn, ("loss", "rho")):
        dashes: Any = pic.DASHED if one.loss == "squared" else "solid"
        _path(direction, one, "misaligned", rhos[float(one.rho)], dashes)
        _path(tilt, one, "bias_to_norm", rhos[float(one.rho)], dashes)
    labeled = dict(zip(iteration.lambda_l.values.tolist(), colors, strict=False))
    for ridge, color in labeled.items():
        one = iteration.sel(lambda_l=ridge)
        sweeps.plot(one.lambda_u, one["sweeps"], "o-", color=color, markersize=4)
    titles = {
        noise: r"$\hat\chi^{(1)}$, $q^{(1)} - (R^{(1)})^2/q^{(0)}$",
        change: r"$|\Delta M / (C M (1-M) \lambda_U) - 1|$",
        squared: "squared loss: run less curve",
        direction: r"$1 - M_\tau$",
        tilt: r"$|B_\tau|/\sqrt{q_\tau}$",
        sweeps: "sweeps of Algorithm 1",
    }
    for ax, title in titles.items():
        ax.set_title(title)
        over_time = ax in (direction, tilt)
        ax.set_xlabel(r"$\tau/\tau_{end}$" if over_time else r"$\lambda_U$")
        if not over_time:
            style.logarithmic(ax, "x")
        if ax is not sweeps:
            style.logarithmic(ax)
    sweeps.set_ylim(bottom=0)
    names = ("plain", "selection", "bias fixed")
    return figure, [
        *(pic.handle(name, color, "o") for name, color in zip(names, colors, strict=True)),
        pic.handle(r"$q - R^2/q'$ (a)", style.GREY, "s", pic.DASHED),
        pic.handle("$M$, $m$, $B$ (c)", style.GREY, "o"),
        *pic.rho_legend(turn.rho.values),
        pic.handle("logistic", style.GREY),
        pic.handle("squared", style.GREY, "", pic.DASHED),
        *pic.value_legend(r"\lambda_L", labeled, " (f)"),
    ]


def _path(ax: Axes, one: xr.Dataset, name: str, color: str, dashes: Any) -> None:
    """Draw a quantity against the time of a path, unless it is zero everywhere."""
    if bool((one[name] > 0).any()):
        ax.plot(one.share, one[name], color=color, linestyle=dashes)


def judge(data: Data) -> Claims:
    yield from _laws(data["laws"])
    yield from _small_ridges(data)
    yield from _rates(data)
    end, rate = (data["turn"][name] for name in ("misaligned", "smallest_rate"))
    end = end.isel(share=-1).max()
    yield at_full_size(
        "proposition-7",
        f"Largest 1 - M at the end of the paths: {float(end):.2g}; smallest C along them:"
        f" {float(rate.min()):.4g}.",
        below("largest 1 - M at the end", end, ALIGNED),
        positive("smallest m at the end", data["turn"]["last_m"].min()),
        positive("smallest C", rate.min()),
        case="Proposition 7",
    )
    yield from _squared(data["squared"].sortby("lambda_u", ascending=False))
    yield from _imbalance(data["turn"])
    yield _large_ridge(data["large"])
    yield _convergence(data["iteration"])
    if "rash" in data:
        yield _damping(data["rash"])


def _laws(laws: xr.Dataset) -> Claims:
    """Judge Predictions 1 to 4: means over finite systems compared with the theory."""
    size = (
        f"N = {fixed(laws, 'features')}, {laws.seed.size} systems, batches that differ from step"
        " to step, Gamma = 0.3"
    )
    numbered: tuple[dict[str, tuple[str, str]], ...] = (
        {"waves": ("", "")},
        {"functions": ("", "")},
        {"bias": (" of B", "B: "), "error": (" of the error", "Error: ")},
        {"logits": ("", "")},
    )
    for number, names in enumerate(numbered, start=1):
        bar = ONE_SYSTEM if number == 1 else SEEN
        found = {words: over_seeds(laws[name]) for name, words in names.items()}
        criteria = (one.within(f"largest difference{of}", bar) for (of, _), one in found.items())
        said = " ".join(f"{before}{one}" for (_, before), one in found.items())
        key, case = f"prediction-{number}", f"Prediction {number}"
        yield at_full_size(key, said, *criteria, values={"size": size}, case=case)


def _small_ridges(data: Data) -> Claims:
    """Judge Predictions 5 and 6: powers of the ridge."""
    for key, name, power, case in (
        ("prediction-5-noise", "chi_hat", 2, "Prediction 5, chi-hat"),
        ("prediction-5-change", "fresh", 2, "Prediction 5, q - R^2/q'"),
        ("prediction-6-equation", "off", 1, "Prediction 6, equation"),
    ):
        slopes = {way: _slope(data[way], name) for way in WAYS}
        last = {way: float(data[way].sortby("lambda_u")["off"][0]) for way in WAYS}
        left = f"; left at the smallest ridge: {listed(last, '{:.4g}')}" if power == 1 else ""
        farthest = max(abs(slope - power) for slope in slopes.values())
        yield at_full_size(
            key,
            f"Powers: {listed(slopes, '{:.4g}')}{left}.",
            below(f"farthest power from {power}", farthest, WHOLE),
            case=case,
        )


def _slope(one: xr.Dataset, name: str) -> float:
    """Return the exponent of the ridge, from the two smallest ridges."""
    two = one.sortby("lambda_u").isel(lambda_u=slice(1, None, -1))
    return last_slope(two.lambda_u, two[name], 2) if two.lambda_u.size > 1 else float("nan")


def _rates(data: Data) -> Claims:
    """Judge Prediction 6: the sign of C, with a trained and with a fixed bias."""
    trained = float(data["turn"]["smallest_rate"].min())
    fixed_rate = float("nan")
    if "held" in data:
        held = data["held"]["smallest_rate"]
        trained = min(trained, float(held.sel(fix_bias=False)))
        fixed_rate = float(held.sel(fix_bias=True))
    yield at_full_size(
        "prediction-6-trained",
        f"Smallest C: {trained:.4g}. It is a theorem (`docs/continuum.md`).",
        positive("smallest C", trained),
        case="Prediction 6, C > 0, bias trained",
    )
    yield at_full_size(
        "prediction-6-fixed",
        f"Smallest C: {fixed_rate:.4g}. The paper assumes the sign (Assumption 3); with a"
        " fixed bias the assumption can fail.",
        positive("smallest C", fixed_rate),
        case="Prediction 6, C > 0, bias fixed",
    )


def _squared(one: xr.Dataset) -> Claims:
    """Judge Prediction 8: the curves of the squared loss, with the formulas of the paper."""
    for name in ("M", "m", "B"):
        off = one[name]
        slope = last_slope(one.lambda_u, off) if off.size > 2 else float("nan")
        yield at_full_size(
            f"prediction-8-{name}",
            f"Power {slope:.3f}; difference by lambda_U: {listed(off)}.",
            below("distance of the power from 1", abs(slope - 1), WHOLE),
            case=f"Prediction 8, {name}",
        )


def _imbalance(turn: xr.Dataset) -> Claims:
    """Judge what the paper says about the bias and the norm in imbalanced cases."""
    tilt = turn["bias_to_norm"].sel(rho=turn.rho < 0.5)
    factor = tilt.isel(share=-1) / tilt.isel(share=0)
    shrink = -turn["norm"].diff("share").max()
    ratio = turn["norm"].isel(share=-1) / turn["norm"].isel(share=0)
    factors = "; ".join(f"{loss}: {listed(factor.sel(loss=loss))}" for loss in factor.loss.values)
    yield at_full_size(
        "bias-grows",
        f"From start to end it grows by the factor {factors} (by rho).",
        positive("smallest growth", tilt.diff("share").min()),
        case="bias over norm",
    )
    yield at_full_size(
        "norm-falls",
        "Norm at the end over that at the start:"
        f" {float(ratio.min()):.2g} to {float(ratio.max()):.2g}.",
        positive("smallest fall", shrink),
        case="norm",
    )


def _large_ridge(large: xr.Dataset) -> Judged:
    excess = large["error"] / large["bayes"] - 1
    last = large.isel(ridge=-1)
    return decided(
        "infinite-ridge",
        f"{float(last['error']):.10f} against {float(last['bayes']):.10f}; excess by ridge:"
        f" {listed(excess, '{:.2g}')}.",
        below("excess at the largest ridge", abs(excess[-1]), DIGITS),
        case="infinite ridge",
        values={"ridge": float(last.ridge)},
    )


def _convergence(one: xr.Dataset) -> Judged:
    sweeps = listed_by("lambda_l", one["sweeps"], "{:.0f}", label="lambda_L")
    return at_full_size(
        "algorithm-1",
        f"Most sweeps of a step by lambda_U: {sweeps}. Largest difference of an error:"
        f" {float(one['off'].max()):.1e}.",
        below("most sweeps", one["sweeps"].max(skipna=False), SOME_SWEEPS),
        below("largest difference", one["off"].max(skipna=False), SAME),
        case="Algorithm 1",
    )


def _damping(rash: xr.Dataset) -> Judged:
    """Judge Algorithm 1 with too little damping: NaN sweeps mean that it did not converge."""
    ended = bool(rash["sweeps"].isel(damping=0).notnull())
    return at_full_size(
        "damping",
        "It does." if ended else "It does not.",
        positive("steps that do not converge", float(not ended)),
    )
