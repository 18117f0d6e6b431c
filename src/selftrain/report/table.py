"""The numbers of the headline as a table."""

from __future__ import annotations

import html

from .headline import Contender, Headline

COLUMNS = ("method", "λ_L", "λ_U", "a", "error, t=0", "t=T", "simulated")
Row = tuple[str, ...]


def rows(story: Headline) -> list[Row]:
    """Return one row per competitor, then the errors they are compared with."""
    full, limits = story.supervised, story.limits
    made = [_row(one) for one in (story.labeled_only, *story)]
    made.append(_line("fully supervised", full.error, full.ridge))
    if full.unbounded is not None:
        made.append(_line("the same, any ridge", full.unbounded.error, full.unbounded.ridge))
    return [
        *made,
        _line("Bayes, labelled samples only", limits.labeled_only),
        _line("Bayes, all data", limits.semi_supervised),
        _line("Bayes, all labels", limits.all_labeled),
    ]


def as_html(story: Headline) -> str:
    """Return the table as HTML."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows(story)
    )
    return f'<div class="wide"><table class="numbers"><tr>{head}</tr>{body}</table></div>'


def _row(contender: Contender) -> Row:
    run, ensemble = contender.run, contender.simulated
    recipe, steps = run.recipe, run.problem.steps
    simulated = ""
    if ensemble is not None:
        simulated = f"{ensemble.mean('error')[-1]:.4f} ± {ensemble.std('error')[-1]:.4f}"
    return (
        contender.name,
        f"{recipe.lambda_l:.3g}",
        f"{recipe.lambda_u:.3g}" if steps else "",
        f"{recipe.annealing:.3g}" if steps else "",
        f"{run.error[0]:.5f}",
        f"{run.error[-1]:.5f}",
        simulated,
    )


def _line(name: str, error: float, ridge: float | None = None) -> Row:
    return (name, "" if ridge is None else f"{ridge:.3g}", "", "", "", f"{error:.5f}", "")
