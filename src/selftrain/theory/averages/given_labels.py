r"""Given labels, of which some may be wrong: four kinds of labelled samples, by class and label.

`wrong` has the share of wrong labels among the samples of the negative and of the positive class.
"""

from __future__ import annotations

from typing import Any

from ...runtime.kernels import kernel


@kernel(error_model="numpy")
def given_share(sign: float, label: float, rho: float, wrong: Any) -> float:
    """The share of samples of class `sign` with the given label `label`, both -1 or 1."""
    flipped: float = wrong[1] if sign > 0.0 else wrong[0]
    return (rho if sign > 0.0 else 1.0 - rho) * (1.0 - flipped if sign == label else flipped)


@kernel(error_model="numpy")
def given_labels(rho: float, wrong: Any, nodes: Any) -> int:
    """The outer nodes of given labels: one for each pair of class and label that occurs."""
    count = 0
    for kind in range(4):
        s = 1.0 - 2.0 * (kind % 2)
        label = s if kind < 2 else -s
        weight = given_share(s, label, rho, wrong)
        if weight > 0.0:
            nodes[0, count], nodes[1, count] = s, 0.0
            nodes[2, count], nodes[3, count] = weight, label
            count += 1
    return count
