"""The same numbers outside the page: lines of Python and a command line."""

from __future__ import annotations

import shlex

from .controls import CHOICES, CONTROLS, SWITCHES
from .page_state import PageState, default_texts

__all__ = ["command_line", "python_lines"]


def python_lines(state: PageState) -> str:
    """A script that solves the problem of a page.

    >>> print(python_lines(PageState()).splitlines()[0])
    from selftrain import Problem, Recipe, bayes_error, solve
    """
    return "\n".join(
        [
            "from selftrain import Problem, Recipe, bayes_error, solve",
            "",
            f"problem = {_exact(state, 'Problem', ('problem', 'shift'))}",
            f"recipe = {_exact(state, 'Recipe', ('recipe',))}",
            "run = solve(problem, recipe)",
            "print(run.to_frame()[['error', 'cosine', 'bias_to_norm']])",
            "print('no method errs less than', bayes_error(problem).semi_supervised)",
        ]
    )


def _exact(state: PageState, name: str, groups: tuple[str, ...]) -> str:
    members = [c.name for c in (*CONTROLS, *CHOICES, *SWITCHES) if c.group in groups]
    values = state.values()
    told = (f"{key}={_literal(values[key])}" for key in members if key in values)
    return f"{name}({', '.join(told)})"


def _literal(value: object) -> str:
    if isinstance(value, list):
        return f"({', '.join(_literal(entry) for entry in value)})"
    if isinstance(value, float):
        return 'float("inf")' if value == float("inf") else f"{value!r}".removesuffix(".0")
    return repr(value)


def command_line(state: PageState) -> str:
    """The command that gives the same table."""
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
