"""Symbols of the quantities that several computations return."""

from __future__ import annotations

from ...sweeps import Output

SYMBOLS = {
    "T": "T",
    "t": "t",
    "error": r"\epsilon_g^{(T)}",
    "one_minus_cosine": r"1 - m/\sqrt q",
    "bias_to_norm": r"B/\sqrt q",
    "labeled_only": r"\epsilon_g",
    "supervised": r"\epsilon_g^{(SL)}",
    "bayes": r"\epsilon_{Bayes}",
    "lambda_l": r"\lambda_L^*",
    "lambda_u": r"\lambda_U^*",
    "threshold": r"\Gamma^*",
    "annealing": "a^*",
    "spread": "difference of two replicates",
    "first_order": r"\|\nabla\epsilon_g^{(T)}\|_\infty",
}


def outputs(names: str, *dims: str, **symbols: str) -> dict[str, Output]:
    """Return outputs with the same dimensions.

    Arguments:
        names: names in `SYMBOLS`, separated by blanks.
        dims: the dimensions.
        symbols: symbols of quantities that are not in `SYMBOLS`, or that need another symbol.

    >>> outputs("T error", "T", chi=r"\\chi")["chi"]
    Output(symbol='\\\\chi', dims=('T',))
    """
    known = {name: SYMBOLS[name] for name in names.split()}
    return {name: Output(symbol, dims) for name, symbol in (known | symbols).items()}
