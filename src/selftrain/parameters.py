r"""The table of all parameters of `Problem` and `Recipe`.

It provides the valid ranges, the options of the command line, the sliders of the explorer, the
symbols of sweeps and plots, and the search bounds of `optimize`. The glossary is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["PARAMETERS", "SEARCH_BOUNDS", "Parameter", "Range"]

SMALLEST, LARGEST = 1e-100, 1e100
"""Range of sample ratios, variances, ridges and sharpness; a product of three does not overflow."""

SPAN = "from 1e-100 to 1e100"
MOST_STEPS = 10_000_000

SMALLEST_RIDGE = 1e-13
"""Smallest ridge at which runs that start from separable labelled samples were confirmed."""

LARGEST_RIDGE = 0.1
"""Bound of the paper: with larger ridges finite systems are far from the theory (`app: pathological
finite size effect`).
"""

LARGEST_SUPERVISED_RIDGE = 1e6
"""At this ridge the direction of a supervised fit is that of an infinite ridge to six digits."""


class Range(NamedTuple):
    """The valid values of a number: a function, and the rule for error messages ("must be ...")."""

    accepts: Callable[[float], bool]
    rule: str


POSITIVE = Range(lambda x: SMALLEST <= x <= LARGEST, f"must be a finite number > 0 ({SPAN})")
NOT_NEGATIVE = Range(
    lambda x: x == 0 or SMALLEST <= x <= LARGEST, f"must be a finite number >= 0 (0, or {SPAN})"
)
DEGREE = Range(lambda x: 0 <= x <= LARGEST, f"must be a finite number >= 0 (up to {LARGEST:g})")
PROPORTION = Range(lambda x: 0 < x < 1, "must be strictly between 0 and 1")
STEPS = Range(
    lambda x: 0 <= x <= MOST_STEPS and x % 1 == 0, f"must be a whole number from 0 to {MOST_STEPS}"
)
RIDGE = Range(
    POSITIVE.accepts,
    "must be a finite number > 0 (without a ridge a step changes nothing: the previous model "
    f"already minimises the loss of its own soft labels; {SPAN})",
)
SHARPNESS = Range(
    lambda x: SMALLEST <= x <= LARGEST or x == float("inf"),
    f"must be a number > 0, inf for hard labels ({SPAN})",
)


@dataclass(frozen=True)
class Parameter:
    """A field of `Problem` or `Recipe`.

    Attributes:
        name: name of the field.
        home: "problem" or "recipe".
        symbol: symbol of the paper, in LaTeX.
        label: a short description, for a slider.
        sentence: a longer description, for help texts.
        range: valid numbers; None for names and booleans.
        default: default value; REQUIRED if there is none, None if it depends on another field.
        unit: unit of the number.
        per_step: whether it may be a sequence with one value per step.
        search: default bounds of `optimize`; None if it cannot be optimised.
        page: limits of the explorer's slider, within which a run is fast; None for no slider.
        scale: scale of the slider: "linear", "log", or "whole" for whole numbers.
        choices: the names to choose from.
        equation: label of its equation in the paper's source.
    """

    name: str
    home: str
    symbol: str
    label: str
    sentence: str
    range: Range | None = None
    default: Any = None
    unit: str = "1"
    per_step: bool = False
    search: tuple[float, float] | None = None
    page: tuple[float, float] | None = None
    scale: str = "linear"
    choices: tuple[str, ...] = ()
    equation: str = ""

    @property
    def plain_symbol(self) -> str:
        r"""The symbol in plain text.

        >>> PARAMETERS["alpha_u"].plain_symbol
        'α_U'
        """
        letter, line, index = self.symbol.partition("_")
        return GREEK.get(letter, letter) + line + index


REQUIRED = object()
GREEK = {
    r"\alpha": "α", r"\rho": "ρ", r"\Delta": "Δ", r"\lambda": "λ", r"\Gamma": "Γ",
    r"\gamma": "γ", r"\eta": "η",
}  # fmt: skip
RIDGES = (SMALLEST_RIDGE, LARGEST_RIDGE)

PARAMETERS = {one.name: one for one in (
    Parameter("alpha_l", "problem", r"\alpha_L", "Labelled samples per feature",
              "labelled samples per feature", POSITIVE, REQUIRED, "samples per feature",
              page=(0.02, 20.0), scale="log", equation="eq: loss labeled"),
    Parameter("alpha_u", "problem", r"\alpha_U", "Unlabelled samples per feature",
              "unlabelled samples per feature in each step", POSITIVE, REQUIRED,
              "samples per feature", per_step=True, page=(0.1, 50.0), scale="log",
              equation="eq: update of ST"),
    Parameter("rho", "problem", r"\rho", "Proportion of the positive class",
              "proportion of the positive class; 0.5 for balanced classes", PROPORTION, REQUIRED,
              page=(0.01, 0.99), equation="eq:data genereation labeled"),
    Parameter("delta", "problem", r"\Delta", "Variance of the noise",
              "variance of the noise around the class means", POSITIVE, REQUIRED,
              page=(0.05, 5.0), scale="log", equation="eq:data genereation labeled"),
    Parameter("steps", "problem", "T", "Self-training steps",
              "self-training steps after the supervised step 0", STEPS, REQUIRED, "steps",
              page=(0, 256), scale="whole", equation="eq: update of ST"),
    Parameter("label_noise", "problem", r"\eta", "Wrong labels",
              "proportion of wrong labels among the given ones", default=0.0, page=(0.0, 0.49)),
    Parameter("loss", "problem", r"\ell", "Loss",
              "loss: logistic, or squared (classes coded as -1 and +1)", default="logistic",
              choices=("logistic", "squared"), equation="eq: loss labeled"),
    Parameter("pseudo_loss", "problem", r"\tilde\ell", "Loss of the pseudo-labels",
              "loss of the self-training steps, that of loss by default"),
    Parameter("rho_u", "problem", r"\rho_U", "Proportion of the positive class",
              "proportion of the positive class in the batches, rho by default", PROPORTION,
              per_step=True, page=(0.01, 0.99), equation="eq:data genereation unlabeled"),
    Parameter("delta_u", "problem", r"\Delta_U", "Variance of the noise",
              "variance of the noise in the batches, delta by default", POSITIVE, per_step=True,
              page=(0.05, 5.0), scale="log", equation="eq:data genereation unlabeled"),
    Parameter("test", "problem", "", "Test mixture",
              "mixture of the error: labeled, unlabeled (the last batch, the default), or its"
              " proportion and variance", equation="eq: macro generalization error"),
    Parameter("batches", "problem", "", "Batches",
              "unlabelled samples of the steps: fresh, reused, or a name per step (a,b,a; a+b for"
              " parts of a pool)", default="fresh"),
    Parameter("keep_labeled", "problem", "", "Weight of the labelled samples",
              "weight of the labelled samples in the loss of every later step", NOT_NEGATIVE, 0.0,
              per_step=True),
    Parameter("lambda_l", "recipe", r"\lambda_L", "Ridge of the supervised step",
              "ridge of the supervised step", NOT_NEGATIVE, 0.05, search=RIDGES,
              page=(1e-6, 10.0), scale="log", equation="eq: loss labeled"),
    Parameter("lambda_u", "recipe", r"\lambda_U", "Ridge of the later steps",
              "ridge of the self-training steps; a small one moves the model little", RIDGE, 0.05,
              per_step=True, search=RIDGES, page=(1e-6, 10.0), scale="log",
              equation="eq: update of ST"),
    Parameter("threshold", "recipe", r"\Gamma", "Selection threshold",
              "threshold Γ: samples with logits between -Γ √q and Γ √q are rejected (√q: norm of"
              " the weights over √N)", DEGREE, 0.0, per_step=True, search=(0.0, 3.0),
              page=(0.0, 3.0), equation="eq: update of ST"),
    Parameter("sharpness", "recipe", r"\gamma", "Sharpness of pseudo-labels",
              "sharpness of the pseudo-labels; 1: the model's probability, inf: hard labels",
              SHARPNESS, 1.0, per_step=True, search=(0.1, 100.0), page=(0.1, 100.0), scale="log",
              equation="eq: annealing parameter"),
    Parameter("annealing", "recipe", "a", "Annealing of pseudo-labels",
              "annealing a: the sharpness of step t is multiplied by 1 + a t", DEGREE, 0.0,
              per_step=True, search=(0.0, 10.0), page=(1e-3, 10.0), scale="log",
              equation="heuristics: annealing"),
    Parameter("fix_bias", "recipe", "", "Keep the bias of step 0",
              "keep the bias of step 0, against labels that drift into one class", default=False,
              equation="heuristics: bias fixing"),
    Parameter("labeler", "recipe", "", "Labeler", "labeler: soft or hard", default="soft",
              choices=("soft", "hard")),
)}  # fmt: skip
"""All fields of `Problem` and `Recipe` that are numbers, names or switches."""

SEARCH_BOUNDS = {name: one.search for name, one in PARAMETERS.items() if one.search is not None}
"""Default bounds of the parameters that `optimize` may vary."""

DEFAULT_OVER = ("lambda_l", "lambda_u")
"""Parameters that `optimize` varies by default."""
