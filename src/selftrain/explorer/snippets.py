"""The same numbers outside the page: lines of Python, a command line, and a file of settings."""

from __future__ import annotations

import json
import shlex

from .controls import CHOICES, CONTROLS, SWITCHES
from .page_state import PageState, default_texts

__all__ = ["SETTINGS", "command_line", "python_lines", "settings"]

SETTINGS = "selftrain-run.json"
"""Name of the file of settings, in the command line and as a download."""


def python_lines(state: PageState) -> str:
    """A script that solves the problem of a page.

    >>> print(python_lines(PageState()).splitlines()[0])
    from selftrain import Problem, Recipe, bayes_error, solve
    """
    shape = state.values().get("shape")
    problem = _arguments(state, "problem", "shift")
    if shape is None:
        first, more, limit = "from selftrain import Problem, Recipe, bayes_error, solve", [], _BAYES
    else:
        first, limit = "from selftrain import Clusters, Problem, Recipe, solve", _LINEAR
        mean, variances = (
            f"[{', '.join(_literal(float(entry)) for entry in array)}]"
            for array in (shape.mean, shape.covariance)
        )
        more = [f"clusters = Clusters(mean={mean}, covariance={variances})"]
        problem.append("clusters=clusters")
    return "\n".join(
        [
            first,
            "",
            *more,
            f"problem = Problem({', '.join(problem)})",
            f"recipe = Recipe({', '.join(_arguments(state, 'recipe'))})",
            "run = solve(problem, recipe)",
            "print(run.to_frame()[['error', 'cosine', 'bias_to_norm']])",
            limit,
        ]
    )


_BAYES = "print('Bayes error', bayes_error(problem).semi_supervised)"
_LINEAR = "print('best linear rule', clusters.best_rule(problem.test_mixture.rho).error)"


def _arguments(state: PageState, *groups: str) -> list[str]:
    members = [c.name for c in (*CONTROLS, *CHOICES, *SWITCHES) if c.group in groups]
    values = state.values()
    if "shape" in values:
        members = [name for name in members if name not in ("delta", "delta_u")]
    return [f"{name}={_literal(values[name])}" for name in members if name in values]


def _literal(value: object) -> str:
    if isinstance(value, list):
        return f"({', '.join(_literal(entry) for entry in value)})"
    if isinstance(value, float):
        return 'float("inf")' if value == float("inf") else f"{value!r}".removesuffix(".0")
    return repr(value)


def command_line(state: PageState) -> str:
    """The command that gives the same table; a shape needs the file of settings."""
    if state.texts["shape"].strip():
        return shlex.join(["selftrain", "solve", "--config", SETTINGS])
    words = ["selftrain", "solve"]
    defaults = default_texts()
    for control in CONTROLS:
        text = state.texts[control.name].replace(" ", "")
        if text and (text != "0" or defaults[control.name] != ""):
            words += [f"--{control.name.replace('_', '-')}", text]
    words += [
        f"--{switch.name.replace('_', '-')}" for switch in SWITCHES if state.texts[switch.name]
    ]
    for choice in CHOICES:
        words += [f"--{choice.name}", state.texts[choice.name]]
    return shlex.join(words)


def settings(state: PageState) -> str:
    """Problem and recipe as JSON, as `--config` reads them."""
    inputs = {"problem": state.problem, "recipe": state.recipe}
    return json.dumps({name: json.loads(word.to_json()) for name, word in inputs.items()}, indent=1)
