"""A plan in words, as a table and as plain values."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

from ..checks import numbered
from .models import Pair
from .posterior import DEGRADED, GUESSING, WORTH, Answer, Cells, Interval, Odds

if TYPE_CHECKING:
    import pandas as pd

    from .plan import Plan

WIDTH = 80
"""Columns of a printed plan."""


def reason(advice: Answer, odds: Odds, cells: Cells, names: Pair) -> str:
    """Return why, in two sentences: the probabilities that decide, and what they rest on."""
    changed = float(cells.sizes[1] + cells.sizes[2])
    judged = int((cells.positive + cells.negative)[1:3].sum())
    right = int(cells.positive[1] + cells.negative[2])
    labels = "label" if judged == 1 else "labels"
    shown = f"of {judged} held-out {labels} there {names.candidate} predicts {right} right"
    known = shown if judged else "there is no held-out label among them"
    loss = f"a loss of more than {100 * DEGRADED:g} points has probability {odds.degradation:.0%}"
    gain = f"a gain of more than {100 * WORTH:g} point has probability {odds.worthwhile:.0%}"
    chances = {"do": loss, "do not": gain, "cannot tell": f"{loss}, {gain}"}[advice]
    guess = ", and both may be guessing" if advice != "do not" and odds.guessing > GUESSING else ""
    return (
        f"{chances}{guess}. The two models disagree on {changed:.1%} of the unlabelled samples;"
        f" {known}."
    )


def next_step(advice: Answer, more: int | None, unlabeled: int, names: Pair, use: str) -> str:
    """Return what to do now, in a sentence."""
    if advice == "do":
        return f"use {names.candidate}. advice.model() is fitted to all samples."
    if advice == "do not":
        return (
            f"use {_the(names.baseline)}. advice.model() is fitted to the labelled samples; more"
            " labels lower its error."
        )
    if more is None:
        return (
            "no number of labels would decide: the models are about equally good. advice.model()"
            f" is {use}."
        )
    there = f" (there are {unlabeled} here)" if more > unlabeled else ""
    return (
        f"label about {more} more samples{there}, drawn at random, and plan again. Until then"
        f" advice.model() is {use}."
    )


def as_text(plan: Plan) -> str:
    """Return the plan in a few lines, for a practitioner."""
    width = max(len(name) for name in (*plan.names, "balanced error"))
    lines = [
        f"{plan.advice.upper()}: {_verdict(plan)}",
        "",
        f"{'balanced error':<{width}}   estimate   90 % interval",
        *(
            f"{name:<{width}}   {_percent(told.estimate):>8}   {_ends(told)}"
            for name, told in zip(plan.names, plan.error, strict=True)
        ),
        f"{'gain':<{width}}   {_percent(plan.gain.estimate):>8}   {_ends(plan.gain)}",
        "",
        fill(f"Why: {plan.reason}", WIDTH),
        fill(f"Next: {plan.next_step}", WIDTH),
    ]
    lines += [fill(f"Caution: {each}", WIDTH) for each in cautions(plan)]
    return "\n".join(lines)


def cautions(plan: Plan) -> list[str]:
    """Return what speaks against the numbers: sources that differ, violated assumptions."""
    by_cells, by_labels = plan.sources.values()
    counting = list(plan.rows.identifiers)
    found = [f"{numbered(counting)}."] if counting else []
    found += [
        f"the error of {name} is {_percent(one.estimate)} by the cells and"
        f" {_percent(other.estimate)} by cross-validation; its interval is widened to both."
        for name, one, other, told in zip(plan.names, by_cells, by_labels, plan.error, strict=True)
        if (told.low, told.high) != (one.low, one.high)
    ]
    return found + [
        f"violated assumption: {each.name}. {each.found} {each.effect}"
        for each in plan.assumptions.violated
    ]


def _verdict(plan: Plan) -> str:
    baseline, candidate = map(_the, plan.names)
    return {
        "do": f"{candidate} is probably better than {baseline}.",
        "do not": f"{candidate} is hardly better than {baseline}.",
        "cannot tell": f"is {candidate} better than {baseline}?",
    }[plan.advice]


def _the(name: str) -> str:
    """Return the name of a model in a sentence: plain words with "the", a Python class as it is."""
    return f"the {name}" if name[0].islower() else name


def details(plan: Plan) -> str:
    """Return what the advice is made of."""
    rows, cells, names = plan.rows, plan.cells, [str(name) for name in plan.rows.names]
    sentences = [
        f"{rows.labeled} labelled and {rows.unlabeled} unlabelled samples, {rows.X.shape[1]}"
        f" columns. Proportion of {names[1]}: {_percent(plan.share.estimate)} {_ends(plan.share)}.",
        *rows.remarks,
        f"Probability of a loss of more than {100 * DEGRADED:g} points: {plan.degradation:.0%}; "
        f"of a gain of more than {100 * WORTH:g}: {plan.worthwhile:.0%}.",
        *map(str, plan.assumptions),
    ]
    table = [
        ("baseline", "candidate", "unlabelled", *(f"held-out {name}" for name in names)),
        *(
            (
                *(names[which] for which in (j // 2, j % 2)),
                _percent(float(cells.sizes[j])),
                *(str(int(counts[j])) for counts in (cells.negative, cells.positive)),
            )
            for j in range(4)
        ),
    ]
    errors = [
        ("balanced error", *plan.names),
        *(
            (source, *(f"{_percent(told.estimate)} {_ends(told)}" for told in errors))
            for source, errors in {"plan": plan.error, **plan.sources}.items()
        ),
    ]
    blocks = ("\n".join(fill(each, WIDTH) for each in sentences), _aligned(table), _aligned(errors))
    return "\n\n".join(blocks)


def _aligned(table: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    )


def as_dict(plan: Plan) -> dict[str, Any]:
    """Return plain values under the names of the attributes."""
    rows = plan.rows
    return {
        "advice": plan.advice,
        "reason": plan.reason,
        "next_step": plan.next_step,
        "models": plan.names._asdict(),
        "error": _plain(plan.error),
        "gain": plan.gain._asdict(),
        "degradation": plan.degradation,
        "more_labels": plan.more_labels,
        "share": plan.share._asdict(),
        "sources": {source: _plain(errors) for source, errors in plan.sources.items()},
        "cells": {
            name: [float(value) for value in getattr(plan.cells, name)]
            for name in ("sizes", "positive", "negative")
        },
        "rows": {
            "labeled": rows.labeled,
            "unlabeled": rows.unlabeled,
            "columns": int(rows.X.shape[1]),
            "classes": [str(name) for name in rows.names],
            "remarks": list(rows.remarks),
            "identifiers": list(rows.identifiers),
        },
        "assumptions": [each._asdict() for each in plan.assumptions],
    }


def as_frame(plan: Plan) -> pd.DataFrame:
    """Return one row per source and model."""
    import pandas as pd

    return pd.DataFrame(
        [
            {"source": source, "model": name, **told._asdict()}
            for source, errors in {"plan": plan.error, **plan.sources}.items()
            for name, told in zip(plan.names, errors, strict=True)
        ]
    )


def _plain(errors: Pair) -> dict[str, dict[str, float]]:
    return {name: told._asdict() for name, told in errors._asdict().items()}


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _ends(told: Interval) -> str:
    return f"[{100 * told.low:.1f}, {100 * told.high:.1f}]"
