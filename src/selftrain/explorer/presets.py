"""Settings to start from, named after the figures of the paper they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .page_state import PageState

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True)
class Preset:
    """A named state of the page, what it shows, and the run that stays behind for comparison."""

    title: str
    about: str
    values: dict[str, Any]
    pinned: dict[str, Any] | None = None
    view: str = "error"
    figure: str = field(default="")

    def state(self) -> PageState:
        """The page of this preset."""
        page = PageState().with_values(self.values)
        pin = "" if self.pinned is None else page.with_values(self.pinned).query(pinned=False)
        return PageState(page.texts, self.view, -1, pin)


_IMBALANCED = {"rho": 0.2, "alpha_l": 0.5, "alpha_u": 2, "delta": 0.5625, "steps": 16}
_NAIVE = {"annealing": 0, "fix_bias": False, "threshold": 0, "sharpness": 1}

PRESETS = {
    "headline": Preset(
        "Headline: imbalance, and what helps",
        "One positive in five. Annealed labels and a fixed bias (colour) against the same ridges"
        " without them (grey).",
        _IMBALANCED | {"lambda_l": 0.1, "lambda_u": 0.00372, "annealing": 0.0223, "fix_bias": True},
        _NAIVE,
    ),
    "macroscopic": Preset(
        "Order parameters (figure macroscopic)",
        "The setting in which the paper compares theory with systems of finite size.",
        {
            "rho": 0.4,
            "alpha_l": 0.5,
            "alpha_u": 2,
            "delta": 0.5625,
            "steps": 16,
            "lambda_l": 0.05,
            "lambda_u": 0.05,
            **_NAIVE,
        },
        view="direction",
        figure="macroscopic",
    ),
    "weights-logits": Preset(
        "Laws of weights and logits (figure weights-logits)",
        "How single weights and training logits are distributed, step by step.",
        {
            "rho": 0.5,
            "alpha_l": 0.5,
            "alpha_u": 2,
            "delta": 0.5625,
            "steps": 16,
            "lambda_l": 0.05,
            "lambda_u": 0.05,
            **_NAIVE,
        },
        view="laws",
        figure="weights-logits",
    ),
    "relative-error": Preset(
        "Balanced classes, small ridge (figure relative-error)",
        "With balanced classes and a small ridge many steps come close to having every label.",
        {
            "rho": 0.5,
            "alpha_l": 0.5,
            "alpha_u": 2,
            "delta": 0.5625,
            "steps": 64,
            "lambda_l": 0.05,
            "lambda_u": 0.0113,
            **_NAIVE,
        },
        figure="relative-error",
    ),
    "cosine": Preset(
        "The direction (figure cosine)",
        "The cosine between weights and cluster direction grows while the error of imbalanced"
        " classes does not fall.",
        {
            "rho": 0.4,
            "alpha_l": 0.5,
            "alpha_u": 2,
            "delta": 0.5625,
            "steps": 64,
            "lambda_l": 0.05,
            "lambda_u": 0.01,
            **_NAIVE,
        },
        view="direction",
        figure="cosine",
    ),
    "selection": Preset(
        "Selecting confident points (figure selection)",
        "A threshold of half a norm of the weights; grey: without selection.",
        {
            "rho": 0.5,
            "alpha_l": 0.5,
            "alpha_u": 2,
            "delta": 0.5625,
            "steps": 16,
            "lambda_l": 0.05,
            "lambda_u": 0.05,
            **_NAIVE,
            "threshold": 0.5,
        },
        {"threshold": 0},
        figure="selection",
    ),
    "collapse": Preset(
        "Hard labels collapse",
        "Hard labels, a trained bias and imbalance: the labels run into one class.",
        {
            "rho": 0.4,
            "alpha_l": 0.5,
            "alpha_u": 2,
            "delta": 0.5625,
            "steps": 16,
            "lambda_l": 0.05,
            "lambda_u": 0.05,
            **_NAIVE,
            "sharpness": float("inf"),
        },
        {"sharpness": 1},
    ),
    "continuum": Preset(
        "Continuous time (figure continuum)",
        "A small ridge: the steps follow a differential equation.",
        {
            "rho": 0.4,
            "alpha_l": 0.5,
            "alpha_u": 2,
            "delta": 0.5625,
            "steps": 128,
            "lambda_l": 0.05,
            "lambda_u": 0.005,
            **_NAIVE,
        },
        view="continuum",
        figure="continuum",
    ),
}
