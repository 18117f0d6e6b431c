"""The headline in words: three sentences, and remarks on its table."""

from __future__ import annotations

from .headline import BOUNDS, RIDGES, Headline


def finding(story: Headline) -> tuple[str, str, str]:
    """Return the question, what naive self-training does, and what helps."""
    problem = story.problem
    alone = float(story.labeled_only.run.error[0])
    naive = float(story.naive.run.error[-1])
    helped = float(story.helped.run.error[-1])
    full = story.supervised.error
    gap = alone - full
    return (
        (
            "Can a linear classifier with few labels get better by training on its own guesses?"
            f" Here: two clusters, {problem.rho:.0%} of the samples in one, {problem.alpha_l:g}"
            f" labelled samples per feature, and {problem.steps} fresh batches of"
            f" {float(problem.unlabeled.alpha[0]):g} unlabelled samples per feature."
        ),
        (
            f"Naive self-training hardly helps: at its best it closes {(alone - naive) / gap:.0%}"
            f" of the gap between the supervised baseline (error {alone:.4f}) and the fully"
            f" supervised fit ({full:.4f})."
        ),
        (
            "Labels that sharpen from step to step, with the bias fixed after the first fit, close"
            f" {(alone - helped) / gap:.0%} (error {helped:.4f}; the Bayes error is"
            f" {story.limits.semi_supervised:.4f})."
        ),
    )


def remarks(story: Headline) -> list[str]:
    """Explain the columns of the table, empty cells, and searches that ended at a bound."""
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
            "changes nothing: naive self-training is better not used here."
        )
    for contender in (story.naive, story.helped):
        for name, end in contender.at_bounds.items():
            sentences.append(f"{name} of “{contender.name}” ended at the {end} value allowed.")
    ranges = ", ".join(
        f"{name} {low:g} to {high:g}" for name, (low, high) in BOUNDS.items() if name in RIDGES
    )
    sentences.append(f"Ranges searched: {ranges}, annealing 0 to {BOUNDS['annealing'][1]:g}.")
    return sentences
