"""The ranges in which hyperparameters are searched, each bound with its reason."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DEFAULT_BOUNDS", "LARGEST_RIDGE", "LARGEST_SUPERVISED_RIDGE", "SMALLEST_RIDGE"]

SMALLEST_RIDGE = 1e-13
"""Where numbers end: runs from separable labelled points are confirmed down to here. A recipe
whose run is not confirmed counts as no candidate.
"""

LARGEST_RIDGE = 0.1
"""The bound of the paper: with larger ridges finite systems are far from the theory (`app:
pathological finite size effect`).
"""

LARGEST_SUPERVISED_RIDGE = 1e6
"""A supervised fit at this ridge has the direction of an infinite one to six digits."""

DEFAULT_BOUNDS: Mapping[str, tuple[float, float]] = {
    "lambda_l": (SMALLEST_RIDGE, LARGEST_RIDGE),
    "lambda_u": (SMALLEST_RIDGE, LARGEST_RIDGE),
    "threshold": (0.0, 3.0),
    "sharpness": (0.1, 100.0),
    "annealing": (0.0, 10.0),
}
