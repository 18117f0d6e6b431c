"""Data of figures without computing them: numbers that look like those of the paper, with as much
noise as asked for.

A point gets its numbers from its parameters alone, so that the quick version of a figure has the
very numbers of the full one wherever it has the same points, as in earnest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from selftrain.paper.computations import finite
from selftrain.paper.entry import Data, Figure
from selftrain.sweeps import Task, gather

T = 2 ** np.arange(11)


def data_of(figure: Figure, quick: bool, noise: float = 0.0, salt: int = 0) -> Data:
    """The datasets of a figure."""
    return {name: _dataset(task, noise, salt) for name, task in figure.tasks(quick).items()}


def _dataset(task: Task, noise: float, salt: int) -> Any:
    make = MAKERS[
        task.computation.function.__name__, task.computation.function.__module__.split(".")[-1]
    ]
    values = [_noisy(make, point, noise, salt) for point in task.grid.points]
    return gather(task.grid, task.computation.outputs, values)


def _noisy(
    make: Callable[..., Mapping[str, Any]], point: Mapping[str, Any], noise: float, salt: int
) -> dict[str, Any]:
    names = {name: value for name, value in point.items() if name != "longest"}
    digest = hashlib.sha256(json.dumps([names, salt], sort_keys=True).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    made = {}
    for name, value in make(rng, **point).items():
        array = np.asarray(value)
        if noise and array.dtype.kind == "f" and name not in FIXED:
            array = array * np.exp(noise * _normals(int(rng.integers(2**62)), array.shape))
        made[name] = array
    return made


FIXED = {"T", "t", "way", "step", "level", "along", "share"}


def _normals(seed: int, shape: tuple[int, ...]) -> Any:
    """Normal numbers, those of an entry by its place: shorter versions have the same first ones."""
    numbers = np.empty(shape)
    for place in np.ndindex(shape[:-1]):
        numbers[place] = np.random.default_rng([seed, *place]).standard_normal(shape[-1:])
    return numbers


def chain(
    rng: Any,
    alpha_l: float,
    alpha_u: float,
    rho: float,
    delta: float,
    selection: bool,
    heuristics: bool,
    longest: int,
) -> dict[str, Any]:
    t = T[longest >= T].astype(float)
    skew = 0.5 - rho
    small = alpha_u < 1
    lift = (0.0 if heuristics else 4 * skew + (skew > 0) * 0.02) + (2 / alpha_u if small else 0)
    gain = (0.03 * np.sqrt(alpha_u / alpha_l) * (1 - skew) if selection else 0.0) / t**2
    error = 0.1 * delta * (1 + lift + 2 / alpha_u / t) * (1 - gain)
    ridge = np.minimum(0.1, 0.9 * t ** -(1 + skew))
    if small:
        ridge = 0.1 + 0 * t
    off = 0.3 * t ** -(0.5 + rho) if not small else 0.4 + 0.02 * np.log2(t)
    along = np.linspace(0, 1, 5)
    hardness = 0.8 / (1 + 0.1 * t)[:, None] * (1 + 3 * (skew - 0.02) * along)
    return {
        "T": t.astype(int),
        "error": error,
        "one_minus_cosine": off,
        "q": 1 / t,
        "m": 0.5 / t,
        "bias": -skew + 0 * t,
        "chi": (10 / alpha_u + 0 * t) if not small else 8.0 + 0 * t,
        "lambda_l": 0.01 * t**-0.5,
        "lambda_u": ridge,
        "threshold": 0.3 * selection + 0 * t,
        "annealing": heuristics * 1.5 * t**-1.8,
        "along": along,
        "hardness": hardness,
        "hardness_soft": 0.6 * hardness[:, -1],
        "labeled_only": 0.5 * delta + 0 * t,
        "supervised": 0.1 * delta * (1 + 0.02 / t),
        "supervised_any_ridge": 0.1 * delta * (1 - 0.08 / t),
        "supervised_one_minus_cosine": 0.1 / t,
        "bayes": 0.09 * delta + 0 * t,
        "bayes_all_labeled": 0.08 * delta + 0 * t,
        "bayes_one_minus_cosine": 0.05 / t,
        "first_order": 1e-10 + 0 * t,
        "faded": 0 * t,
    }


def fixed_ridge(rng: Any, alpha_u: float, longest: int, **_: Any) -> dict[str, Any]:
    t = T[longest >= T]
    return {"T": t, "chi": 9.0 / alpha_u + 0.0 * t, "error": 0.1 + 0.1 / t}


def endless(rng: Any, alpha_u: float, delta: float) -> dict[str, Any]:
    ratio = 1.2 + 2 * (1 - alpha_u) if alpha_u <= 1 else 1.0
    ridge = 0.1 if alpha_u < 1 else 1e-12
    return {"lambda_u": ridge, "error": 0.09 * ratio, "cosine": 0.9, "chi": 5.0, "ratio": ratio}


def path(rng: Any, rho: float, steps: int, loss: str, **_: Any) -> dict[str, Any]:
    tau = np.linspace(0, 8, 401)
    ridge = (6.0 if rho == 0.5 else 1.0) / steps
    run = ridge * np.linspace(0, steps, 401)
    curve = lambda time: 1 / (1 + 5 * np.exp(-time))  # noqa: E731
    return {
        "tau": tau,
        "squared_cosine": curve(tau),
        "tau_run": run,
        "squared_cosine_run": curve(run),
        "apart": 1.0 / steps,
        "lambda_l": 0.01,
        "lambda_u": ridge,
        "time_scale": 1.0,
        "error": 0.1,
        "bayes": 0.09,
    }


def ablation(rng: Any, rho: float, **_: Any) -> dict[str, Any]:
    lift = 1 + 2 * (0.5 - rho)
    return {
        "way": np.arange(4),
        "error": 0.1 * np.array([lift, 0.99 * lift, 1.1 * lift, 0.6 * lift]),
        "annealing": np.array([0.0, 0.01, 0.0, 0.1]),
        "labeled_only": 0.2,
        "supervised": 0.1,
        "bayes": 0.05,
    }


def few_labels(rng: Any, alpha_l: float, rho: float, **_: Any) -> dict[str, Any]:
    error = 0.1 * (1 + 0.05 / alpha_l**0.3)
    return {
        "error": error,
        "one_minus_cosine": 0.1,
        "bias_to_norm": -0.2,
        "best_bias": error / (1 + 0.01 / alpha_l**0.5),
        "first": 0.3,
        "naive": 1.5 * error,
        "labeled_only": 2 * error,
        "supervised": 0.09,
        "bayes": 0.08,
        "lambda_l": 0.01,
        "lambda_u": 0.01,
        "annealing": 0.1,
    }


def few_labels_run(rng: Any, alpha_l: float, features: int, **setting: Any) -> dict[str, Any]:
    told = few_labels(rng, alpha_l, **setting)
    spread = 1 + 3 / np.sqrt(features * alpha_l) * abs(rng.standard_normal())
    names = ("error", "one_minus_cosine", "bias_to_norm", "best_bias")
    return {name: told[name] * (spread if name == "error" else 1) for name in names}


def theory(rng: Any, rho: float, steps: int, **_: Any) -> dict[str, Any]:
    t = np.arange(steps + 1.0)
    return {
        "t": np.arange(steps + 1),
        "q": np.exp(-0.1 * t),
        "m": 0.7 * np.exp(-0.05 * t),
        "bias": (rho - 0.5) * (1 + 0.1 * t),
        "error": 0.1 + 0.1 * np.exp(-t),
        "lambda_l": 1e-3,
        "lambda_u": 1e-2,
        "threshold": 0.2,
        "bayes": 0.09 + 0 * t,
    }


def finite_run(rng: Any, features: int, rho: float, **setting: Any) -> dict[str, Any]:
    told = theory(rng, rho, **{name: value for name, value in setting.items() if name != "seed"})
    scatter = features**-0.5 * rng.standard_normal(4)
    made = {"t": told["t"]}
    for name, noise in zip(finite.SHOWN, scatter, strict=True):
        made[name] = told[name] * (1 + noise) + (0.02 * noise if name == "bias" else 0)
    made["error"] = made["error"] * (1 + (rho > 0.45) * 200 / features)
    return made


def histogram(rng: Any, features: int, shown: tuple[int, ...], **_: Any) -> dict[str, Any]:
    edges = np.linspace(-4, 4, finite.BINS)
    curve = np.linspace(-4, 4, finite.CURVE)
    scales = [1 + 0.3 * index for index, _ in enumerate(shown)]
    density = np.array([np.exp(-0.5 * (curve / s) ** 2) / np.sqrt(2 * np.pi) / s for s in scales])
    middle = 0.5 * (edges[1:] + edges[:-1])
    entries = {
        "edge": np.array([edges for _ in shown]),
        "histogram": np.array([np.interp(middle, curve, one) for one in density]),
        "curve": np.array([curve for _ in shown]),
        "density": density,
    }
    return {"step": np.array(shown), **_of_both(entries)}


def shares(rng: Any, features: int, shown: tuple[int, ...], **_: Any) -> dict[str, Any]:
    law = np.array([finite.LEVELS for _ in shown])
    share = np.clip(law + 0.1 * features**-0.5 * rng.standard_normal(law.shape), 0, 1)
    made = _of_both({"share": share, "law": law})
    return {"step": np.array(shown), "level": finite.LEVELS, **made}


def _of_both(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{what}_{name}": one for what in ("weights", "logits") for name, one in entries.items()
    }


def single_shot(rng: Any, rho: float, alpha_u: float, largest: float, **_: Any) -> dict[str, Any]:
    ridge = largest if rho == 0.5 and alpha_u >= 1 else min(largest, 0.1 * (1 + alpha_u))
    return {
        "lambda_l": ridge,
        "lambda_u": ridge,
        "error": 0.1 + 0.1 / (1 + alpha_u),
        "labeled_only": 0.3,
        "q": 1e-3,
        "supervised": 0.09,
        "bayes": 0.08,
    }


def single_shot_run(rng: Any, features: int, alpha_u: float, **_: Any) -> dict[str, Any]:
    tilt = 30 * features**-0.5 * (1 + 0.3 * rng.standard_normal())
    error = (0.1 + 0.1 / (1 + alpha_u)) * (1.3 + 0.1 * rng.standard_normal())
    return {"error": error, "one_minus_cosine": 0.3, "bias_to_norm": tilt}


def schedules(rng: Any, rho: float, fix_bias: bool, longest: int, **_: Any) -> dict[str, Any]:
    lengths = np.array([4**k for k in range(1, 10) if 4**k <= longest])
    t = np.arange(1, longest + 1)
    ways = np.arange(4)
    rates = np.broadcast_to(0.1 / t, (lengths.size, 4, longest)) * (1 + ways[None, :, None])
    lift = 1 + (0 if fix_bias else 4 * (0.5 - rho)) + 0.3 / lengths[:, None] - 0.02 * ways
    return {
        "T": lengths,
        "way": ways,
        "t": t,
        "error": 0.1 * lift,
        "cosine": 0.9 + 0 * lift,
        "lambda_l": 0.01 + 0 * lift,
        "first_order": 1e-8 + 0 * lift,
        "lambda_u": rates,
        "sharpness": 1 + rates,
        "threshold": rates,
        "labeled_only": 0.2 + 0.0 * lengths,
        "supervised": 0.1 + 0.0 * lengths,
        "bayes": 0.09 + 0.0 * lengths,
    }


def confirmed(rng: Any, **_: Any) -> dict[str, Any]:
    return {"theory": 0.1, "mean": 0.1, "standard_error": 1e-4}


def reuse(
    rng: Any, rho: float, steps: int, reused: bool, kept: bool, heuristics: bool, **_: Any
) -> dict[str, Any]:
    t = np.arange(steps + 1.0)
    end = 0.1 * (1.3 - 0.1 * reused + 0.1 * kept - 0.2 * heuristics + 0.05 / steps)
    error = end + 0.05 * np.exp(-t)
    return {
        "t": np.arange(steps + 1),
        "error": error,
        "mean": 1.01 * error,
        "spread": 0.01 * error,
        "cosine": 1 - 0.1 * np.exp(-t),
        "label_accuracy": 0.9 + 0 * t,
        "bayes": 0.05,
        "labeled_only": 0.2,
        "lambda_l": 0.01,
        "lambda_u": 0.01,
        "annealing": 0.1,
    }


def real_rows(
    rng: Any, dataset: str, batches: int, seeds: int, recipe: str, **_: Any
) -> dict[str, Any]:
    t = np.arange(batches + 1)
    error = 0.05 * (1 - 0.1 * t / batches) * (0.8 if recipe != "naive" else 1.0)
    sem = 0.05 * error / seeds**0.5
    return {
        "t": t,
        "sphere": 0.4 * error,
        "common": 1.1 * error,
        "two": error,
        "surrogate": 1.02 * error,
        "surrogate_sem": sem,
        "rows": 1.05 * error,
        "rows_sem": sem,
        "table_sem": 2 * sem,
    }


def laws_of_a_system(rng: Any, features: int, seed: int) -> dict[str, Any]:
    sizes = {"waves": 16, "functions": 4, "bias": 5, "error": 5, "logits": 144}
    return {name: 0.5 * features**-0.5 * rng.standard_normal(n) for name, n in sizes.items()}


def small_step(rng: Any, lambda_u: float, **_: Any) -> dict[str, Any]:
    return {"chi_hat": 2 * lambda_u**2, "fresh": lambda_u**2, "rate": 9.0, "off": 30 * lambda_u}


def squared_run(rng: Any, lambda_u: float, **_: Any) -> dict[str, Any]:
    return {"M": 2 * lambda_u, "m": lambda_u, "B": 0.1 * lambda_u}


def turn(rng: Any, rho: float, loss: str, fix_bias: bool, **_: Any) -> dict[str, Any]:
    share = np.linspace(0, 1, 121)
    return {
        "share": share,
        "misaligned": 0.6 * np.exp(-6 * share),
        "bias_to_norm": (0.5 - rho) * (1 if loss == "squared" else 2) * np.exp(3 * share),
        "norm": np.exp(-2 * share),
        "smallest_rate": -5.0 if fix_bias else 5.0,
        "last_m": 0.1,
    }


def infinite_ridge(rng: Any, ridge: float, **_: Any) -> dict[str, Any]:
    return {"error": 0.1 * (1 + 1e-9 / ridge), "bayes": 0.1}


def sweeps(rng: Any, lambda_l: float, lambda_u: float, damping: float, **_: Any) -> dict[str, Any]:
    needed = 30 - 20 * np.log10(lambda_u) - 5 * np.log10(lambda_l)
    return {"sweeps": needed if damping < 0.8 else np.nan, "off": 1e-9}


def check(rng: Any, alpha_l: float, loss: str, **_: Any) -> dict[str, Any]:
    t = np.arange(3)
    return {"fit": t, "error": (0.3 if loss == "squared" else 0.35) / alpha_l**0.5 + 0.02 * t}


def check_run(rng: Any, features: int, seed: int, **setting: Any) -> dict[str, Any]:
    told = check(rng, **setting)
    return told | {"error": told["error"] * (1 + 0.3 * features**-0.5 * rng.standard_normal(3))}


def optimum(rng: Any, alpha_l: float, most: int, **_: Any) -> dict[str, Any]:
    fits = np.arange(1, most + 1)
    gain = 0.4 * np.exp(-(np.log(alpha_l / 2) ** 2)) * (1 - 1 / fits)
    error = (0.08 + 0.2 / (1 + alpha_l)) * (1 - gain)
    return {
        "fits": fits,
        "error": error,
        "ridge": np.where(np.tri(most) > 0, 300.0, np.nan),
        "bayes": 0.99 * error[-1],
    }


def relabeled(
    rng: Any, alpha_l: float, labels: str, rho: float, fix_bias: bool, **_: Any
) -> dict[str, Any]:
    told = optimum(rng, alpha_l, 2)
    first, last = told["error"]
    share = {"linear": 0.93, "hard": 0.9, "tuned": 1.0}[labels]
    return {
        "error": (first - share * (first - last)) * (1 - (0.5 - rho) * fix_bias),
        "spread": 1e-6,
        "supervised": first,
        "right": 0.75 + 0.1 * alpha_l / (1 + alpha_l),
        "first_ridge": 300.0,
        "second_ridge": 100.0,
        "sharpness": 1e3,
        "bayes": 0.9 * last,
    }


def stages(rng: Any, rho: float, ridge: float, steps: int, **_: Any) -> dict[str, Any]:
    t = np.arange(steps + 1)
    rise = 0 if rho == 0.5 else 0.05 * t**2
    return {"fit": t, "error": np.minimum(rho, 0.2 * (0.6 + 0.4 * 0.5**t + rise) / (1 + ridge))}


def rare_class(rng: Any, classes: int, way: str, steps: int) -> dict[str, Any]:
    t, k = np.arange(steps + 1), np.arange(classes)
    last = {"naive": 0.0, "heuristics": 0.03, "weighted": 0.4}[way]
    recall = 0.9 - (0.9 - last) * k / (classes - 1) * (1 - 0.5 ** (t[:, None] + 2))
    error = {"naive": 0.28, "heuristics": 0.21, "weighted": 0.19}[way]
    return {
        "t": t,
        "class": k,
        "error": error + 0.02 * 0.5**t,
        "recall": recall,
        "shares": 0 * recall + 1 / classes,
        "best_error": 0.2,
        "best_recall": recall[-1],
    }


def rare_class_run(rng: Any, features: int, seed: int, **setting: Any) -> dict[str, Any]:
    told = rare_class(rng, **setting)
    noise = 1 + 0.2 * features**-0.5 * rng.standard_normal()
    recall = np.where(
        told["class"] < told["class"].max() - 2, told["recall"], told["recall"][:, -1:]
    )
    made = {"recall": recall if setting["classes"] > 3 else told["recall"]}
    return {"t": told["t"], "class": told["class"], "error": told["error"] * noise, **made}


def relabel(rng: Any, way: str, label_noise: float, **_: Any) -> dict[str, Any]:
    slope = {"left out": 0.1, "kept": 0.5, "relabelled": 0.12}[way]
    start = {"left out": 0.103, "kept": 0.104, "relabelled": 0.102}[way]
    return {"error": start + slope * label_noise, "spread": 1e-6, "first": 0.2, "bayes": 0.09}


def ten_digits(rng: Any, steps: int, **_: Any) -> dict[str, Any]:
    t, digit = np.arange(steps + 1), np.arange(10)
    return {"t": t, "digit": digit, "error": 0.04 + 0.005 * t, "recall": 0.9 + 0.01 * digit}


def ten_digits_run(rng: Any, source: str, seed: int, **setting: Any) -> dict[str, Any]:
    told = ten_digits(rng, **setting)
    factor = (1.1 if source == "synthetic" else 1.7) * (1 + 0.02 * rng.standard_normal())
    return told | {"error": told["error"] * factor, "recall": told["recall"] / factor**0.1}


MAKERS: dict[tuple[str, str], Callable[..., dict[str, Any]]] = {
    ("chain", "chains"): chain,
    ("fixed_ridge", "chains"): fixed_ridge,
    ("endless", "endless"): endless,
    ("path", "paths"): path,
    ("ablation", "two_heuristics"): ablation,
    ("theory", "two_heuristics"): few_labels,
    ("finite", "two_heuristics"): few_labels_run,
    ("theory", "finite"): theory,
    ("finite_run", "finite"): finite_run,
    ("histogram", "finite"): histogram,
    ("shares", "finite"): shares,
    ("single_shot", "single_shot"): single_shot,
    ("single_shot_run", "single_shot"): single_shot_run,
    ("schedules", "free_schedules"): schedules,
    ("confirmed", "free_schedules"): confirmed,
    ("reuse", "data_reuse"): reuse,
    ("laws_of_a_system", "prediction_checks"): laws_of_a_system,
    ("small_step", "prediction_checks"): small_step,
    ("squared_run", "prediction_checks"): squared_run,
    ("turn", "prediction_checks"): turn,
    ("infinite_ridge", "prediction_checks"): infinite_ridge,
    ("sweeps", "prediction_checks"): sweeps,
    ("real_rows", "real_samples"): real_rows,
    ("check", "distillation"): check,
    ("check_run", "distillation"): check_run,
    ("optimum", "distillation"): optimum,
    ("relabeled", "distillation"): relabeled,
    ("stages", "distillation"): stages,
    ("rare_class", "unequal_classes"): rare_class,
    ("rare_class_run", "unequal_classes"): rare_class_run,
    ("relabel", "distillation"): relabel,
    ("ten_digits", "real_samples"): ten_digits,
    ("ten_digits_run", "real_samples"): ten_digits_run,
}
