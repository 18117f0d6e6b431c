"""Expansions of one self-training step in a small ridge, and closed forms for the squared loss.

`selftrain.continuum` solves many such steps in continuous time; docs/continuum.md derives both.
"""

from .theory.continuum.best_direction import BestDirection, best_direction
from .theory.continuum.expansion import (
    FirstOrder,
    SecondOrderNoise,
    first_order,
    second_order_noise,
)
from .theory.continuum.linear_response import State
from .theory.continuum.squared_closed_form import SquaredClosedForm, squared_closed_form

__all__ = [
    "BestDirection", "FirstOrder", "SecondOrderNoise", "SquaredClosedForm", "State",
    "best_direction", "first_order", "second_order_noise", "squared_closed_form",
]  # fmt: skip
