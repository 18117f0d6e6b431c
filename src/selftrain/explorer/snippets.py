"""The run of a page for use elsewhere: as a Python script, a command line, a settings file."""

from __future__ import annotations

import json
import shlex
from typing import Any

from .cluster_texts import DISTANCE
from .controls import CONTROLS
from .page_state import PageState

SETTINGS = "selftrain-run.json"
"""Name of the settings file, in the command line and as a download."""


def python_lines(state: PageState) -> str:
    """Return a script that solves the problem of a page.

    >>> print(python_lines(PageState()).splitlines()[0])
    from selftrain import Problem, Recipe, bayes_error, solve
    """
    problem = state.of_groups("problem", "shift")
    shape, classes = problem.pop("shape", None), problem.pop("classes", None)
    shown = "'error', 'cosine', 'bias_to_norm'"
    if classes is not None:
        names, shown = "Clusters, Problem, Recipe, solve", "'error', 'balanced_error'"
        delta, problem["rho"] = _literal(problem.pop("delta")), tuple(classes)
        before = [
            f"clusters = Clusters.simplex({len(classes)}, distance={DISTANCE:g}, delta={delta})"
        ]
        after = []
    elif shape is not None:
        names = "Clusters, Problem, Recipe, solve"
        del problem["delta"]
        mean, variances = (_literal(array.tolist()) for array in (shape.mean, shape.covariance))
        before = [f"clusters = Clusters(mean={mean}, covariance={variances})"]
        after = ["print('best linear rule', clusters.best_rule(problem.test_mixture.rho).error)"]
    else:
        names, before = "Problem, Recipe, bayes_error, solve", []
        after = ["print('Bayes error', bayes_error(problem).semi_supervised)"]
    given = [f"{name}={_literal(value)}" for name, value in problem.items()]
    given += ["clusters=clusters"] if before else []
    recipe = [f"{name}={_literal(value)}" for name, value in state.of_groups("recipe").items()]
    lines = [
        f"from selftrain import {names}\n",
        *before,
        f"problem = Problem({', '.join(given)})",
        f"recipe = Recipe({', '.join(recipe)})",
        "run = solve(problem, recipe)",
        f"print(run.to_frame()[[{shown}]])",
        *after,
    ]
    return "\n".join(lines)


def _literal(value: Any) -> str:
    """Return a value as a Python literal, without a trailing ".0".

    >>> _literal([0.1, float("inf"), 2.0])
    '[0.1, float("inf"), 2]'
    """
    if isinstance(value, (list, tuple)):
        entries = ", ".join(_literal(entry) for entry in value)
        return f"({entries})" if isinstance(value, tuple) else f"[{entries}]"
    if isinstance(value, float):
        return 'float("inf")' if value == float("inf") else repr(value).removesuffix(".0")
    return repr(value)


def command_line(state: PageState) -> str:
    """Return the command that prints the same run; with clusters it needs the settings file."""
    words = ["selftrain", "solve"]
    if state.texts["shape"].strip() or state.texts["classes"].strip():
        return shlex.join([*words, "--config", SETTINGS])
    for name, control in CONTROLS.items():
        flag, text = f"--{name.replace('_', '-')}", state.texts[name].replace(" ", "")
        if text:
            words += [flag] if control.kind == "switch" else [flag, text]
    return shlex.join(words)


def settings(state: PageState) -> str:
    """Return problem and recipe as JSON, as `--config` reads them."""
    inputs = {"problem": state.problem, "recipe": state.recipe}
    return json.dumps({name: json.loads(one.to_json()) for name, one in inputs.items()}, indent=1)
