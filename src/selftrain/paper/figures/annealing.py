"""The best annealing against T, the resulting sharpness, and the hardness of the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ..entry import Claims, Data, Drawn, Tasks
from ..judge import listed, power_law
from ..ruling import Bar, Judged, at_full_size, below, positive
from ..setting import cases

if TYPE_CHECKING:
    import xarray as xr

FALL = Bar(0.1, "an order of magnitude is a decrease that no picture hides")
RATHER_HARD = Bar(0.5, "labels are nearer to hard ones than to one half")
LATE = 16
"""Runs of at least this many steps are long."""

SQUARE = Bar(0.5, "the exponent is nearer to -2 than to any other whole number")


def tasks(quick: bool) -> Tasks:
    return {"chains": cases(quick, heuristics=(True,))}


def draw(data: Data) -> Drawn:
    chains = data["chains"].isel(heuristics=0, selection=0)
    colors = pic.rho_colors(chains.rho.values)
    figure, axes, at_delta = pic.delta_columns(chains, 3, 3.4, 2.0, 7.4)
    for (rate, total, hard), one in zip(axes.T, at_delta, strict=True):
        for case in pic.each(one, ("rho",)):
            color = colors[float(case.rho)]
            a = pic.positive(case["annealing"])
            pic.series(rate, case.T, a, color, jump=3 * pic.JUMP)
            pic.series(total, case.T, a * case.T.values**2, color, jump=3 * pic.JUMP)
            pic.series(hard, case.T, case["hardness"].isel(along=-1), color)
            pic.series(hard, case.T, case["hardness"].isel(along=0), color, filled=False)
        style.logarithmic(rate)
        style.logarithmic(total)
        hard.set_ylim(0, 1)
    pic.label_rows(axes, "$a^*$", r"$a^* T^2$", r"hardness $E|2p - 1|$")
    return figure, [
        *pic.rho_legend(chains.rho.values),
        *pic.switch_legend("last step", "first step"),
    ]


def judge(data: Data) -> Claims:
    chains = data["chains"].isel(heuristics=0, selection=0)
    a = chains["annealing"]
    fall = (a.isel(T=-1) / a.max("T")).max("delta")
    hard, soft = chains["hardness"].isel(T=0, along=-1), chains["hardness_soft"].isel(T=0)
    late = chains.sel(T=chains["T"] >= min(LATE, int(chains["T"][-1])))
    total = late["annealing"] * late["T"] ** 2
    per_step = (late["annealing"] * late["T"]).max(("rho", "delta"))
    exponents = np.array(_exponents(late))
    off = abs(exponents + 2).max() if exponents.size else np.nan
    grown = chains["hardness"].isel(T=-1)
    gain = grown.isel(along=-1) - grown.isel(along=0)
    yield at_full_size(
        "falls",
        f"Value at T = {int(chains.T[-1])} over the largest by rho, the larger of the Delta:"
        f" {listed(fall)}.",
        below("a* at the end over its largest", fall.max(), FALL),
    )
    for rho in chains.rho.values:
        yield _hardening(chains.sel(rho=rho))
    yield at_full_size(
        "almost-hard",
        f"It is {float(hard.min()):.2f} to {float(hard.max()):.2f} at a*,"
        f" {float(soft.min()):.2f} to {float(soft.max()):.2f} at a = 0 (1 is hard): "
        '"almost hard" is generous. a* at T = 1 by rho, the smaller of the Delta:'
        f" {listed(a.isel(T=0).min('delta'))}.",
        below("farthest from hard", 1 - hard.min(), RATHER_HARD),
        positive("smallest gain over a = 0", (hard - soft).min()),
    )
    yield at_full_size(
        "product",
        f"Exponents {_range(exponents)}. a* T^2 is {_range(total)}; by rho:"
        + ",".join(f" {rho:g}: {_range(total.sel(rho=rho))}" for rho in total.rho.values)
        + f". Largest a* T by T: {listed(per_step)}.",
        below("farthest exponent from -2", off, SQUARE),
        positive("smallest fall of a* T", -np.diff(per_step).max(initial=-np.inf)),
    )
    yield at_full_size(
        "imbalanced",
        "Hardness of the first and of the last step: "
        + "; ".join(
            f"rho = {float(one.rho):g}, Delta = {float(one.delta):g}:"
            f" {float(one[0]):.3f} -> {float(one[-1]):.3f}"
            for one in grown.stack(case=("rho", "delta")).transpose("case", "along")
        )
        + ".",
        positive("smallest gain, imbalanced", gain.sel(rho=gain.rho < 0.45).min()),
        positive("smallest loss, balanced", (-gain).sel(rho=0.5).min()),
    )


def _hardening(case: xr.Dataset) -> Judged:
    """Judge whether labels become harder along the longest run, at one rho."""
    along = case["hardness"].isel(T=-1)
    gain = along.isel(along=-1) - along.isel(along=0)
    paths = "; ".join(
        f"Delta = {float(one.delta):g}: " + " ".join(f"{float(value):.3f}" for value in one.values)
        for one in along.transpose("delta", "along")
    )
    return at_full_size(
        "hardening",
        f"E|2p - 1| at T = {int(case['T'][-1])}, steps 1, T/4, T/2, 3T/4 and T: {paths}."
        " Each step sharpens labels that were sharpened before: their sharpness multiplies to"
        " about exp(a* T^2/2), with a* T^2 ="
        f" {listed((case['annealing'] * case['T'] ** 2).isel(T=-1))} (by Delta).",
        positive("smallest gain in hardness", gain.min()),
        case=f"rho = {float(case.rho):g}",
    )


def _exponents(chains: xr.Dataset) -> list[float]:
    """Return, for all cases, the exponent of T in a*; empty if the runs are too short."""
    if chains["T"].size < 3:
        return []
    cases = chains["annealing"].stack(case=("rho", "delta")).transpose("case", "T")
    return [power_law(one["T"], one.values).exponent for one in cases]


def _range(values: Any) -> str:
    return f"{float(values.min()):.3g} to {float(values.max()):.3g}" if values.size else "unknown"
