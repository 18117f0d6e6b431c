"""The unknowns of the next step, extrapolated from those before."""

from __future__ import annotations

from typing import Any

from ...runtime.kernels import kernel


@kernel(error_model="numpy")
def predict(t: int, unknowns: Any, near: Any, z: Any) -> None:
    """`near` and the difference of the unknowns to it, extrapolated from up to four steps before t >= 2."""
    for j in range(5):
        one = unknowns[t - 1, j] - near[t - 1, j]
        two = unknowns[t - 2, j] - near[t - 2, j] if t >= 3 else 0.0
        three = unknowns[t - 3, j] - near[t - 3, j] if t >= 4 else 0.0
        if t >= 5:
            z[j] = (
                near[t, j] + 4.0 * (one + three) - 6.0 * two - (unknowns[t - 4, j] - near[t - 4, j])
            )
        elif t >= 4:
            z[j] = near[t, j] + 3.0 * (one - two) + three
        elif t >= 3:
            z[j] = near[t, j] + 2.0 * one - two
        else:
            z[j] = near[t, j] + one
