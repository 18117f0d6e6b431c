"""A plan in words, as a table and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .advice import DEGRADED, GUESSING, WORTH, Answer, Odds
from .posterior import Cells, Interval
from .sources import Errors

if TYPE_CHECKING:
    import pandas as pd

    from .plan import Plan

FITS = {
    "supervised": "supervised",
    "self_training": "self-training",
    "fully_supervised": "fully supervised",
}

ALL = 0.99
"""From this fraction of the unlabelled samples on, a number of labels counts as all of them."""


def reason(advice: Answer, odds: Odds, cells: Cells, more: int | None) -> str:
    """Return the reason of the advice."""
    changed = float(cells.sizes[1] + cells.sizes[2])
    facts = (
        f"Self-training changes the class of {changed:.1%} of the samples. It raises the error by"
        f" more than {100 * DEGRADED:g} points with probability {float(odds.degradation):.0%} and"
        f" lowers it by more than {100 * WORTH:g} point with probability"
        f" {float(odds.worthwhile):.0%}."
    )
    if advice == "do":
        return f"A gain of {100 * float(odds.expected):.1f} points is expected. {facts}"
    if advice == "do not":
        return f"There is too little to gain. {facts}"
    if odds.guessing > GUESSING:
        facts = f"Self-training may be no better than guessing. {facts}"
    if more is None:
        return f"The labels are too few to tell, and more of them may not decide. {facts}"
    return f"The labels are too few to tell: about {more} more would decide. {facts}"


def as_text(plan: Plan) -> str:
    """Return the plan in words, for a practitioner."""
    rows = plan.rows
    lines = [
        f"Advice: {plan.advice.upper()}. {plan.reason}",
        "",
        f"{'balanced error':<18}{'estimate':>9}  90 % interval   from",
        *(
            f"{FITS[name]:<18}{_percent(interval.estimate):>9}  {_ends(interval):<15} {source}"
            for name, interval, source in _headline(plan)
        ),
        f"Self-training is worth {worth(plan)}.",
        "",
        "By source:",
        *(
            f"  {source:<18}"
            + "   ".join(f"{FITS[n]} {_percent(e.estimate)} {_ends(e)}" for n, e in _pairs(errors))
            for source, errors in plan.sources.items()
        ),
        "",
        (
            f"Samples: {rows.labeled} labelled, {rows.unlabeled} unlabelled;"
            f" {rows.matrix.shape[1]} columns. Proportion of {rows.names[1]!r}:"
            f" {_percent(plan.share.estimate)} {_ends(plan.share)}."
        ),
        (
            f"Separation {plan.separation:.2f}, effective dimension {plan.effective_dimension:.0f},"
            f" tails {1 + plan.kurtosis:.2f} times Gaussian."
        ),
        *rows.remarks,
    ]
    violated = plan.assumptions.violated
    lines.append("")
    if violated:
        lines.append("Violated assumptions:")
        lines += [f"  {each.name}. {each.found} {each.effect}" for each in violated]
    else:
        lines.append("No assumption is violated (check_assumptions() lists them).")
    return "\n".join(lines)


def as_dict(plan: Plan) -> dict[str, Any]:
    """Return plain values under the names of the attributes."""
    rows = plan.rows
    return {
        "advice": plan.advice,
        "reason": plan.reason,
        "error": _errors(plan.error),
        "gain": plan.gain._asdict(),
        "degradation": plan.degradation,
        "worth_labels": plan.worth_labels._asdict(),
        "more_labels": plan.more_labels,
        "share": plan.share._asdict(),
        "separation": plan.separation,
        "effective_dimension": plan.effective_dimension,
        "kurtosis": plan.kurtosis,
        "sources": {source: _errors(errors) for source, errors in plan.sources.items()},
        "parameters": plan.parameters,
        "recipe": plan.recipe.to_dict(),
        "rows": {
            "labeled": rows.labeled,
            "unlabeled": rows.unlabeled,
            "columns": int(rows.matrix.shape[1]),
            "classes": [str(name) for name in rows.names],
            "remarks": list(rows.remarks),
        },
        "assumptions": [each._asdict() for each in plan.assumptions],
    }


def as_frame(plan: Plan) -> pd.DataFrame:
    """Return one row per source and fit."""
    import pandas as pd

    sources = {"plan": plan.error, **plan.sources}
    return pd.DataFrame(
        [
            {"source": source, "fit": FITS[name], **entry._asdict()}
            for source, errors in sources.items()
            for name, entry in _pairs(errors)
        ]
    )


def _pairs(errors: Errors) -> list[tuple[str, Interval]]:
    return [(name, interval) for name, interval in errors._asdict().items() if interval is not None]


def _errors(errors: Errors) -> dict[str, dict[str, float]]:
    return {name: interval._asdict() for name, interval in _pairs(errors)}


def _headline(plan: Plan) -> list[tuple[str, Interval, str]]:
    sources = {"fully_supervised": "cross-validation, minus a gap estimated on synthetic data"}
    return [
        (name, interval, sources.get(name, "cross-validation"))
        for name, interval in _pairs(plan.error)
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ends(interval: Interval) -> str:
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def worth(plan: Plan) -> str:
    """Say how many labels self-training is worth."""
    interval, most = plan.worth_labels, plan.rows.unlabeled
    if interval.estimate >= ALL * most:
        return "as much as labelling every sample, as far as these labels can tell"
    high = "every one" if interval.high >= ALL * most else f"{interval.high:.0f}"
    return f"about {interval.estimate:.0f} more labels [{interval.low:.0f}, {high}]"
