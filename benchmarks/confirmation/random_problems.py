"""Random problems and recipes over the whole range of the theory; problem i of a seed is always the
same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from selftrain import Problem, Recipe, losses
from selftrain.losses import Loss

from .user_losses import Huber, Steep


def draw(seed: int, index: int) -> tuple[Problem, Recipe]:
    """Return problem and recipe number `index`; scale parameters are uniform in the logarithm."""
    rng = np.random.default_rng([seed, index])

    def scale(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    def half() -> bool:
        return bool(rng.random() < 0.5)

    loss, pseudo_loss = draw_losses(rng)
    own = not all(isinstance(name, str) for name in (loss, pseudo_loss or loss))
    shifted = rng.random() < 0.25
    problem = Problem(
        alpha_l=scale(0.05, 50),
        alpha_u=scale(0.05, 50),
        rho=scale(0.001, 0.5),
        delta=scale(0.05, 20),
        steps=int(rng.integers(1, 3 if own else 13)),
        loss=loss,
        pseudo_loss=pseudo_loss,
        rho_u=scale(0.001, 0.5) if shifted else None,
        delta_u=scale(0.05, 20) if shifted else None,
    )
    soft = 1.0 if half() else scale(0.5, 100)
    recipe = Recipe(
        lambda_l=scale(1e-8, 1e3),
        lambda_u=scale(1e-8, 1e3),
        threshold=rng.uniform(0, 2) if half() else 0.0,
        sharpness=math.inf if rng.random() < 0.2 else soft,
        annealing=rng.uniform(0, 1) if half() else 0.0,
        fix_bias=half(),
    )
    return problem, recipe


def draw_losses(rng: np.random.Generator) -> tuple[str | Loss, str | Loss | None]:
    """Return the losses of step 0 and of the other steps; one in 50 problems has user-defined
    losses.
    """
    kind = rng.random()
    if kind < 0.66:
        return "logistic", None
    if kind < 0.84:
        return "squared", None
    if kind < 0.98:
        pair = ("logistic", "squared")
        return pair if rng.random() < 0.5 else (pair[1], pair[0])
    if kind < 0.99:
        return losses.register(Steep(float(f"{10 ** rng.uniform(-2, 3):.3g}"))), None
    huber: Any = Huber(float(f"{10 ** rng.uniform(-1, 1):.3g}"))  # its kinks are a method
    return losses.register(huber), None
