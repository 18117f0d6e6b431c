"""HTML cards of results in a notebook: a title, the main numbers, a small figure."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from .canvas import new_axes, whole_figure
from .style import BLUE, GREEN, GREY, ORANGE, draw_limits, steps_axis, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from ..problem import Problem
    from ..recipe import Recipe
    from ..simulation.ensemble import Ensemble
    from ..theory.bayes import BayesLimits
    from ..theory.continuum.path import ContinuumPath
    from ..tuning.optimum import Optimum

SMALL = (3.0, 1.9)
"""Width and height of the figure on a card, in inches."""


def card(
    title: str, values: Mapping[str, object], draw: Callable[[Axes], None] | None = None
) -> str:
    """Return a title, a table of values and a small figure as HTML.

    >>> "<b>Title</b>" in card("Title", {"error": "0.1"})
    True
    """
    rows = "".join(
        f"<tr><td style='text-align:left'>{html.escape(name)}</td>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in values.items()
    )
    picture = "" if draw is None else f"<div>{_image(draw, title)}</div>"
    return (
        "<div style='display:flex;flex-wrap:wrap;gap:1em;align-items:center'>"
        f"<div><b>{html.escape(title)}</b><table>{rows}</table></div>{picture}</div>"
    )


def _image(draw: Callable[[Axes], None], title: str) -> str:
    with styled():
        ax = new_axes(None, *SMALL)
        draw(ax)
        stream = io.BytesIO()
        whole_figure(ax).savefig(stream, format="png", dpi=100)
    data = base64.b64encode(stream.getvalue()).decode()
    alt = html.escape(title, quote=True)
    return f"<img alt='picture of {alt}' src='data:image/png;base64,{data}'>"


def problem_card(problem: Problem) -> str:
    """Show a problem: its fields, and the densities of two classes along the line between their
    centres (for more classes, the class proportions).
    """

    def bars(ax: Axes) -> None:
        ax.bar(range(problem.classes), problem.test_mixture.rho, color=BLUE)
        ax.set(xlabel="class", ylabel="proportion", xticks=range(problem.classes))

    def draw(ax: Axes) -> None:
        width = 1.0 / float(problem.test_clusters.separation)
        x = np.linspace(-1 - 3.5 * width, 1 + 3.5 * width, 201)
        rho = problem.test_mixture.rho
        for share, sign, color, name in (
            (1 - rho, -1, ORANGE, "negative"),
            (rho, 1, GREEN, "positive"),
        ):
            density = share * np.exp(-0.5 * ((x - sign) / width) ** 2) / width
            ax.fill_between(x, density, color=color, alpha=0.5, linewidth=0, label=name)
        ax.set_yticks([])
        ax.set_xlabel("along the line between the centres")
        ax.legend()

    return card("Problem", _fields(problem), bars if problem.classes > 2 else draw)


def recipe_card(recipe: Recipe) -> str:
    """Show a recipe: its fields, and the pseudo-label as a function of the logit."""

    def draw(ax: Axes) -> None:
        h = np.linspace(-4, 4, 401)
        sharpness, threshold = _first(recipe.sharpness), _first(recipe.threshold)
        with np.errstate(invalid="ignore"):
            label = expit(np.nan_to_num(sharpness * h, nan=0.0))
        label[np.abs(h) <= threshold] = np.nan
        ax.plot(h, label, color=BLUE)
        ax.set_xlabel("logit of weights of norm 1")
        ax.set_ylabel("pseudo-label")

    return card("Recipe", _fields(recipe), draw if recipe.labeler == "soft" else None)


def trajectory_card(run: Any) -> str:
    """Show a run: its first and last values, and its error over the steps."""
    from ..theory.trajectory import Trajectory
    from .trajectory import draw_error

    two = isinstance(run, Trajectory)  # a protocol of two classes gives a run of K classes
    error = run.error[np.isfinite(run.error)]
    best = int(np.nanargmin(run.error))
    values: dict[str, object] = {
        "error": f"{error[0]:.5g} → {error[-1]:.5g}",
        "lowest": f"{run.error[best]:.5g} at step {best}",
    }
    if two:
        values["cosine"] = f"{run.cosine[0]:.4g} → {run.cosine[run.good_steps - 1]:.4g}"
    else:
        recalls = " ".join(f"{1 - one:.3f}" for one in run.class_errors[run.good_steps - 1])
        values["recall of each class"] = recalls
    if run.collapsed_at is not None:
        values["collapsed"] = f"at step {run.collapsed_at}"
    if run.failure is not None:
        values["ended"] = str(run.failure)

    def draw(ax: Axes) -> None:
        if two:
            draw_error(ax, run)
        else:
            ax.plot(run.t, run.error, color=BLUE, marker="o")
        ax.set_title("")
        ax.set_ylabel("error")
        steps_axis((ax,), run.steps)

    return card(f"{type(run).__name__}, {run.steps} steps", values, draw)


def ensemble_card(ensemble: Ensemble) -> str:
    """Show finite-size runs: their size, the mean error, and every seed over the steps."""
    mean, spread = ensemble.mean("error"), ensemble.std("error")
    values: dict[str, object] = {
        "features": f"{ensemble.features:,}",
        "seeds": len(ensemble.seeds),
        "error": f"{mean[0]:.4g} → {mean[-1]:.4g} (± {spread[-1]:.2g} over seeds)",
        "collapsed": int((ensemble.collapsed_at >= 0).sum()),
    }

    def draw(ax: Axes) -> None:
        ax.plot(ensemble.t, ensemble.error.T, color=GREY, linewidth=0.7)
        ax.plot(ensemble.t, mean, color=BLUE)
        ax.set_ylabel("error")
        steps_axis((ax,), int(ensemble.t[-1]))

    return card("Ensemble", values, draw)


def optimum_card(best: Optimum) -> str:
    """Show an optimum: the recipe, its error, and the run with it."""
    from .optimum import draw_error

    values: dict[str, object] = {
        name: _shown(getattr(best.recipe, name)) for name in sorted(best.bounds)
    }
    values |= {"error": f"{best.error:.6g}", "advice": best.advice}

    def draw(ax: Axes) -> None:
        draw_error(ax, best)
        ax.set_title("")
        ax.set_ylabel("error")

    return card("Optimum", values, draw)


def limits_card(limits: BayesLimits) -> str:
    """Show the three Bayes errors as lines."""

    def draw(ax: Axes) -> None:
        draw_limits(ax, limits)
        ax.set_ylim(0, 1.1 * limits.labeled_only)
        ax.set_xticks([])
        ax.set_ylabel("error")
        ax.legend(fontsize=6)

    values = {
        "labelled and unlabelled samples": f"{limits.semi_supervised:.6g}",
        "all labels": f"{limits.all_labeled:.6g}",
        "labelled samples only": f"{limits.labeled_only:.6g}",
    }
    return card("Bayes errors", values, draw)


def path_card(path: ContinuumPath) -> str:
    """Show a path in continuous time: first and last values, and the error along it."""
    points = path(np.linspace(0.0, path.until, 101))
    values = {
        "time": f"0 → {path.until:.4g}",
        "error": f"{points.error[0]:.5g} → {points.error[-1]:.5g}",
        "lowest": f"{path.best.error:.5g} at τ = {path.best.tau:.4g}",
    }

    def draw(ax: Axes) -> None:
        ax.plot(points.tau, points.error, color=BLUE)
        ax.set_xlabel(r"time  $\tau$")
        ax.set_ylabel("error")

    return card("Path in continuous time", values, draw)


def sweep_card(data: xr.Dataset) -> str:
    """Show a sweep: the number of finished points, and its plot if it has one or two axes."""
    status = data["status"].values
    values = {"points": status.size, "done": int((status == 0).sum())}
    if (status != 0).any():
        values |= {"failed": int((status == 1).sum()), "missing": int((status == 2).sum())}

    def draw(ax: Axes) -> None:
        from .sweep import plot_sweep

        plot_sweep(data, title="", ax=ax)

    drawn = 1 <= data["status"].squeeze(drop=True).ndim <= 2 and bool((status == 0).any())
    return card("Sweep", values, draw if drawn else None)


def _fields(word: Any) -> dict[str, object]:
    return {name: _shown(value) for name, value in word.to_dict().items()}


def _first(value: Any) -> float:
    return float(value[0]) if isinstance(value, tuple) and value else float(value)


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) > 4:
        return f"{value[0]:.4g} … {value[-1]:.4g} ({len(value)} steps)"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "clusters"
    return str(value)
