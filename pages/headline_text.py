"""The headline in words: five sentences, a table of its numbers, and remarks on the table."""

from __future__ import annotations

import html

from .headline import BOUNDS, RIDGES, Contender, Headline

COLUMNS = ("method", "λ_L", "λ_U", "a", "error, t=0", "t=T", "simulated")
Row = tuple[str, ...]


def finding(story: Headline) -> tuple[str, ...]:
    """Return the question, the setting, the possible gain, and what the two methods gain."""
    problem = story.problem
    alone = float(story.labeled_only.run.error[0])
    naive = float(story.naive.run.error[-1])
    helped = float(story.helped.run.error[-1])
    full = story.supervised.error
    gap = alone - full
    return (
        "Can a linear classifier with few labels improve by training on its own predictions?",
        (
            f"The two classes are Gaussian clusters, and {problem.rho:.0%} of the samples are"
            f" positive; per feature there are {problem.alpha_l:g} labelled samples and, in each of"
            f" {problem.steps} steps, {float(problem.unlabeled.alpha[0]):g} new unlabelled ones."
        ),
        (
            f"Fitted to the labelled samples only, the classifier has an error of {alone:.1%};"
            f" with all labels it would have {full:.1%} (the best possible, the Bayes error, is"
            f" {story.limits.semi_supervised:.1%})."
        ),
        (
            f"Naive self-training closes {(alone - naive) / gap:.0%} of the gap between the two"
            f" (error {naive:.1%}), even with the best ridges: its pseudo-labels drift towards the"
            " larger class."
        ),
        (
            "With pseudo-labels that sharpen from step to step and a bias fixed after the first"
            f" fit, it closes {(alone - helped) / gap:.0%} (error {helped:.1%})."
        ),
    )


def remarks(story: Headline) -> list[str]:
    """Return remarks on the table: its columns, empty cells, and searches that ended at a bound."""
    sentences = [
        "λ_L, λ_U: ridge of the labelled fit and of the self-training steps; a: annealing, the "
        "sharpness of the pseudo-labels at step t is 1 + a t."
    ]
    ensemble = story.helped.simulated
    if ensemble is not None:
        sentences.append(
            f"simulated: mean ± standard deviation over {len(ensemble.seeds)} systems of "
            f"{ensemble.features} features. Naive self-training is not simulated at its optimum: "
            "with ridges that small the fit of a finite system is too ill-conditioned."
        )
    if story.naive.at_bounds.get("lambda_u") == "lowest":
        sentences.append(
            "The best ridge of naive self-training is the lowest allowed one, at which a step "
            "changes nothing: here no step at all is better than naive self-training."
        )
    for contender in (story.naive, story.helped):
        for name, end in contender.at_bounds.items():
            sentences.append(
                f"The best {name} of “{contender.name}” is the {end} value that was allowed."
            )
    ranges = ", ".join(
        f"{name} {low:g} to {high:g}" for name, (low, high) in BOUNDS.items() if name in RIDGES
    )
    sentences.append(f"Ranges searched: {ranges}, annealing 0 to {BOUNDS['annealing'][1]:g}.")
    return sentences


def rows(story: Headline) -> list[Row]:
    """Return one row per method, then the reference errors."""
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


def table(story: Headline) -> str:
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
