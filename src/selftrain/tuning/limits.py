"""Reference errors for self-training: the Bayes errors, and the fully supervised fit.

The command line, the explorer and `Optimum` use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..parameters import SEARCH_BOUNDS
from ..problem import Problem
from ..theory.bayes import NO_BAYES_LIMIT, BayesLimits, bayes_error, best_linear_error
from .supervised import SupervisedOptimum, supervised_optimum

__all__ = ["BAYES", "Limits"]

BAYES = ("semi_supervised", "all_labeled", "labeled_only")
"""The fields of `BayesLimits`."""


@dataclass(frozen=True)
class Limits:
    """Reference errors of a problem, each computed on first use.

    Arguments:
        bounds: bounds for the ridge of the fully supervised fit.
        tolerance: relative accuracy of that fit.

    >>> limits = Limits(Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16))
    >>> limits.sentence(4)[:35]
    'Bayes error: 0.0912 with these data'
    """

    problem: Problem
    bounds: tuple[float, float] = SEARCH_BOUNDS["lambda_l"]
    tolerance: float = 1e-10

    @cached_property
    def bayes(self) -> BayesLimits:
        """The Bayes errors. They are known for spherical clusters only; others raise."""
        return bayes_error(self.problem)

    @cached_property
    def supervised(self) -> SupervisedOptimum:
        """The best fully supervised fit: all samples have labels (with the label noise)."""
        return supervised_optimum(self.problem, self.bounds, self.tolerance)

    @cached_property
    def lowest(self) -> float:
        """The Bayes error; for general covariances, the error of the best linear rule."""
        if self.problem.shaped:
            return best_linear_error(self.problem)
        return self.bayes.semi_supervised

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as plain values, named as in the API."""
        if not self.problem.shaped:
            return {"bayes": {name: getattr(self.bayes, name) for name in BAYES}}
        if self.problem.classes > 2:  # the supervised optimum of K classes would take too long
            return {"bayes": None, "limits": {"best_linear": self.lowest}}
        free = self.supervised.unbounded
        assert free is not None
        values = {
            "best_linear": self.lowest,
            "supervised": free.error,
            "supervised_ridge": free.ridge,
        }
        return {"bayes": None, "limits": values}

    def sentence(self, digits: int = 6) -> str:
        """Return the limits as a sentence."""
        if not self.problem.shaped:
            errors = [f"{getattr(self.bayes, name):.{digits}g}" for name in BAYES]
            return (
                f"Bayes error: {errors[0]} with these data, {errors[1]} with all labels, "
                f"{errors[2]} with the labelled samples only."
            )
        if self.problem.classes > 2:
            return f"Best rule on these clusters: error {self.lowest:.{digits}g}."
        free = self.supervised.unbounded
        assert free is not None
        return (
            f"Best linear rule on these clusters: error {self.lowest:.{digits}g}. Fully supervised "
            f"with the best ridge {free.ridge:.3g}: {free.error:.{digits}g}. {NO_BAYES_LIMIT}"
        )
