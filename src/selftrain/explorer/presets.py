"""Presets of the page: figures of the paper, wrong labels, three classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..parameters import PARAMETERS
from .controls import START
from .page_state import PageState


@dataclass(frozen=True)
class Preset:
    """A named state of the page with a description.

    Attributes:
        values: values of controls that differ from those of a first visit.
        pinned: values in which the pinned run differs from `values`; None: no pinned run.
    """

    title: str
    about: str
    values: dict[str, Any]
    pinned: dict[str, Any] | None = None
    view: str = "error"

    def state(self) -> PageState:
        """Return the page of this preset."""
        page = PageState().with_values(self.values)
        pin = "" if self.pinned is None else page.with_values(self.pinned).query(pinned=False)
        return PageState(page.texts, self.view, -1, pin)


_HEURISTICS = ("annealing", "fix_bias", "threshold", "sharpness")
_NAIVE = {name: PARAMETERS[name].default for name in _HEURISTICS}
_PAPER = {**START, "rho": 0.4, "lambda_l": 0.05, "lambda_u": 0.05, **_NAIVE}
"""The reference problem of the paper with naive self-training."""

PRESETS = {
    "headline": Preset(
        "Headline: imbalance, and what helps",
        "One positive in five. Annealed labels and a fixed bias (colour) against the same ridges"
        " without them (grey).",
        START,
        _NAIVE,
    ),
    "macroscopic": Preset(
        "Order parameters (figure macroscopic)",
        "The setting in which the paper compares theory with systems of finite size.",
        _PAPER,
        view="direction",
    ),
    "weights-logits": Preset(
        "Laws of weights and logits (figure weights-logits)",
        "How single weights and training logits are distributed, step by step.",
        _PAPER | {"rho": 0.5},
        view="laws",
    ),
    "relative-error": Preset(
        "Balanced classes, small ridge (figure relative-error)",
        "With balanced classes and a small ridge many steps come close to full supervision.",
        _PAPER | {"rho": 0.5, "steps": 64, "lambda_u": 0.0113},
    ),
    "cosine": Preset(
        "The direction (figure cosine)",
        "The cosine between weights and cluster direction grows while the error of imbalanced"
        " classes does not fall.",
        _PAPER | {"steps": 64, "lambda_u": 0.01},
        view="direction",
    ),
    "selection": Preset(
        "Selecting confident samples (figure selection)",
        "A threshold of half a norm of the weights; grey: without selection.",
        _PAPER | {"rho": 0.5, "threshold": 0.5},
        {"threshold": 0},
    ),
    "collapse": Preset(
        "Hard labels collapse",
        "Hard labels, a trained bias and imbalance: the labels drift into one class.",
        _PAPER | {"sharpness": float("inf")},
        {"sharpness": 1},
    ),
    "continuum": Preset(
        "Continuous time (figure continuum)",
        "A small ridge: the steps follow a differential equation.",
        _PAPER | {"steps": 128, "lambda_u": 0.005},
        view="continuum",
    ),
    "label-noise": Preset(
        "Wrong labels",
        "One given label in five is wrong (grey: none is). The first model is worse; self-training"
        " halves the error of both.",
        _PAPER | {"rho": 0.5, "label_noise": 0.2, "lambda_l": 0.5, "lambda_u": 0.02},
        {"label_noise": 0},
    ),
    "three-classes": Preset(
        "Three classes",
        "Proportions 0.5, 0.3 and 0.2 (dotted), with the bias of step 0 and without it (grey)."
        " Scores: a sample belongs to the class whose score is the largest.",
        _PAPER
        | {"classes": "0.5,0.3,0.2", "alpha_l": 1.0, "delta": 0.5, "steps": 8, "loss": "squared"}
        | {"lambda_l": 0.2, "lambda_u": 0.1, "fix_bias": True},
        {"fix_bias": False},
    ),
}
