r"""The formulas of captions as HTML, so that a page needs no external script.

Captions use a small part of LaTeX: Greek letters, indices and exponents, roots, a few relations.
"""

from __future__ import annotations

import html
import re

_GREEK = {
    "alpha": "α",
    "gamma": "γ",
    "Gamma": "Γ",
    "Delta": "Δ",
    "delta": "δ",
    "epsilon": "ε",
    "lambda": "λ",
    "nu": "ν",
    "rho": "ρ",
    "tau": "τ",
    "chi": "χ",
    "xi": "ξ",
    "sigma": "σ",
}
_SIGNS = {
    "in": " ∈ ",
    "to": " → ",
    "le": " ≤ ",
    "ge": " ≥ ",
    "propto": " ∝ ",
    "infty": "∞",
    "cdot": "·",
    "max": "max",
    "log": "log",
    "gg": " ≫ ",
    "neq": " ≠ ",
    "times": " × ",
    "simeq": " ≃ ",
    ",": " ",
    ";": " ",
}
_ACCENTS = {"tilde": "\u0303", "hat": "\u0302"}
_TOKEN = re.compile(r"\\([A-Za-z]+|[,;])|([_^{}])|([A-Za-z])|([^\\_^{}A-Za-z])")


def to_html(text: str) -> str:
    r"""Return a caption as HTML: formulas between dollar signs, code between backquotes.

    >>> to_html(r"the error $\epsilon_g^{(T)}$ at $\lambda \in (0, 0.1]$")
    'the error <i>ε<sub>g</sub><sup>(T)</sup></i> at <i>λ ∈ (0, 0.1]</i>'
    >>> to_html("a `name` & more")
    'a <code>name</code> &amp; more'
    """
    parts = text.split("$")
    shown = [
        f"<i>{formula(part)}</i>"
        if index % 2
        else re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(part))
        for index, part in enumerate(parts)
    ]
    return "".join(shown)


def formula(source: str) -> str:
    r"""Return a formula as HTML.

    >>> formula(r"m/\sqrt{q^{(T)}}")
    'm/√(q<sup>(T)</sup>)'
    >>> formula(r"\hat{m}") == "m\u0302"
    True
    """
    tokens = list(_TOKEN.finditer(source))
    shown, rest = _group(tokens, 0)
    assert rest == len(tokens), source
    return re.sub(" +", " ", shown).strip()


def _group(tokens: list[re.Match[str]], at: int) -> tuple[str, int]:
    """Return the HTML up to the closing brace, and the index of that brace."""
    shown = ""
    while at < len(tokens) and tokens[at].group(2) != "}":
        piece, at = _atom(tokens, at)
        shown += piece
    return shown, at


def _atom(tokens: list[re.Match[str]], at: int) -> tuple[str, int]:
    """Return the HTML of one element, and the index after it."""
    command, mark, letter, other = tokens[at].groups()
    at += 1
    if mark == "{":
        inner, at = _group(tokens, at)
        return inner, at + 1
    if mark is not None:
        inner, at = _atom(tokens, at)
        tag = "sub" if mark == "_" else "sup"
        return f"<{tag}>{inner}</{tag}>", at
    if command == "sqrt":
        inner, at = _atom(tokens, at)
        plain = len(inner) == 1
        return f"√{inner}" if plain else f"√({inner})", at
    if command in _ACCENTS:
        inner, at = _atom(tokens, at)
        return inner + _ACCENTS[command], at
    if command is not None:
        if command not in _GREEK and command not in _SIGNS:
            raise ValueError(f"\\{command} has no sign in {tokens[at - 1].string!r}")
        return _GREEK.get(command, _SIGNS.get(command, "")), at
    return html.escape(letter or other), at
