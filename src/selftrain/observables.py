r"""Observables of a state (m, q, B): error, selection, accuracy of pseudo-labels.

All are probabilities under a Gaussian mixture, with $H(x) = \int_x^\infty D\xi$; the functions
broadcast over arrays.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from .arrays import Array

SYMBOLS = {
    "q": "q",
    "log_q": r"\ln q",
    "m": "m",
    "v": "q - m^2",
    "bias": "B",
    "chi": r"\chi",
    "overlap": "R",
    "q_hat": r"\hat Q",
    "chi_hat": r"\hat\chi",
    "m_hat": r"\hat m",
    "r_hat": r"\hat R",
    "error": r"\epsilon_g",
    "cosine": r"m/\sqrt{q}",
    "one_minus_cosine": r"1 - m/\sqrt{q}",
    "bias_to_norm": r"B/\sqrt{q}",
    "fraction_selected": r"P_{sel}",
    "pseudo_label_accuracy": r"P(\hat y = y)",
    "selected_label_accuracy": r"P(\hat y = y \mid sel)",
    "train_loss": r"E[l \mid sel]",
    "objective": r"\alpha E[1_{sel} l] + \lambda q/2",
}
"""Observables of a run, in theory and simulation, with their symbols."""


def generalization_error(
    m: Array, q: Array, bias: Array, rho: Array | float, delta: Array | float
) -> Array:
    r"""Return the generalisation error (`eq: macro generalization error`),

    $\rho H((m+B)/\sqrt{\Delta q}) + (1-\rho) H((m-B)/\sqrt{\Delta q})$.

    It is the probability (`eq: gen_err`) that the prediction `eq:yhat_generr` differs from the
    class of a new sample (`eq:data generation generr x`, `eq:data generation generr y`).
    """
    scale = np.sqrt(delta * q)
    error: Array = rho * ndtr(-(m + bias) / scale) + (1 - rho) * ndtr(-(m - bias) / scale)
    return error


def selected_shares(
    m: Array, variances: tuple[Array, Array], bias: Array, rho: Array, limit: Array
) -> tuple[Array, Array]:
    r"""Return the probability that a sample is selected ($|\tilde h| >$ `limit`) and classified
    correctly, and the probability that it is selected and misclassified.

    Arguments:
        variances: of the logits in the negative and in the positive class.
    """
    right, wrong = np.zeros(()), np.zeros(())
    for sign, share, q in zip((-1.0, 1.0), (1 - rho, rho), variances, strict=True):
        right = right + share * ndtr((m + sign * bias - limit) / np.sqrt(q))
        wrong = wrong + share * ndtr((-m - sign * bias - limit) / np.sqrt(q))
    return right, wrong


def selects_positive(
    m: float, variances: tuple[float, float], bias: float, rho: float, limit: float
) -> bool:
    r"""Return whether more of the selected samples are classified as positive than as negative.

    Arguments as for `selected_shares`. Logarithms of probabilities are compared, because both
    probabilities may underflow.
    """
    negative, positive = (math.sqrt(q) for q in variances)
    sides = [
        np.logaddexp(
            math.log(rho) + log_ndtr((side * (m + bias) - limit) / positive),
            math.log1p(-rho) + log_ndtr((side * (bias - m) - limit) / negative),
        )
        for side in (1.0, -1.0)
    ]
    return bool(sides[0] > sides[1])


def one_minus_cosine(m: Array, v: Array) -> Array:
    r"""Return $1 - m/\sqrt q$ with $q = m^2 + v$, to full relative accuracy even for tiny v."""
    norm = np.hypot(m, np.sqrt(v))
    with np.errstate(invalid="ignore", divide="ignore"):
        sine = np.sqrt(v) / norm
        cosine = m / norm
        return np.where(m > 0, sine**2 / (1.0 + cosine), 1.0 - cosine)


def entries(name: str, values: Array, axes: int) -> dict[str, Array]:
    """Split an array over all but its first `axes` axes; return the parts by name.

    >>> list(entries("bias", np.zeros((4, 3)), 1))
    ['bias[0]', 'bias[1]', 'bias[2]']
    """
    if values.ndim == axes:
        return {name: values}
    places = np.ndindex(*values.shape[axes:])
    return {f"{name}[{','.join(map(str, at))}]": values[(..., *at)] for at in places}
